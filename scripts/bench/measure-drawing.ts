import { drawPicture } from '../../pictures/draw-picture.js'
import { renderHtmlFile } from '../../pictures/page/render-html.js'
import { mapAnswer } from '../../test/pictures/samples.js'
import { median } from './statistics.js'

const GROUPS = 300
const EDGES = 3000
const TIMES = 5
const MOST_MS = 2000
const MOST_KIB = 1024

export interface DrawingFigures {
  /** Milliseconds for the first drawing, and the median of the following ones. */
  firstMs: number
  ms: number
  bytes: number
}

/** Measures the page of the largest application map that is promised, folded and in full, without its script. */
export function measureDrawing(): DrawingFigures {
  const answer = mapAnswer(GROUPS, EDGES)
  const times: number[] = []
  let bytes = 0
  for (let at = 0; at <= TIMES; at++) {
    const start = performance.now()
    const html = renderHtmlFile(drawPicture('map', [answer]), { script: '', hash: () => 'sha256-x', foot: '' })
    times.push(performance.now() - start)
    bytes = Buffer.byteLength(html)
  }
  const [firstMs = 0, ...later] = times
  return { firstMs, ms: median(later), bytes }
}

export function describeDrawing({ firstMs, ms, bytes }: DrawingFigures): string[] {
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED')
  const kib = bytes / 1024
  return [
    `Page of an application map of ${GROUPS} groups and ${EDGES} edges`,
    `  first drawing               ${firstMs.toFixed(0).padStart(7)} ms    target at most ${MOST_MS}: ${verdict(firstMs <= MOST_MS)}`,
    `  later ones                  ${ms.toFixed(0).padStart(7)} ms`,
    `  size                        ${kib.toFixed(0).padStart(7)} KiB   target at most ${MOST_KIB}: ${verdict(kib <= MOST_KIB)}`,
  ]
}

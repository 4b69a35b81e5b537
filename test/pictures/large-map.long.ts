/** What a picture has to keep to whatever it is of: its size, every fact, texts as texts, colours that differ for everyone. */
import t from 'tap'
import { drawPicture } from '../../pictures/draw-picture.js'
import { renderHtmlFile } from '../../pictures/page/render-html.js'
import { renderSvgFile } from '../../pictures/page/render-svg.js'
import { COLOURS } from '../../pictures/style.js'
import { changeAnswer, mapAnswer } from './samples.js'

const PARTS = { script: '', hash: () => 'sha256-x', foot: '' }
const page = (answer: object) => renderHtmlFile(drawPicture('map', [answer]), PARTS)
const MiB = 1024 * 1024

t.test('300 groups and 3,000 lines: folded to be read, whole on demand, every line in the table, within 1 MiB', (t) => {
  const answer = mapAnswer(300, 3000)
  const html = page(answer)
  t.ok(Buffer.byteLength(html) <= MiB, `${Buffer.byteLength(html)} bytes`)
  const [folded = '', whole = ''] = html.split('<svg class="pic" viewBox').slice(1)
  const nodes = (svg: string) => svg.match(/<g class="node"/g)?.length ?? 0
  t.ok(nodes(folded) < 60, `${nodes(folded)} nodes to look at`)
  t.equal(nodes(whole), 312)
  t.equal(whole.match(/data-f="/g)?.length, 3000)
  t.equal(html.match(/<td class="n">/g)?.length, 3000)
  t.equal(page(answer), html, 'the same answer is the same page')
  t.end()
})

t.test('what does not fit is cut and counted', (t) => {
  const long = 'x'.repeat(240)
  const html = page(mapAnswer(300, 3000, (at) => `${long}${at}`))
  t.ok(Buffer.byteLength(html) <= MiB, `${Buffer.byteLength(html)} bytes`)
  const rows = html.match(/<td class="n">/g)?.length ?? 0
  const [, cut = ''] = /of which the last ([\d,]+) are left out here for size/.exec(html) ?? []
  t.equal(rows + Number(cut.replace(',', '')), 3000)
  t.end()
})

const LEFT_OUT = /<li><bdi>(The drawing “.*?” is left out: it is too large for a page\.)<\/bdi>/g
const leftOut = (html: string) => [...html.matchAll(LEFT_OUT)].map(([, words]) => words)

t.test('a drawing that leaves no room for the facts is left out, and what is folded stays', (t) => {
  const answer = mapAnswer(1000, 12_000)
  const html = page(answer)
  t.ok(Buffer.byteLength(html) <= MiB, `${Buffer.byteLength(html)} bytes`)
  t.same(leftOut(html), ['The drawing “All 1012” is left out: it is too large for a page.'])
  t.notMatch(html, /unfolds them/, 'what is not there is not offered')
  t.equal(html.match(/<svg class="pic" viewBox/g)?.length, 1)
  const rows = html.match(/<td class="n">/g)?.length ?? 0
  t.ok(rows > 5000, `${rows} rows`)
  t.ok(
    html.includes(`These tables have ${rows.toLocaleString('en')} of 12,000 rows: the others are left out for size.`),
  )

  const wanted = renderHtmlFile(drawPicture('map', [answer], { most: 10_000 }), PARTS)
  t.ok(Buffer.byteLength(wanted) <= MiB, `${Buffer.byteLength(wanted)} bytes`)
  t.same(leftOut(wanted), ['The drawing “Map” is left out: it is too large for a page.'])
  t.match(wanted, /“Folded further” has the 29 busiest/)
  t.match(wanted, /class="fold"/)
  t.same(leftOut(page(mapAnswer(300, 3000))), [], 'not where there is room')
  t.end()
})

t.test('a picture of one drawing that is too large keeps its tables', (t) => {
  const long = 'x'.repeat(40_000)
  const html = renderHtmlFile(drawPicture('change', [changeAnswer({ objects: 25, name: long })]), PARTS)
  t.ok(Buffer.byteLength(html) <= MiB, `${Buffer.byteLength(html)} bytes`)
  t.same(leftOut(html), ['The drawing “Change” is left out: it is too large for a page.'])
  t.match(html, /Too large to be drawn in a page\.[^]*<tbody><tr>/)
  t.end()
})

t.test('ten groups are all drawn, and connections of folded groups are not lost', (t) => {
  const small = mapAnswer(10, 30)
  t.notMatch(page(small), /class="fold"/)
  const picture = drawPicture('map', [mapAnswer(80, 600)], { withWhole: false })
  t.match(renderSvgFile(picture), /class="fold"/)
  const drawn = [...renderSvgFile(picture).matchAll(/more<\/text>/g)]
  t.ok(drawn.length > 0)
  t.end()
})

/** Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB. */
const SIGHTS: Readonly<Record<string, readonly (readonly number[])[]>> = {
  everyone: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

const linear = (hex: string) =>
  [1, 3, 5]
    .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
const seen = (rgb: readonly number[], sight: readonly (readonly number[])[]) =>
  sight.map((row) =>
    Math.min(
      1,
      Math.max(
        0,
        row.reduce((sum, factor, at) => sum + factor * rgb[at]!, 0),
      ),
    ),
  )
function lab(rgb: readonly number[]): [number, number, number] {
  const xyz = [
    [0.4124, 0.3576, 0.1805],
    [0.2126, 0.7152, 0.0722],
    [0.0193, 0.1192, 0.9505],
  ].map((row) => row.reduce((sum, factor, at) => sum + factor * rgb[at]!, 0))
  const [x, y, z] = xyz
    .map((value, at) => value / [0.9505, 1, 1.089][at]!)
    .map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116)) as [number, number, number]
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}
const light = (rgb: readonly number[]) => 0.2126 * rgb[0]! + 0.7152 * rgb[1]! + 0.0722 * rgb[2]!

t.test('decisions can be told apart by every kind of sight, and lines and texts seen', (t) => {
  const decisions = ['allowed', 'potentially_blocked', 'blocked', 'unknown'] as const
  for (const [theme, colours] of Object.entries(COLOURS)) {
    const ground = light(linear(colours.page))
    const contrast = (name: keyof typeof colours) => {
      const [a, b] = [light(linear(colours[name])), ground]
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    }
    for (const name of decisions) t.ok(contrast(name) >= 3, `${theme}: ${name} ${contrast(name).toFixed(1)}`)
    for (const name of ['text', 'soft'] as const) t.ok(contrast(name) >= 4.5, `${theme}: ${name}`)
    for (const [sight, matrix] of Object.entries(SIGHTS))
      for (const [at, one] of decisions.entries())
        for (const other of decisions.slice(at + 1)) {
          const [a, b] = [one, other].map((name) => lab(seen(linear(colours[name]), matrix)))
          const distance = Math.hypot(...a!.map((value, axis) => value - b![axis]!))
          t.ok(distance >= 20, `${theme}, ${sight}: ${one} and ${other} are ${distance.toFixed(0)} apart`)
        }
  }
  t.end()
})

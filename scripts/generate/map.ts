import assert from 'node:assert/strict'
import { drawPicture } from '../../pictures/draw-picture.js'
import { renderSvgFile } from '../../pictures/page/render-svg.js'
import { benchOf, WEEK } from '../../test/tools/harness.js'
import { demoEstate } from '../examples/run-job.js'
import type { Generator } from './generator.js'

/**
 * Maximum number of groups on the map. The page shows the map about 900 pixels wide, so the names of more groups would
 * be unreadable.
 */
const MOST_GROUPS = 16

/** Generates docs/map.svg: the application map of the demo's estate at a fixed time. */
export const map: Generator = {
  async files() {
    const simulator = await demoEstate()
    const closing: (() => unknown)[] = [() => simulator.close()]
    const owner = { teardown: (close: () => unknown) => void closing.unshift(close), equal: assert.equal }
    try {
      const bench = benchOf(owner, simulator, await simulator.listen(), { budget: 800_000 })
      const answer: unknown = await bench.ok('get-traffic-flows-summary', {
        ...WEEK,
        sections: ['app_to_app'],
        detail_level: 'full',
      })
      const picture = drawPicture('map', [answer as object], { most: MOST_GROUPS, withWhole: false })
      return new Map([['docs/map.svg', renderSvgFile(picture)]])
    } finally {
      for (const close of closing) await close()
    }
  },
}

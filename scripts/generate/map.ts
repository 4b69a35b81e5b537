/** `npm run demo-map`: draws docs/map.svg, the application map of the demo's estate at a fixed instant; `--check` only says whether it is current. */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { drawPicture } from '../pictures/draw-picture.js'
import { renderSvgFile } from '../pictures/page/render-svg.js'
import { benchOf, WEEK } from '../test/tools/harness.js'
import { demoEstate } from './examples/run-job.js'
import { syncFiles } from './sync-files.js'

/** The page shows it about 900 pixels wide: with more groups the names are too small to read. */
const MOST_GROUPS = 16

const simulator = await demoEstate()
const closing: (() => unknown)[] = [() => simulator.close()]
const owner = { teardown: (close: () => unknown) => void closing.unshift(close), equal: assert.equal }
const bench = benchOf(owner, simulator, await simulator.listen(), { budget: 800_000 })
const answer: unknown = await bench.ok('get-traffic-flows-summary', {
  ...WEEK,
  sections: ['app_to_app'],
  detail_level: 'full',
})
for (const close of closing) await close()
const picture = drawPicture('map', [answer as object], { most: MOST_GROUPS, withWhole: false })
const fine = syncFiles(new Map([['docs/map.svg', renderSvgFile(picture)]]), {
  root: fileURLToPath(new URL('..', import.meta.url)),
  check: process.argv.includes('--check'),
  command: '`npm run demo-map`',
  say: (line) => console.error(line.slice(0, 160)),
})
process.exit(fine ? 0 : 1)

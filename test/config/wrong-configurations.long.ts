/** Every wrong configuration of docs/wrong-configurations.md, started for real: the page says what they are answered. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { PAGE, renderPage, tryAll } from './wrong-configurations/render-page.js'

/** Seconds: a pipe without a writer is given up after five, and nothing else takes long. */
const PATIENCE = 15

t.test('each is answered as the page says', async (t) => {
  const tried = await tryAll(t)
  const all = tried.flat()
  t.equal(new Set(all.map(({ wrong: { make: _, ...rest } }) => JSON.stringify(rest))).size, all.length, 'each once')
  t.equal(all.length >= 112, true, `${all.length} are enough`)
  for (const { wrong, outcome } of all) {
    const { refusals, warnings, answer, exitCode, seconds } = outcome
    const said = [...refusals, ...warnings, ...(answer === undefined ? [] : [answer])]
    t.equal(said.length > 0, true, `${JSON.stringify(wrong)} is not passed over in silence`)
    t.equal(exitCode, refusals.length > 0 ? 1 : null, JSON.stringify(wrong))
    t.equal(seconds < PATIENCE, true, `${JSON.stringify(wrong)} takes ${seconds} s`)
    t.notMatch(
      JSON.stringify(said),
      /\n\s+at |unexpected error|\[object|undefined|NaN/,
      'foreseen, and nothing half rendered',
    )
  }
  const [is, says] = [renderPage(tried), readFileSync(PAGE, 'utf8')].map((page) => page.split('\n'))
  t.same(is, says, '`npm run wrong-configurations` writes it')
})

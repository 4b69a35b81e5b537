/** Wrong configurations that show only when a program runs, each started for real: it is told with its remedy, in exactly these words. */
import t from 'tap'
import { checkCases } from './wrong-configurations/check-cases.js'
import { setStage } from './wrong-configurations/set-stage.js'
import { STARTS, type WrongSettings } from './wrong-configurations/starts.js'
import { tryCase } from './wrong-configurations/try-case.js'
import { WRONG_STARTS } from './wrong-configurations/wrong-starts.js'

const stage = await setStage(t)
const right = new Map<WrongSettings['start'], readonly string[]>()
for (const start of Object.keys(STARTS) as WrongSettings['start'][]) {
  const { exitCode, warned } = await tryCase({ start }, stage)
  t.equal(exitCode, start === 'nothing' ? 1 : null, `nothing is wrong with ${start}`)
  right.set(start, warned)
}

await checkCases(t, WRONG_STARTS, async (wrong) => {
  const { exitCode, ...told } = await tryCase(wrong, stage, right.get(wrong.start))
  t.equal(exitCode, told.refused.length > 0 ? 1 : null, JSON.stringify(wrong))
  return told
})

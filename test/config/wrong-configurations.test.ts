/** Wrong settings of every kind: each is told with its remedy, in exactly these words. Nothing is started for them. */
import t from 'tap'
import { readCase } from './wrong-configurations/read-case.js'
import { setEmptyStage } from './wrong-configurations/set-stage.js'
import { WRONG_SETTINGS } from './wrong-configurations/settings.js'
import { STARTS, type WrongSettings } from './wrong-configurations/starts.js'
import { checkCases } from './wrong-configurations/check-cases.js'

const stage = setEmptyStage(t)
const right = new Map<WrongSettings['start'], readonly string[]>()
for (const start of Object.keys(STARTS) as WrongSettings['start'][]) {
  const { refused, warned } = await readCase({ start }, stage)
  if (start !== 'nothing') t.same(refused, [], `nothing is wrong with ${start}`)
  right.set(start, warned)
}

await checkCases(t, WRONG_SETTINGS, (wrong) => readCase(wrong, stage, right.get(wrong.start)))

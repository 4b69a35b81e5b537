import t from 'tap'
import { startPce } from './start-pce.js'

t.test('an unknown profile is refused with the names of the known ones', async (t) => {
  await t.rejects(startPce(t, { reality: 'core-9' as 'lab' }), {
    message: 'reality must be one of lab, core-25.2, not "core-9"',
  })
})

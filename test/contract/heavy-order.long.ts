/** The order in which calls add to an object is that of the process, whichever thread they run in. */
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { tools } from '../../tools/index.js'
import { compiled } from '../suite-folder.js'
import { handMade } from '../tools/hand-made.js'
import { startPce } from './heavy-tools.js'
import { insecureApp, textOf } from './insecure-app.js'

const WORKER = pathToFileURL(compiled('programs/worker.ts'))
const estate = handMade({
  hosts: { 'pay-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' } },
  ruleSets: [{ name: 'Pay', scope: 'app=pay env=prod' }],
})

t.test('two ringfences for one application at once, in two threads, write each rule once', async (t) => {
  const pce = await startPce(t, { estate })
  const { app, call } = await insecureApp(tools, { pce: pce.config }, { worker: WORKER })
  t.teardown(() => app.close())
  // The PCE takes its time to write, so that both would write if neither waited for the other.
  pce.simulator.faults.add({ kind: 'slow', path: /\/sec_rules$/u, method: 'POST', times: 2, delayMs: 500 })
  const args = { app_name: 'pay', env_name: 'prod', ruleset_name: 'Pay' }
  const answers = await Promise.all([call('create-ringfence', args), call('create-ringfence', args)])
  const posted = pce.simulator.requests.filter(
    ({ method, path }) => method === 'POST' && /\/(?:sec|deny)_rules$/u.test(path),
  )
  t.equal(posted.length, 1, JSON.stringify(answers.map(textOf)))
  t.same(
    answers.map((answer) => textOf(answer).error ?? 'written').sort(),
    ['already_exists', 'written'],
    'one of them says that the rule set was changed during its call',
  )
})

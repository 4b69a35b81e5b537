/** A closure that is confirmed is planned again before it is written, and is what was confirmed or nothing. */
import t from 'tap'
import { partial } from '../partial.js'
import type { Json } from '../tools/harness.js'
import { startConfirming } from './harness.js'

const TOOL = 'plan-port-closure'
const ARGS = { services: ['SMB'] }

t.test('a service that changes after the look of the gate is not closed', async (t) => {
  const bench = await startConfirming(t)
  const [smb] = (await bench.pce.services.getAll()).filter(({ name }: Json) => name === 'SMB')
  const token = await bench.tokenFor(TOOL, ARGS)
  bench.writes()
  // The gate counts the workloads at the end of its plan, and then the tool does at the end of its own.
  let looks = 0
  const { workloads } = bench.pce
  const scan = workloads.scan.bind(workloads)
  workloads.scan = async (...given) => {
    looks += 1
    if (looks === 2) await bench.pce.services.update(smb!.href, { service_ports: [{ port: 139, proto: 6 }] })
    return scan(...given)
  }
  const answer = await bench.call(TOOL, ARGS, { token })
  partial(t, answer, { error: 'confirm_required', reason: 'stale', message: /has changed since it was confirmed/ })
  t.same(
    bench.writes().filter(({ path }) => path.includes('/rule_sets')),
    [],
  )
  t.ok((await bench.call(TOOL, ARGS, { token: await bench.tokenFor(TOOL, ARGS) })).ok, 'and can be confirmed anew')
})

/** Two servers over one database: whichever of them a run or a decision comes to, and how close to another one, one of them counts. */
import t from 'tap'
import { startApproving } from '../approval/bench.js'
import { databaseOf } from './database-of.js'
import { sharedPostgres } from './start-postgres.js'

const TOOL = 'create-label'
const PAIRS = Number(process.env.APPROVAL_PAIRS ?? 50)

t.test('two servers: of runs, of decisions and of both at a time, one counts', async (t) => {
  const database = await (await sharedPostgres()).makeDatabase()
  const bench = await startApproving(t, { database: databaseOf(database.url), confirm: { tools: [TOOL] } })
  const other = await startApproving(t, { after: bench, confirm: { tools: [TOOL] } })
  const at = [bench, other]
  const argumentsOf = (n: number) => ({ key: 'app', value: `label ${n}` })
  const added = () =>
    bench.simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/labels')).length
  let runs = 0
  for (let n = 0; n < PAIRS; n++) {
    const { approval_id: id } = await bench.call('ann', TOOL, argumentsOf(n))
    const ann = bench.person('ann')
    // In every other pair a person has approved before; in the rest one approves and one denies at the same time.
    const isApproved = n % 2 === 0
    if (isApproved) await bench.decide(id, 'approved', ann)
    const answers = Promise.all(at.map((one) => one.call('ann', TOOL, argumentsOf(n))))
    const decisions = await Promise.all(
      at.map((one, k) =>
        one.decide(id, k === (n % 4) >> 1 ? 'denied' : 'approved', bench.person(k === 0 ? 'ann' : 'adam')),
      ),
    )
    t.equal(decisions.filter(({ won }) => won).length, isApproved ? 0 : 1)
    await answers
    const verdict = decisions[0]!.approval.decision!.verdict
    t.same(
      decisions.map(({ approval }) => approval.decision!.verdict),
      [verdict, verdict],
    )
    // Whichever of the two calls came too early is repeated by its client, and so is the other.
    await Promise.all(at.map((one) => one.call('ann', TOOL, argumentsOf(n))))
    if (verdict === 'approved') runs++
    t.equal(added(), runs, `${n}: ${verdict}`)
  }
})

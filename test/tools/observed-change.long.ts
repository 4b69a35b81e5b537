/**
 * On random estates: what the dry run of a change of policy says is cut is what explain-flow says once the change is written and
 * provisioned, connection by connection, as far as it is certain.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench } from './harness.js'
import { randomCase } from './random-estate.js'

const PROTOCOLS: Record<number, string> = { 6: 'tcp', 17: 'udp' }
const MOST_FLOWS = 8
const RANDOM = { numRuns: 20, seed: 20261201, endOnFailure: true }

const deny = fc.record({
  providers: fc.constantFrom('ams', 'role=web', 'app=pay', 'workload:pay-1', 'iplist:Farm').map((to) => [to]),
  consumers: fc
    .constantFrom('ams', 'iplist:Any (0.0.0.0/0 and ::/0)', 'iplist:Office', 'app=crm', 'workload:bare-1')
    .map((from) => [from]),
  ingress_services: fc.constantFrom(['All Services'], ['web'], [{ port: 22, to_port: 9000, proto: 'tcp' }]),
  unscoped_consumers: fc.boolean(),
  override_deny: fc.boolean(),
})
/** `at` chooses a rule or a rule set of those that are there. */
const randomChange = fc.oneof(
  fc.record({ is: fc.constant('deny' as const), at: fc.nat(99), rule: deny }),
  fc.record({ is: fc.constantFrom('delete', 'disable', 'narrow', 'remove', 'switch off', 'list'), at: fc.nat(99) }),
)
type RandomChange = { is: string; at: number; rule?: object }

/** The call that makes the change; null if the estate has nothing to change in this way. */
async function callOf({ pce }: Bench, { is, at, rule }: RandomChange): Promise<[string, object] | null> {
  const ruleSets = (await pce.ruleSets.getAll()).sort((a, b) => (a.href < b.href ? -1 : 1))
  const rules = ruleSets.flatMap((one) => one.rules ?? [])
  const ruleSet = ruleSets[at % ruleSets.length]
  const href = rules[at % rules.length]?.href
  if (is === 'list') return ['update-iplist', { name: 'Servers', ip_ranges: [{ from_ip: '10.0.2.0/24' }] }]
  if (is === 'deny') return ruleSet === undefined ? null : ['create-deny-rule', { ruleset_href: ruleSet.href, ...rule }]
  if (is === 'remove') return ruleSet === undefined ? null : ['delete-ruleset', { href: ruleSet.href }]
  if (is === 'switch off')
    return ruleSet === undefined ? null : ['update-ruleset', { href: ruleSet.href, enabled: false }]
  if (href === undefined) return null
  if (is === 'delete') return ['delete-sec-rule', { href }]
  return ['update-sec-rule', { href, ...(is === 'disable' ? { enabled: false } : { consumers: ['role=web'] }) }]
}

async function explain({ ok }: Bench, { flows = [] }: HandMadeEstate): Promise<string[]> {
  const verdicts: string[] = []
  for (const { from, to, port, proto = 6 } of flows) {
    const args = { source: from, destination: to, port, proto: PROTOCOLS[proto], lookback_days: 0 }
    verdicts.push((await ok('explain-flow', args)).active.verdict)
  }
  return verdicts
}

async function check(t: Test, estate: HandMadeEstate, change: RandomChange, sums: Record<string, number>) {
  const bench = await startBench(t, { estate: handMade(estate) })
  try {
    const call = await callOf(bench, change)
    if (call === null) return
    const [tool, args] = call
    const before = await explain(bench, estate)
    const { observed } = await bench.ok(tool, { ...args, dry_run: true })
    await bench.ok(tool, args)
    const { state } = bench.simulator
    if (state.pendingHrefs().length > 0) await bench.pce.provisionPolicyChanges('x', state.pendingHrefs())
    const after = await explain(bench, estate)
    const isOpen = (verdict: string | undefined) => verdict === 'uncertain' || verdict === 'split'
    let [cut, open] = [0, 0]
    for (const [at, { connections = 1 }] of (estate.flows ?? []).entries()) {
      if (isOpen(before[at]) || isOpen(after[at])) open += connections
      else if (before[at] !== 'blocked' && after[at] === 'blocked') cut += connections
    }
    const said = observed?.connections ?? { cut: 0, cut_once_enforced: 0, undecided: 0, not_affected: 0 }
    for (const [fate, count] of Object.entries<number>(said)) sums[fate] = (sums[fate] ?? 0) + count
    // Every flow is a bit of these sums.
    if ((said.cut & ~(cut | open)) !== 0 || (cut & ~(said.cut | said.undecided)) !== 0)
      throw new Error(
        `${tool} ${JSON.stringify(args)}: ${JSON.stringify(said)} were said, ${cut} are cut, ${open} open`,
      )
  } finally {
    bench.pce.close()
    await bench.simulator.close()
  }
}

t.test('what a dry run says is cut is cut', async (t) => {
  const sums: Record<string, number> = {}
  const details = await fc.check(
    fc.asyncProperty(randomCase, randomChange, async ({ estate }, change) => {
      const distinct = new Map(
        (estate.flows ?? [])
          .filter(({ from, to, proto = 6 }) => from !== to && proto in PROTOCOLS)
          .map((flow) => [`${flow.from} ${flow.to} ${flow.port} ${flow.proto}`, flow]),
      )
      // Each has a number of connections of its own, so that a sum tells which of them are in it.
      const flows = [...distinct.values()].slice(0, MOST_FLOWS).map((flow, at) => ({ ...flow, connections: 2 ** at }))
      await check(t, { ...estate, flows }, change, sums)
    }),
    RANDOM,
  )
  t.notOk(
    details.failed,
    `${String(details.errorInstance)} ${fc.defaultReportMessage(details) ?? `held for ${details.numRuns} estates`}`,
  )
  for (const fate of ['cut', 'cut_once_enforced', 'undecided', 'not_affected'])
    t.ok(sums[fate]! > 0, `${fate} was said: ${JSON.stringify(sums)}`)
})

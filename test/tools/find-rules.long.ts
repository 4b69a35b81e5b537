/**
 * find-rules over random estates: with the rule search of the PCE and without it every question has the same answer, and the rules that apply
 * to a workload are those that the simulator's own evaluator resolves.
 */
import fc from 'fast-check'
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'
import { randomCase } from './random-estate.js'

const ENDS = [
  'ams',
  'iplist:Office',
  'iplist:Servers',
  'app=pay',
  'app=crm',
  'role=web',
  'role=db',
  'env=prod',
  'workload:pay-1',
]
const end = fc.constantFrom(...ENDS)
const question = fc
  .record(
    {
      actor: end,
      provider: end,
      consumer: end,
      service: fc.constantFrom('web', 'updates', 'update server', 'all tcp'),
      rule_type: fc.constantFrom('allow', 'deny', 'override_deny'),
      enabled: fc.boolean(),
      pending: fc.constantFrom('create', 'update', 'delete', 'any', 'none'),
      policy_version: fc.constantFrom('draft', 'active'),
      author: fc.constant('admin@example.com'),
    },
    { requiredKeys: [] },
  )
  .filter((asked) => Object.keys(asked).length <= 4)

const counts = { both: 0, found: 0, applying: 0 }

t.test('both ways find the same, and what applies is what the evaluator resolves', { timeout: 400_000 }, async (t) => {
  const cases = fc.sample(fc.tuple(randomCase, fc.array(question, { minLength: 8, maxLength: 8 })), {
    numRuns: 30,
    seed: 29,
  })
  for (const [{ estate, toggled }, questions] of cases) {
    const bench = await startBench(t, { estate: handMade(estate) })
    const { pce, simulator } = bench
    const all = (await bench.ok('find-rules', { max_results: 500 })).rules as Json[]
    for (const at of toggled) {
      const { href, rule_type: type, enabled } = all[at % Math.max(1, all.length)] ?? {}
      if (href === undefined) continue
      await (type === 'allow' ? pce.rules : pce.denyRules).update(href, { enabled: !enabled })
    }
    for (const asked of questions) {
      const searched = await bench.ok('find-rules', asked)
      simulator.faults.add({ kind: 'status', path: /rule_search/, times: 9, status: 404, body: [] })
      const own = await bench.ok('find-rules', asked)
      simulator.faults.clear()
      t.same(
        [own.rules, own.counts, own.total_count],
        [searched.rules, searched.counts, searched.total_count],
        JSON.stringify(asked),
      )
      t.equal(own.found_by, 'own')
      if (searched.found_by === 'rule_search') counts.both += 1
      counts.found += searched.total_count
    }
    for (const workload of (await pce.workloads.getPage('draft', null)).items.slice(0, 4))
      for (const [side, as] of [
        ['providers', 'provider'],
        ['consumers', 'consumer'],
      ] as const) {
        const resolved = await pce.searchRules(
          { [side]: [{ workload: { href: workload.href } }], resolve_actors: true },
          'draft',
        )
        const active = resolved.filter((one) => one.enabled && one.rule_set?.enabled === true)
        const wanted = active.map(({ href }) => href)
        // The search does not ask whether a workload that is named is within the scopes of the rule set; find-rules does.
        const isNamed = (one: Json) => one[side].some((end: Json) => end.workload?.href === workload.href)
        const sure = active.filter((one) => !isNamed(one)).map(({ href }) => href)
        const { rules } = await bench.ok('find-rules', { applies_to: workload.href, as, max_results: 500 })
        const hrefsOf = (some: Json[]) => some.map(({ href }) => href as string)
        const written = rules.filter((one: Json) => one.by_address === undefined && one.uncertain === undefined)
        const told = hrefsOf(rules)
        t.same(
          sure.filter((href) => !told.includes(href)),
          [],
          `${workload.name} as ${as}: none is missing`,
        )
        t.same(
          hrefsOf(written).filter((href) => !wanted.includes(href)),
          [],
          `${workload.name} as ${as}: none is too many`,
        )
        counts.applying += wanted.length
      }
  }
  t.ok(counts.both > 60 && counts.found > 5 && counts.applying > 100, JSON.stringify(counts))
})

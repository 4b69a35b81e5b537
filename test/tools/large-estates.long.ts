/**
 * The tools beyond the contract on large estates: 50,000 workloads with their VENs, 10,000 rules, 1,000 versions. Totals are exact, answers fit,
 * what was left out is said, and whoever else calls meanwhile is answered.
 */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

/** Beyond the envelope that MCP puts around an answer. */
const BUDGET = 24_000
const MOST_HELD = 600 * 2 ** 20

/** The answer, held against the budget, while another call is answered. */
async function ask(t: Test, bench: Bench, name: string, args: object): Promise<Json> {
  const before = process.memoryUsage().rss
  let isDone = false
  const asked = bench.ok(name, args).finally(() => (isDone = true))
  await bench.pce.get('labels', { params: { max_results: 0 } })
  t.notOk(isDone, `${name}: another request is answered meanwhile`)
  const answer = await asked
  t.ok(JSON.stringify(answer).length <= BUDGET, `${name}: fits`)
  t.ok(process.memoryUsage().rss - before < MOST_HELD, `${name}: memory`)
  return answer
}

t.test('50,000 workloads', async (t) => {
  const WORKLOADS = 50_000
  const bench = await startBench(t, { workloads: WORKLOADS, flows: 20_000, pollsUntilDone: 1 })
  const workloads: Json[] = await bench.pce.workloads.getAll()
  const labels = new Map<string, Json>((await bench.pce.labels.getAll()).map((label) => [label.href, label]))
  const labelOf = (one: Json, key: string) =>
    one.labels.map(({ href }: Json) => labels.get(href)).find((label: Json) => label.key === key)?.value
  const count = (test: (one: Json) => boolean) => workloads.filter(test).length
  const lack = (key: string) => count((one) => labelOf(one, key) === undefined)
  const isPayments = (one: Json) => labelOf(one, 'app') === 'payments' && labelOf(one, 'env') === 'prod'
  const payments = count(isPayments)
  const managed = (one: Json) => one.managed !== false

  await t.test('find-unlabelled-workloads', async (t) => {
    const answer = await ask(t, bench, 'find-unlabelled-workloads', {})
    const keys = ['role', 'app', 'env', 'loc']
    t.same(answer.missing_by_key, Object.fromEntries(keys.map((key) => [key, lack(key)])))
    t.equal(answer.workloads_total, WORKLOADS)
    t.equal(
      answer.total_count,
      count((one) => keys.some((key) => labelOf(one, key) === undefined)),
    )
    t.equal(answer.truncated, true)
  })

  await t.test('label-workloads', async (t) => {
    const set = { set: ['loc=new'], create_missing_labels: true, dry_run: true }
    const wanted = count((one) => labelOf(one, 'app') === 'payments')
    t.ok(wanted > 2000)
    const plan = await ask(t, bench, 'label-workloads', { selection: { labels: 'app=payments' }, ...set })
    partial(t, plan, { matched: wanted, changed: wanted, already: 0 })
    const cut = Number(/^(\d+) more workloads not shown/.exec(plan.changes_cut)?.[1])
    t.equal(plan.changes.data.length + cut, wanted)
    const tooMany = count((one) => labelOf(one, 'env') === 'prod')
    const refused = await bench.fails(
      'label-workloads',
      { selection: { labels: 'env=prod' }, ...set },
      'invalid_argument',
    )
    t.equal(refused.matched, tooMany)
    t.same(bench.writes(), [])
  })

  await t.test('enforcement', async (t) => {
    const change = { app_name: 'payments', env_name: 'prod', enforcement_mode: 'full' }
    const preview = await ask(t, bench, 'preview-enforcement-change', change)
    const plan = await ask(t, bench, 'set-enforcement-mode', { ...change, dry_run: true })
    t.equal(preview.selection.workloads, payments)
    t.equal(plan.selection.workloads, payments)
    t.same(plan.connections, preview.connections)
    t.equal(
      plan.selection.changing,
      count((one) => isPayments(one) && managed(one) && one.enforcement_mode !== 'full'),
    )
    t.match(plan.warnings.at(-1), /^The answer is too large to show in full: each list is cut to \d+ entries\.$/)
    t.same(bench.writes(), [])
  })

  await t.test('explain-flow', async (t) => {
    const asked = { source: 'env=prod', destination: 'app=payments', port: 8443, proto: 'tcp', lookback_days: 1 }
    const answer = await ask(t, bench, 'explain-flow', asked)
    // A flow can end at Kubernetes workloads, too.
    const ends: Json[] = [...workloads, ...(await bench.pce.kubernetesWorkloads.getAll())]
    const having = (key: string, value: string) => ends.filter((one) => labelOf(one, key) === value).length
    const prod = having('env', 'prod')
    t.ok(prod > 20_000)
    t.equal(answer.source.members, 20_000)
    t.equal(answer.destination.members, having('app', 'payments'))
    t.ok(answer.not_judged.includes(`Only 20000 of ${prod} workloads were judged.`))
    t.notOk(['allowed', 'blocked', 'potentially_blocked'].includes(answer.active.verdict))
  })

  await t.test('VENs', async (t) => {
    const vens = count(managed)
    const list = await ask(t, bench, 'get-vens', {})
    t.same([list.total_count ?? list.pce_total, list.truncated], [vens, true])
    const report = await ask(t, bench, 'ven-health-report', { detail_level: 'full' })
    t.equal(report.total, vens)
    for (const counts of ['by_status', 'by_health', 'by_version', 'by_os', 'by_mode', 'by_type'])
      t.equal(
        Object.values<number>(report[counts]).reduce((sum, one) => sum + one, 0),
        vens,
        counts,
      )
    t.equal(
      report.offline_total,
      count((one) => managed(one) && one.online === false),
    )
  })
})

t.test('10,000 rules', async (t) => {
  const APPS = 500
  const ROLES = ['web', 'app', 'db', 'mq']
  const each = Array.from({ length: APPS }, (_, at) => at)
  const service = (at: number) => `svc-${at % 100}`
  const estate = handMade({
    hosts: Object.fromEntries(
      each.flatMap((at) =>
        ROLES.map((role, n) => [
          `a${at}-${role}`,
          { ip: `10.${at >> 8}.${at & 255}.${n}`, labels: `app=a${at} env=prod role=${role}`, mode: 'full' as const },
        ]),
      ),
    ),
    services: Object.fromEntries(
      Array.from({ length: 101 }, (_, at) => [`svc-${at}`, { service_ports: [{ port: 1000 + at, proto: 6 }] }]),
    ),
    // The last two rules of each say the same; of a denying one there is one of each kind.
    ruleSets: each.map((at) => ({
      name: `a${at} | prod`,
      scope: `app=a${at} env=prod`,
      allow: [
        ...Array.from({ length: 16 }, (_, n) =>
          n < 8
            ? { from: `role=${ROLES[n % 4]}`, to: `role=${ROLES[(n + 1) % 4]}`, services: [service(2 * n)] }
            : {
                from: `app=a${(at + n) % APPS}`,
                to: `role=${ROLES[n % 4]}`,
                services: [service(7 * at + n)],
                extra: true,
              },
        ),
        ...[0, 1].map(() => ({ from: 'role=web', to: 'role=web', services: [service(at)] })),
      ],
      deny: [{ from: 'any', to: 'role=db', services: [{ port: 22, proto: 6 }], extra: true }],
      override: [{ from: `app=a${(at + 1) % APPS}`, to: 'role=mq', services: [{ port: 23, proto: 6 }], extra: true }],
    })),
    labels: ['app=nobody'],
  })
  const bench = await startBench(t, { estate })

  const all = await ask(t, bench, 'find-rules', {})
  t.same([all.total_count, all.truncated], [10_000, true])
  t.same(all.counts, { allow: 9000, deny: 500, override_deny: 500 })
  const own = await ask(t, bench, 'find-rules', { applies_to: 'a7-mq', rule_type: 'override_deny', as: 'provider' })
  t.same(
    own.rules.map((rule: Json) => rule.rule_set),
    ['a7 | prod'],
  )

  const redundant = await ask(t, bench, 'find-redundant-rules', { kinds: ['duplicate'] })
  t.equal(redundant.counts.duplicate, APPS, 'of the two that say the same, one')
  t.same(redundant.rules_compared, { allow: 9000, deny: 500, override_deny: 500 })

  const unused = await ask(t, bench, 'find-unused', {})
  partial(t, unused.counts, { labels: 1, services: 1, rule_sets: 0, rules: 0 })

  const flow = { source: 'a7-web', destination: 'a9-db', port: 9999, proto: 'tcp' }
  const suggested = await ask(t, bench, 'suggest-rule', flow)
  t.equal(suggested.suggestion.ruleset, 'a9 | prod')
  partial(t, suggested.opens, { pairs: 1, asked: 1, beyond: 0 })
  const many = await ask(t, bench, 'explain-flow', { ...flow, source: 'env=prod', destination: 'env=prod' })
  partial(t, many.pairs, { total: 2000 * 1999, judged: 4000 })
  t.equal(many.active.verdict, 'uncertain')
})

t.test('1,000 versions', async (t) => {
  const VERSIONS = 1000
  const LIST = '/orgs/1/sec_policy/draft/ip_lists/2'
  const bench = await startBench(t, {
    estate: handMade({ ipLists: { Office: ['10.0.0.0/8'], Other: ['10.0.0.0/8'] } }),
  })
  for (let at = 2; at <= VERSIONS; at++) {
    await bench.pce.ipLists.update(at === 500 ? LIST.replace(/2$/, '3') : LIST, { description: `version ${at}` })
    await bench.pce.provisionPolicyChanges(`change ${at}`, bench.simulator.state.pendingHrefs())
  }
  const list = await ask(t, bench, 'list-policy-versions', {})
  partial(t, list, { newest: VERSIONS, oldest: 1, truncated: true, pce_total: VERSIONS })
  const hundreds = await ask(t, bench, 'list-policy-versions', { text: '00' })
  t.same(
    hundreds.versions.map(({ version }: Json) => version),
    [1000, 900, 800, 700, 600, 500, 400, 300, 200, 100],
  )
  const compared = await ask(t, bench, 'compare-policy-versions', { from: 2, to: VERSIONS })
  t.same(compared.changes.map(({ name }: Json) => name).sort(), ['Office', 'Other'])
  const who = await ask(t, bench, 'who-changed', { name: 'Other', kind: 'ip_list' })
  partial(t, who.versions, { in_time: VERSIONS, total: VERSIONS, complete: false }, 'older ones were not looked into')
  const restored = await ask(t, bench, 'restore-policy-version', { version: 499, dry_run: true })
  t.equal(restored.changes_total, 2)
})

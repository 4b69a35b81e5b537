/**
 * A day of an operator, through the tools alone: prepare a change, look at it, provision it, see in the traffic that it did what it
 * was meant to, and take all of it back.
 */
import t from 'tap'
import { partial } from '../partial.js'
import { startBench, WEEK, type Json } from './harness.js'

/** Two laptops that billing, which enforces fully, shuts out. crm enforces selectively: there, what no rule denies passes. */
const AUDITOR = 'LT-ACOSTA'
const OTHER = 'LT-ADUBOIS'
const REVIEWED = ['crm-analytics', 'loyalty']

const addressesOf = ({ ip_addresses: text }: Json): string[] => (text as string).split(', ')

t.test("an operator's day", async (t) => {
  const bench = await startBench(t, { flows: 2000 })
  const { simulator } = bench

  const workloads = async (filter: object): Promise<Json[]> => {
    const { columns, data } = await bench.ok('get-workloads', filter)
    return data.map((row: Json[]) => Object.fromEntries(row.map((value, at) => [columns[at], value])))
  }
  const hrefOf = async (hostname: string): Promise<string> => {
    const named = (await workloads({ hostname })).filter((workload) => workload.hostname === hostname)
    t.equal(named.length, 1, `${hostname} is there`)
    return named[0].href
  }
  const [auditor, other] = [await hrefOf(AUDITOR), await hrefOf(OTHER)]

  /** What became of the connections from there to an application. */
  const decision = async (sources: string[], app: string): Promise<string> => {
    const { app_to_app: rows } = await bench.ok('get-traffic-flows-summary', {
      ...WEEK,
      include_sources: sources,
      include_destinations: [`app=${app}`, 'env=prod'],
    })
    return [...new Set(rows.map(({ policy }: Json) => policy))].join(' and ')
  }
  const decisions = async () => ({
    'auditor to billing': await decision([auditor], 'billing'),
    'other to billing': await decision([other], 'billing'),
    'jump hosts to billing': await decision(['app=jump-hosts'], 'billing'),
    'crm-analytics to crm': await decision(['app=crm-analytics'], 'crm'),
    'loyalty to crm': await decision(['app=loyalty'], 'crm'),
    'data-warehouse to crm': await decision(['app=data-warehouse'], 'crm'),
  })
  const before = await decisions()
  t.same(before, {
    'auditor to billing': 'blocked',
    'other to billing': 'blocked',
    'jump hosts to billing': 'allowed',
    'crm-analytics to crm': 'potentially_blocked',
    'loyalty to crm': 'potentially_blocked',
    'data-warehouse to crm': 'potentially_blocked',
  })
  partial(t, await bench.ok('compare-draft-active'), { status: 'in_sync' })

  // Labels and workloads act at once.
  const { label } = await bench.ok('create-label', { key: 'app', value: 'fee-audit' })
  const labels = [label.href, 'env=prod']
  const { workload: scanner } = await bench.ok('create-workload', {
    name: 'audit-scanner',
    ip_addresses: ['10.250.7.1'],
    labels: [
      { key: 'app', value: 'fee-audit' },
      { key: 'env', value: 'prod' },
    ],
  })
  const { previous } = await bench.ok('update-workload', { href: auditor, labels })
  partial(t, await bench.ok('compare-draft-active'), { status: 'in_sync' }, 'nothing of that is policy')

  // The draft: the auditor may see billing; what is under review is kept out of crm, but for an exception above that.
  const { service } = await bench.ok('create-service', {
    name: 'office front',
    service_ports: [{ port: 443, proto: 'tcp' }],
  })
  const reviewed = await Promise.all(REVIEWED.map((app) => workloads({ labels: [`app=${app}`, 'env=prod'] })))
  const list = await bench.ok('create-iplist', {
    name: 'hosts under review',
    ip_ranges: reviewed.flatMap((hosts) => hosts.flatMap(addressesOf)).map((from_ip) => ({ from_ip })),
  })
  const outside = { providers: ['ams'], unscoped_consumers: true }
  const { ruleset } = await bench.ok('create-ruleset', {
    name: 'fee audit',
    scopes: [
      ['app=billing', 'env=prod'],
      ['app=crm', 'env=prod'],
    ],
    rules: [
      { ...outside, consumers: labels, ingress_services: [{ service: 'office front' }] },
      { ...outside, consumers: ['app=loyalty', 'env=prod'], ingress_services: 'All Services' },
      { ...outside, consumers: ['iplist:hosts under review'], ingress_services: 'All Services', rule_type: 'deny' },
    ],
  })
  t.same(await decisions(), before, 'a draft changes nothing')

  t.equal((await bench.ok('compare-draft-active')).updated_by.name, 'admin@example.com', 'all of it is by one')
  const pending = await bench.ok('compare-draft-active', { detail_level: 'full' })
  partial(t, pending, { total_pending_changes: 3, created_count: 3, updated_count: 0, deleted_count: 0 })
  const changes = Object.fromEntries(pending.changes.created.map((change: Json) => [change.name, change]))
  partial(t, changes['fee audit'], {
    type: 'rule_sets',
    updated_by: { name: 'admin@example.com' },
    rules: [
      { change: 'added', rule_type: 'allow', effect: 'widening' },
      { change: 'added', rule_type: 'allow', effect: 'widening' },
      { change: 'added', rule_type: 'deny', effect: 'narrowing' },
    ],
  })
  t.notOk('effect' in changes['fee audit'], 'of all together it cannot be told')
  t.notOk('risks' in changes['fee audit'])
  t.equal(changes['hosts under review'].effect, 'neutral', 'the rule that uses it is what counts')

  // The rule set alone would be half a policy.
  const refusal = await bench.fails('provision-policy', { hrefs: [ruleset.href] }, 'dependencies_required')
  t.equal(refusal.required.length, 2)
  const whole = { hrefs: [ruleset.href], include_dependencies: true, change_description: 'fee audit' }
  const plan = await bench.ok('provision-policy', { ...whole, dry_run: true })
  t.equal(plan.dependencies_included.length, 2)
  t.ok(plan.impact.num_managed_workloads > 0)
  const version = simulator.state.policyVersion
  const done = await bench.ok('provision-policy', whole)
  partial(t, done, { version: version + 1, workloads_affected: Number, commit_message: 'fee audit' })
  t.ok(done.object_counts.rule_sets > 0)
  partial(t, await bench.ok('compare-draft-active'), { status: 'in_sync' })

  const intended = {
    'auditor to billing': 'allowed',
    'crm-analytics to crm': 'blocked',
    // The exception is a rule, where selective mode let it pass before.
    'loyalty to crm': 'allowed',
  }
  t.same(await decisions(), { ...before, ...intended }, 'one is let in, one is shut out, and nobody else notices')

  // A second thought: the exception goes.
  const exception = ruleset.rules[1].href
  await bench.ok('update-sec-rule', { href: exception, enabled: false })
  const [second] = (await bench.ok('compare-draft-active')).changes.updated
  partial(t, second, { name: 'fee audit', effect: 'narrowing', rules: [{ href: exception, change: 'changed' }] })
  partial(t, second.rules[0].fields, [{ field: 'enabled', draft: false, active: true }])
  await bench.ok('provision-policy', { hrefs: [exception] })
  t.same(await decisions(), { ...before, ...intended, 'loyalty to crm': 'blocked' })

  // And back: the policy first, then what it referred to.
  const referenced = await bench.fails('delete-iplist', { name: 'hosts under review' }, 'pce_error')
  partial(t, referenced.used_by, [{ name: 'fee audit' }])
  await bench.ok('delete-ruleset', { name: 'fee audit' })
  const [leaving] = (await bench.ok('compare-draft-active')).changes.deleted
  partial(t, leaving, {
    name: 'fee audit',
    rules: [{ change: 'removed' }, { change: 'removed' }, { change: 'removed' }],
  })
  t.equal(await decision([auditor], 'billing'), 'allowed', 'in force until it is provisioned')
  await bench.ok('provision-policy', { change_description: 'fee audit is over' })
  await bench.ok('delete-iplist', { href: list.href })
  await bench.ok('delete-service', { href: service.href })
  await bench.ok('provision-policy')
  await bench.ok('update-workload', { href: auditor, labels: previous.labels })
  await bench.ok('delete-workload', { href: scanner.href })
  await bench.ok('delete-label', { key: 'app', value: 'fee-audit' })

  partial(t, await bench.ok('compare-draft-active'), { status: 'in_sync' })
  t.same(await decisions(), before)
  t.same((await bench.ok('get-rulesets', { name: 'fee audit' })).rulesets, [])
  t.equal(simulator.state.policyVersion, version + 4)
})

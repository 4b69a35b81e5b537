/** What nothing uses, in estates whose right answers are known in full, and what has to be read before anything is called unused (T30). */
import t from 'tap'
import { handMade } from './hand-made.js'
import { NOW, startBench, type Bench, type Json } from './harness.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const DAY_MS = 86_400_000
const estate = () =>
  handMade({
    hosts: {
      web: { ip: '10.0.0.1', labels: 'app=pay env=prod role=web' },
      db: { ip: '10.0.0.2', labels: 'app=pay env=prod role=db' },
    },
    flows: [{ from: 'web', to: 'db', port: 5432, connections: 7 }],
    // Nothing bears the first four: a scope, a group, a profile and nobody use them.
    labels: ['app=scoped', 'app=grouped', 'loc=paired', 'loc=nowhere'],
    ipLists: { Used: ['10.1.0.0/16'], Unused: ['10.2.0.0/16'], Draft: ['10.3.0.0/16'] },
    services: {
      used: { service_ports: [{ port: 5432, proto: 6 }] },
      unused: { service_ports: [{ port: 1, proto: 6 }] },
    },
    ruleSets: [
      {
        name: 'pay',
        scope: 'app=pay env=prod',
        allow: [
          { from: 'role=web', to: 'role=db', services: ['used'] }, // 1
          { from: 'iplist:Used', to: 'role=web' }, // 2
          { from: 'role=db', to: 'role=web', enabled: false }, // 3
        ],
      },
      { name: 'empty', scope: 'app=scoped' },
    ],
  })
const names = (rows: Json[] | undefined) => rows?.map(({ name }) => name)

async function prepare(bench: Bench) {
  const { pce } = bench
  const labels = new Map<string, string>()
  for (const label of (await pce.labels.getPage('draft', null)).items)
    labels.set(`${label.key}=${label.value}`, label.href)
  const href = (text: string) => ({ href: labels.get(text) as string })
  await pce.labelGroups.create({ name: 'apps', key: 'app', labels: [href('app=grouped')] })
  await pce.pairingProfiles.create({ name: 'servers', enabled: true, labels: [href('loc=paired')] })
  // Only the draft uses it.
  await pce.rules.create(
    {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ ip_list: { href: `${DRAFT}/ip_lists/4` } }],
      ingress_services: [{ port: 9, proto: 6 }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    },
    `${DRAFT}/rule_sets/1`,
  )
}

t.test('the whole answer', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  await prepare(bench)
  bench.writes()
  const answer = await bench.ok('find-unused')
  t.same(names(answer.labels), ['app=grouped', 'loc=nowhere'])
  t.same(answer.labels[0].only_in, ['apps'], 'in a group that nothing uses')
  t.same(names(answer.label_groups), ['apps'])
  t.same(names(answer.ip_lists), ['Unused'])
  t.same(names(answer.services), ['unused'])
  t.same(answer.rule_sets, [{ href: `${DRAFT}/rule_sets/2`, name: 'empty', why: ['empty'], rules: 0 }])
  t.same(answer.rules, [
    {
      href: `${DRAFT}/rule_sets/1/sec_rules/3`,
      rule: 'role=db to role=web, All Services',
      rule_set: 'pay',
      updated_at: '2026-01-10T09:00:00.000Z',
    },
  ])
  t.same(answer.counts, { labels: 2, label_groups: 1, ip_lists: 1, services: 1, rule_sets: 1, rules: 1 })
  t.same(answer.excluded, { ip_lists: 1, services: 1 }, 'the built-in list and service')
  t.same(answer.excluded_why, ['"Any (0.0.0.0/0 and ::/0)": built in', '"All Services": built in'])
  t.equal(answer.established_by.labels[0], 'usage flags of the PCE')
  t.equal(
    answer.summary,
    'Unused: 2 labels, 1 label group, 1 IP list, 1 service, 1 empty or disabled rule set, 1 disabled rule. Not assessed: rule_hits.',
  )
  t.same(bench.writes(), [])

  await t.test('what was removed in the draft alone is still in use', async (t) => {
    const unused = async () => names((await bench.ok('find-unused', { kinds: ['services'] })).services)
    await bench.pce.rules.update(`${DRAFT}/rule_sets/1/sec_rules/1`, { ingress_services: [{ port: 5432, proto: 6 }] })
    t.same(await unused(), ['unused'], 'by a rule in force that is changed')
    await bench.pce.rules.delete(`${DRAFT}/rule_sets/1/sec_rules/1`)
    t.same(await unused(), ['unused'], 'and deleted')
  })

  await t.test('nothing is called unused where a source could not be read and no flag speaks for it', async (t) => {
    const { faults } = bench.simulator
    const refuse = (path: RegExp) => faults.add({ kind: 'status', path, times: 9, status: 403, body: [] })
    refuse(/pairing_profiles/)
    t.same(
      names((await bench.ok('find-unused', { kinds: ['labels'] })).labels),
      ['app=grouped', 'loc=nowhere'],
      'the flags do',
    )
    faults.clear()
    refuse(/label_mapping_rules/)
    const blind = await bench.ok('find-unused', { kinds: ['labels', 'ip_lists'] })
    faults.clear()
    t.same([blind.labels, names(blind.ip_lists)], [undefined, ['Unused']])
    t.match(blind.not_assessed.labels, /^label mapping rules could not be read: /)
    t.equal(blind.counts.labels, undefined)
  })
})

t.test('rules without hits, where the PCE counts them', async (t) => {
  let now = NOW
  const bench = await startBench(t, { estate: estate(), now: () => now })
  const { pce, simulator } = bench
  const hits = (args: object = {}): Promise<Json> => bench.ok('find-unused', { kinds: ['rule_hits'], ...args })
  const why = async (args: object = {}) => (await hits(args)).not_assessed.rule_hits as string
  const countIn = async (scopes: object[][]) => {
    await pce.firewallSettings.update({}, { rule_hit_count_enabled_scopes: scopes })
    await pce.provisionPolicyChanges('count', [`${DRAFT}/firewall_settings`])
  }
  /** A report as a PCE has it when it is finished; the simulator makes none. */
  const report = async (days: number, type = 'rule_hit_count_report') => {
    now += 60_000
    const { href } = await pce.reports.create({
      report_template: { href: `/orgs/1/report_templates/${type}` },
      report_parameters: {
        report_time_range: { last_num_days: days },
        ...(type.startsWith('rule') && { rule_sets: [] }),
      },
      status: 'done',
      generated_at: new Date(now).toISOString(),
    })
    return href
  }
  /** What the download of any report answers from now on: hits by the number of the rule. */
  const writeTable = (hits: Record<number, number>) => {
    const rule = (number: string) => `/orgs/1/sec_policy/active/rule_sets/1/sec_rules/${number}`
    const rows = Object.entries(hits).map(([number, count]) => `pay,${rule(number)},allow,${count}`)
    simulator.faults.clear()
    simulator.faults.add({
      kind: 'answer',
      path: /\/download$/,
      times: 9,
      body: ['Rule Set,Rule,Type,Hit Count', ...rows].join('\n'),
    })
  }

  await t.test(
    'is not assessed where nothing is counted, or not long enough, or nobody asked for a report',
    async (t) => {
      t.match(await why(), /^Counting hits is switched on for no workload /)
      t.match(await why(), / Counting takes PCE 23\.5\.10 \(hosted: 24\.2\.0\) and VEN 23\.2\.30\.$/)
      await countIn([[]])
      t.match(
        await why(),
        /^The firewall settings were changed on 2026-06-15T12:00:00.000Z, so that counting may have begun within the 30 days\./,
      )
      now = NOW - 60 * DAY_MS
      await countIn([[]])
      now = NOW
      t.match(await why(), /^There is no finished rule hit count report over 30 days or more; /)
      await report(30, 'traffic_export_report')
      await report(7)
      t.match(await why(), /^There is no finished rule hit count report over 30 days or more; /)
      simulator.faults.add({ kind: 'status', path: /\/reports/, times: 9, status: 403, body: [] })
      t.match(await why(), /^The reports could not be read: /)
      simulator.faults.clear()
    },
  )

  await t.test('names those that were counted everywhere over the whole window', async (t) => {
    const href = await report(30)
    writeTable({ 1: 7, 2: 0 })
    const answer = await hits()
    t.same(answer.rules_without_hits, [
      {
        rule_type: 'allow',
        href: `${DRAFT}/rule_sets/1/sec_rules/2`,
        rule: 'Used to role=web, All Services',
        rule_set: 'pay',
      },
    ])
    t.same(answer.rule_hits, {
      from: '2026-05-16T12:03:00.000Z',
      to: '2026-06-15T12:03:00.000Z',
      report: href,
      counts: { in_force: 2, hit: 1, without_hits: 1, younger_than_window: 0, partly_counted: 0, not_in_report: 0 },
    })
    t.equal(answer.summary, 'Unused: 1 rule without hits.')
    t.same((await hits({ hits_days: 7 })).rule_hits.report, href, 'the newest that covers as many days')
  })

  await t.test('not those that are younger, nor those of VENs that do not count', async (t) => {
    const rule = {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ ip_list: { href: `${DRAFT}/ip_lists/3` } }],
      ingress_services: [{ port: 9, proto: 6 }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    }
    const { href: added } = await pce.rules.create(rule, `${DRAFT}/rule_sets/1`)
    await pce.provisionPolicyChanges('one more', [`${DRAFT}/rule_sets/1`])
    t.same((await hits()).rule_hits.counts.not_in_report, 1, 'the report is older than the rule')
    await report(30)
    writeTable({ 1: 7, 2: 0, [Number(added.split('/').at(-1))]: 0 })
    t.same((await hits()).rule_hits.counts, {
      in_force: 3,
      hit: 1,
      without_hits: 1,
      younger_than_window: 1,
      partly_counted: 0,
      not_in_report: 0,
    })

    const labels = (await bench.ok('get-labels', { key: 'role', value: 'db' })).labels
    now = NOW - 60 * DAY_MS
    await countIn([[{ label: { href: labels[0].href } }]])
    now = NOW
    const { rule_hits: found, rules_without_hits: without } = await hits()
    t.same([found.counts.without_hits, found.counts.partly_counted, without], [0, 1, []], 'the web host is not counted')

    const body = (await pce.vens.getAll()).map((ven) => ({ ...ven, workloads: null }))
    simulator.faults.add({ kind: 'status', path: /\/orgs\/1\/vens$/, status: 200, body, times: 9 })
    t.same((await hits()).rule_hits.counts, found.counts, 'although its VEN names no workload')
  })

  await t.test('nor any where the columns of the report are not known', async (t) => {
    const body = 'Rule,Hits so far'
    simulator.faults.clear()
    simulator.faults.add({ kind: 'status', path: /\/download$/, times: 1, status: 200, body })
    t.match(await why(), /^The columns of the report are not known: "Rule,Hits so far"\./)
  })
})

/** Redundant rules of estates whose right answer is known in full (T31). */
import t from 'tap'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const HOSTS = {
  'pay-web': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web' },
  'pay-db': { ip: '10.0.0.2', labels: 'app=pay env=prod role=db' },
  'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod role=web' },
}
const WEB = { port: 443, proto: 6 }
const estate: HandMadeEstate = {
  hosts: HOSTS,
  labels: ['app=gone', 'env=dev'],
  ipLists: { Office: ['192.168.0.0/16'], Branch: ['192.168.7.0/24'] },
  services: { web: { service_ports: [{ port: 80, proto: 6 }, WEB] } },
  ruleSets: [
    {
      name: 'pay',
      scope: 'app=pay env=prod',
      allow: [
        { from: 'role=web', to: 'role=db', services: [{ port: 5432, proto: 6 }] }, // 1
        { from: 'role=web', to: 'role=db', services: [{ port: 5432, proto: 6 }] }, // 2: duplicate of 1
        { from: 'iplist:Office', to: 'role=web', services: ['web'] }, // 3
        { from: 'iplist:Branch', to: 'role=web', services: [WEB] }, // 4: covered by 3
        { from: 'app=crm', to: 'role=web', services: [{ port: 22, proto: 6 }], extra: true }, // 5: always denied by 10
        { from: 'role=web', to: 'env=dev', services: ['web'] }, // 6: nobody is prod and dev
        { from: 'role=web', to: 'role=web', services: [{ port: 1, to_port: 500, proto: 6 }] }, // 7
        { from: 'role=web', to: 'role=web', services: [{ port: 501, to_port: 900, proto: 6 }] }, // 8
        { from: 'role=web', to: 'role=web', services: [{ port: 400, to_port: 600, proto: 6 }] }, // 9: covered by 7 and 8
      ],
      override: [{ from: 'ams', to: 'role=web', services: [{ port: 22, proto: 6 }], extra: true }], // 10
    },
    {
      name: 'open',
      scope: '',
      allow: [{ from: 'ams', to: 'ams' }], // 11: any to any
    },
    {
      name: 'gone',
      scope: 'app=gone env=prod',
      allow: [{ from: 'role=web', to: 'role=db', services: [WEB], enabled: false }],
    },
  ],
}
/** What a finding says in short. */
const short = ({ kind, href, by }: Json) => [kind, idOf(href), ...(by ?? []).map((one: Json) => idOf(one.href))]
const idOf = (href: string) => Number(href.slice(href.lastIndexOf('/') + 1))

t.test('the whole answer', async (t) => {
  // The rule from anything to anything covers most of the others, so it is looked at without it first.
  const closed = { ...estate, ruleSets: estate.ruleSets!.filter(({ name }) => name !== 'open') }
  const bench = await startBench(t, { estate: handMade(closed) })
  const answer = await bench.ok('find-redundant-rules')
  t.same(answer.findings.map(short), [
    ['duplicate', 2, 1],
    ['covered', 4, 3],
    ['covered', 9, 7, 8],
    ['always_denied', 5, 10],
    ['names_nobody', 6],
  ])
  t.same(answer.counts, {
    duplicate: 1,
    covered: 2,
    always_denied: 1,
    names_nobody: 1,
    scope_without_workloads: 1,
  })
  t.equal(
    answer.summary,
    '5 of the 10 enabled rules of the draft can be removed, all of them at once, without changing what is decided about any connection. 1 rule set with scopes that none of 3 workloads is in.',
  )
  t.same(answer.rules_compared, { allow: 9, override_deny: 1 })
  t.same(answer.not_assessed, ['1 rule that is switched off, or in a rule set that is, was not judged.'])
  t.same(answer.scopes, [
    {
      rule_set: 'gone',
      href: '/orgs/1/sec_policy/draft/rule_sets/2',
      scopes: ['app=gone env=prod'],
      scopes_total: 1,
      rules: 0,
    },
  ])
  t.same(answer.findings[1], {
    kind: 'covered',
    rule_type: 'allow',
    href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/4',
    rule: 'Branch to role=web, 443/tcp',
    rule_set: 'pay',
    scope: 'app=pay env=prod',
    by: [
      {
        rule_type: 'allow',
        href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/3',
        rule: 'Office to role=web, web',
        rule_set: 'pay',
        scope: 'app=pay env=prod',
      },
    ],
  })
  t.same(bench.writes(), [])

  await t.test('of one rule set, and of some kinds', async (t) => {
    const some = await bench.ok('find-redundant-rules', {
      rule_set: 'pay',
      kinds: ['covered', 'scope_without_workloads'],
    })
    t.same(some.findings.map(short), [
      ['covered', 4, 3],
      ['covered', 9, 7, 8],
    ])
    t.same(some.counts, { covered: 2 })
    await bench.fails('find-redundant-rules', { rule_set: 'pai' }, 'not_found')
    await bench.fails('find-redundant-rules', { kinds: ['unused'] }, 'invalid_argument')
  })

  await t.test('a draft is judged as it is, and what is marked for deletion does not count', async (t) => {
    await bench.pce.rules.delete('/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/3')
    const draft = await bench.ok('find-redundant-rules', { kinds: ['covered'] })
    t.same(draft.findings.map(short), [['covered', 9, 7, 8]])
    const active = await bench.ok('find-redundant-rules', { kinds: ['covered'], policy_version: 'active' })
    t.same(active.findings.map(short), [
      ['covered', 4, 3],
      ['covered', 9, 7, 8],
    ])
  })

  await t.test('rules with IP lists that cannot be read are counted as not known', async (t) => {
    // The first request is for the list of any address alone.
    bench.simulator.faults.add({ kind: 'status', path: /\/ip_lists$/, times: 9, skip: 1, status: 403, body: [] })
    const answer = await bench.ok('find-redundant-rules', { kinds: ['covered'] })
    bench.simulator.faults.clear()
    t.same(answer.findings.map(short), [['covered', 9, 7, 8]])
    t.equal(
      answer.not_assessed[0],
      '1 IP list could not be read, and 1 rule names such a list: whether rules with other lists cover them is not known.',
    )
  })

  await t.test('who is in a scope is not known where container profiles cannot be read', async (t) => {
    bench.simulator.faults.add({ kind: 'status', path: /container_clusters/, times: 9, status: 403, body: [] })
    const answer = await bench.ok('find-redundant-rules')
    bench.simulator.faults.clear()
    t.same([answer.scopes, answer.counts.scope_without_workloads], [[], undefined])
    t.match(answer.not_assessed.join(), /^Scopes: who is in them is not known, because container profiles: /)
  })
})

t.test('a rule from anything to anything is named, and makes the rest redundant', async (t) => {
  const bench = await startBench(t, { estate: handMade(estate) })
  const { findings, counts } = await bench.ok('find-redundant-rules', { detail_level: 'full' })
  t.same(findings.filter(({ kind }: Json) => kind === 'any_to_any').map(short), [['any_to_any', 11]])
  t.equal(counts.any_to_any, 1)
  // Those from IP lists are not from workloads, so they stay; of two equal reasons the same type of rule is named.
  t.same(findings.filter(({ kind }: Json) => kind === 'covered').map(short), [
    ['covered', 1, 11],
    ['covered', 2, 11],
    ['covered', 4, 3],
    ['covered', 5, 11],
    ['covered', 7, 11],
    ['covered', 8, 11],
    ['covered', 9, 11],
  ])
})

t.test('a deny rule that an allow rule comes before never blocks', async (t) => {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: HOSTS,
      ruleSets: [
        {
          name: 'pay',
          scope: 'app=pay',
          allow: [{ from: 'app=crm', to: 'ams', extra: true }],
          deny: [
            { from: 'app=crm', to: 'role=db', services: [WEB], extra: true },
            // Not all of it: the allow rule is from one application.
            { from: 'ams', to: 'role=db', services: [WEB], extra: true },
          ],
        },
      ],
    }),
  })
  const { findings } = await bench.ok('find-redundant-rules')
  t.same(findings.map(short), [['covered', 2, 3]], 'the deny rule beside it is the nearer proof')
  await bench.ok('delete-deny-rule', { href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/3' })
  const left = await bench.ok('find-redundant-rules')
  t.same(left.findings.map(short), [['always_allowed', 2, 1]])
})

t.test('what no source defines leaves a rule undecided', async (t) => {
  const bench = await startBench(t, {
    estate: handMade({ hosts: HOSTS, labels: ['env=dev'], ruleSets: [{ name: 'all', scope: '' }] }),
  })
  const dev = (await bench.ok('get-labels', { key: 'env', value: 'dev' })).labels[0].href as string
  const parent = '/orgs/1/sec_policy/draft/rule_sets/1'
  const db = (await bench.ok('get-labels', { key: 'role', value: 'db' })).labels[0].href as string
  for (const provider of [
    { label: { href: dev }, exclusion: true },
    { label: { href: dev } },
    { label: { href: db } },
  ]) {
    const body = {
      enabled: true,
      providers: [provider],
      consumers: [{ ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1' } }],
      ingress_services: [WEB],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    }
    await bench.pce.rules.create(body, parent)
  }
  // Whether workloads without any env label are among those that are not dev, nobody says.
  const { findings, undecided, summary } = await bench.ok('find-redundant-rules')
  t.same(findings, [])
  t.same(
    [undecided.rules, undecided.examples.map((one: Json) => one.rule)],
    [1, ['Any (0.0.0.0/0 and ::/0) to role=db, 443/tcp']],
  )
  t.match(
    summary,
    /^None of the 3 enabled rules of the draft is found redundant\. 1 more may be redundant: undecided\.$/,
  )
})

t.test('an allow rule above a deny rule that covers it is what opens the port', async (t) => {
  const ruleSets = [
    {
      name: 'pay',
      scope: 'app=pay env=prod',
      deny: [{ from: 'ams', to: 'ams' }],
      allow: [{ from: 'role=web', to: 'role=db', services: [WEB] }],
    },
  ]
  const bench = await startBench(t, { estate: handMade({ hosts: HOSTS, ruleSets }) })
  const { findings, counts, summary } = await bench.ok('find-redundant-rules')
  t.same([findings, counts], [[], {}])
  t.match(summary, /^None of the 2 enabled rules of the draft is found redundant\./)
  const narrowed = await bench.ok('find-redundant-rules', { kinds: ['any_to_any'] })
  t.match(narrowed.summary, /is found redundant in what was asked for\./)
})

t.test('what is switched off with its rule set neither counts nor covers', async (t) => {
  const allow = [{ from: 'role=web', to: 'role=db', services: [WEB] }]
  const parts = handMade({ hosts: HOSTS, ruleSets: ['off', 'on'].map((name) => ({ name, scope: 'app=pay', allow })) })
  const ruleSets = parts.ruleSets.map((set) => ({ ...set, enabled: set.name === 'on' }))
  const bench = await startBench(t, { estate: { ...parts, ruleSets } })
  const { findings, rules_compared: compared } = await bench.ok('find-redundant-rules')
  t.same([findings, compared.allow], [[], 1])
})

t.test('a scope that excludes what all of its workloads have has none', async (t) => {
  const parts = handMade({
    hosts: HOSTS,
    ruleSets: ['only others', 'all'].map((name) => ({ name, scope: 'app=pay env=prod' })),
  })
  const ruleSets = parts.ruleSets.map((set) => ({
    ...set,
    scopes: set.scopes.map(([app, env]) => [app!, { ...env!, exclusion: set.name === 'only others' }]),
  }))
  const bench = await startBench(t, { estate: { ...parts, ruleSets } })
  const { scopes, counts } = await bench.ok('find-redundant-rules')
  t.same(
    [counts, scopes.map((one: Json) => one.rule_set ?? one.name)],
    [{ scope_without_workloads: 1 }, ['only others']],
  )
})

t.test('a proof that is only pending says so', async (t) => {
  const web = { from: 'role=web', to: 'role=db', services: [WEB] }
  const set = { name: 'pay', scope: 'app=pay env=prod', allow: [web] }
  const bench = await startBench(t, { estate: handMade({ hosts: HOSTS, ruleSets: [set] }) })
  const args = { providers: ['ams'], consumers: ['ams'], ingress_services: ['All Services'] }
  const { rule } = await bench.ok('create-rule', { ruleset_name: 'pay', ...args })
  const ask = async () => {
    const { summary, findings } = await bench.ok('find-redundant-rules')
    const [{ pending, by }] = findings
    return [pending, by.map((one: Json) => [one.href, one.pending]), /rests on rules with changes/.test(summary)]
  }
  t.same(await ask(), ['rule set: update', [[rule.href, 'create']], true])
  await bench.pce.provisionPolicyChanges('all', [`/orgs/1/sec_policy/draft/rule_sets/1`])
  t.same(await ask(), [undefined, [[rule.href, undefined]], false])
})

t.test('a proof in a rule set with other pending rules is not said to be pending itself', async (t) => {
  const web = { from: 'role=web', to: 'role=db', services: [WEB] }
  const set = { name: 'pay', scope: 'app=pay env=prod', allow: [web, { ...web, from: 'ams', to: 'ams' }] }
  const bench = await startBench(t, { estate: handMade({ hosts: HOSTS, ruleSets: [set] }) })
  const other = { providers: ['role=web'], consumers: ['role=db'], ingress_services: ['All Services'] }
  await bench.ok('create-rule', { ruleset_name: 'pay', ...other })
  const { summary, findings } = await bench.ok('find-redundant-rules', { kinds: ['covered'] })
  t.same(
    findings.map(({ by }: Json) => by.map((one: Json) => one.pending)),
    [['rule set: update']],
  )
  t.match(summary, /1 rests on rules whose rule sets have pending changes, perhaps only of other rules/)
  t.notMatch(summary, /rests on rules with changes/)
})

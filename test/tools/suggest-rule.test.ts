/** suggest-rule: estates by hand with the whole right answer; what it suggests is written and judged in suggested-rules.long.ts. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench } from './harness.js'

const TOOL = 'suggest-rule'
const SQL = { port: 5432, proto: 'tcp' }
const SQL_PORT = { port: 5432, proto: 6 }
const SETS = '/orgs/1/sec_policy/draft/rule_sets'

const ESTATE: HandMadeEstate = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=db', mode: 'full' },
    'db-2': { ip: '10.0.0.4', labels: 'app=pay env=prod role=db', mode: 'visibility_only' },
    'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web', mode: 'full' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod role=api' },
    'crm-2': { ip: '10.0.1.2', labels: 'app=crm env=prod role=api' },
    'log-1': { ip: '10.0.3.1', labels: 'app=log env=prod', mode: 'full' },
    'bare-1': { ip: '10.0.9.9' },
    'lap-1': { ip: '10.0.7.1', labels: 'app=lap env=prod', mode: 'idle', online: false },
    'bad-1': { ip: '10.0.8.1', labels: 'app=bad env=prod' },
  },
  ipLists: {
    Office: ['192.168.10.0/24'],
    Campus: ['192.168.0.0/16'],
    Private: ['192.168.0.0/16', '10.0.0.0/8'],
    Six: ['2001:db8::/120'],
  },
  services: {
    postgres: { service_ports: [{ port: 5432, proto: 6 }] },
    databases: {
      service_ports: [
        { port: 5432, proto: 6 },
        { port: 1521, proto: 6 },
      ],
    },
  },
  ruleSets: [
    {
      name: 'pay | prod',
      scope: 'app=pay env=prod',
      allow: [{ from: 'app=crm env=prod role=api', to: 'role=web', services: ['postgres'], extra: true }],
      deny: [{ from: 'app=log', to: 'ams', services: ['postgres'], extra: true }],
    },
    { name: 'pay', scope: 'app=pay' },
    { name: 'isolate', scope: '', override: [{ from: 'app=bad', to: 'ams' }] },
  ],
}
const start = (t: Test): Promise<Bench> => startBench(t, { estate: handMade(ESTATE) })
const LATER = 'Workloads that get these labels later are allowed as well.'

t.test('into the rule set of the application', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok(TOOL, { source: 'crm-1', destination: 'db-1', ...SQL })
  t.same(answer, {
    status: 'suggested',
    message:
      'A rule in the existing rule set "pay | prod" for "app=pay" "env=prod". by_workload is for these two workloads alone, until one of them is replaced. By labels it would allow 1 pair that was asked about, and 3 beyond. Nothing was written.',
    flow: 'crm-1 to db-1, 5432/tcp',
    active: {
      verdict: 'blocked',
      why: 'dropped by "db-1" (full): no rule allows it.',
    },
    draft: { verdict: 'blocked', why: 'The same: nothing is pending.' },
    suggestion: {
      rule: 'app=crm + env=prod + role=api to role=db, postgres',
      ruleset: 'pay | prod',
      create_rule: {
        ruleset_href: `${SETS}/1`,
        rule_type: 'allow',
        providers: ['role=db'],
        consumers: ['app=crm', 'env=prod', 'role=api'],
        ingress_services: [{ service: 'postgres' }],
        unscoped_consumers: true,
        description: 'Allows crm-1 to db-1, 5432/tcp',
      },
    },
    by_workload: {
      rule: 'crm-1 to db-1, postgres',
      create_rule: {
        ruleset_href: `${SETS}/1`,
        rule_type: 'allow',
        providers: ['/orgs/1/workloads/00000000-0000-4000-8000-000000000001'],
        consumers: ['/orgs/1/workloads/00000000-0000-4000-8000-000000000004'],
        ingress_services: [{ service: 'postgres' }],
        unscoped_consumers: true,
        description: 'Allows crm-1 to db-1, 5432/tcp',
      },
    },
    opens: {
      pairs: 4,
      asked: 1,
      beyond: 3,
      uncertain: 0,
      sources: 2,
      destinations: 2,
      services: '5432/tcp',
      examples: [
        { source: 'crm-1', destination: 'db-2', before: 'potentially_blocked', after: 'allowed' },
        { source: 'crm-2', destination: 'db-1', before: 'blocked', after: 'allowed' },
        { source: 'crm-2', destination: 'db-2', before: 'potentially_blocked', after: 'allowed' },
      ],
      notes: [],
    },
    warnings: [LATER],
  })
  t.same(bench.writes(), [])
})

t.test('the narrowest by labels, service and rule set', async (t) => {
  const bench = await start(t)
  const suggested = async (source: unknown, destination: unknown, on: object = SQL) =>
    (await bench.ok(TOOL, { source, destination, ...on })).suggestion

  await t.test('inside the application, by what tells its ends apart', async (t) => {
    const { create_rule: rule } = await suggested('web-1', 'db-1', { port: 443, proto: 'tcp' })
    partial(t, rule, {
      providers: ['role=db'],
      consumers: ['role=web'],
      unscoped_consumers: false,
      ingress_services: [{ port: 443, proto: 6 }],
    })
  })
  await t.test('a new rule set where no other has exactly the scope', async (t) => {
    t.same((await suggested('crm-1', 'log-1')).create_ruleset, {
      name: 'log | prod',
      scopes: [['app=log', 'env=prod']],
      rules: [
        {
          rule_type: 'allow',
          providers: ['ams'],
          consumers: ['app=crm', 'env=prod', 'role=api'],
          ingress_services: [{ service: 'postgres' }],
          unscoped_consumers: true,
          description: 'Allows crm-1 to log-1, 5432/tcp',
        },
      ],
    })
  })
  await t.test('the smallest list of an address, and one of its own where none is a selection', async (t) => {
    t.same((await suggested('192.168.10.7', 'db-1')).create_rule.consumers, ['iplist:Office'])
    const made = await suggested('198.51.100.7', 'db-1')
    t.same(made.create_iplist, { name: '198.51.100.7', ip_ranges: [{ from_ip: '198.51.100.7' }] })
    t.same(made.create_rule.consumers, ['iplist:198.51.100.7'])
  })
  await t.test('of the addresses of a list, the one that was asked about is counted once', async (t) => {
    for (const address of ['192.168.10.7', '2001:DB8::7']) {
      const { opens } = await bench.ok(TOOL, { source: address, destination: 'db-1', ...SQL })
      partial(t, opens, { pairs: 512, asked: 1, beyond: 511, sources: 256, destinations: 2 })
    }
  })
  await t.test('a workload without labels by itself', async (t) => {
    const { create_rule: rule } = await suggested('bare-1', 'db-1')
    t.same(rule.consumers, ['/orgs/1/workloads/00000000-0000-4000-8000-000000000007'])
  })
  await t.test('outbound, in the rule set of the source', async (t) => {
    const { create_rule: rule } = await suggested('web-1', '192.168.10.7')
    partial(t, rule, { ruleset_href: `${SETS}/1`, providers: ['iplist:Office'], consumers: ['role=web'] })
  })
  await t.test('what has no port needs a service', async (t) => {
    const { create_service: service, create_rule: rule } = await suggested('crm-1', 'db-1', { proto: 47 })
    t.same(service, { name: 'gre', service_ports: [{ proto: 47 }] })
    t.same(rule.ingress_services, [{ service: 'gre' }])
  })
  await t.test('the labels that were asked about', async (t) => {
    const { create_rule: rule } = await suggested('app=crm', ['app=pay', 'env=prod'])
    partial(t, rule, { providers: ['ams'], consumers: ['app=crm'] })
  })
})

t.test('where a rule is no answer', async (t) => {
  const bench = await start(t)
  await t.test('an override deny beats it', async (t) => {
    const answer = await bench.ok(TOOL, { source: 'bad-1', destination: 'db-1', ...SQL })
    t.equal(answer.status, 'no_rule_helps')
    t.equal(
      answer.message,
      'No allow rule would let it through for certain: the override deny rule "app=bad to all workloads, All Services" in "isolate" beats every allow rule.',
    )
    t.notOk('suggestion' in answer)
  })
  await t.test('a deny rule is answered by an exception, which is said', async (t) => {
    const answer = await bench.ok(TOOL, { source: 'log-1', destination: 'db-1', ...SQL })
    t.equal(answer.status, 'suggested')
    t.same(answer.warnings, [
      'A deny rule is about it: "app=log to all workloads, postgres" in "pay | prod". The allow rule would be an exception to it; ask its author first.',
      LATER,
    ])
  })
  await t.test('it is allowed already', async (t) => {
    const answer = await bench.ok(TOOL, { source: 'crm-1', destination: 'web-1', ...SQL })
    partial(t, answer, { status: 'already_allowed', message: 'It is allowed already; no rule is needed.' })
    t.notOk('suggestion' in answer)
  })
  await t.test('the draft allows it', async (t) => {
    const { create_rule: args } = (await bench.ok(TOOL, { source: 'crm-1', destination: 'db-1', ...SQL })).suggestion
    const { ruleset_href: href, ...rule } = args
    const plan = await bench.ok('create-ruleset', { name: 'x', scopes: [], rules: [rule], dry_run: true })
    await bench.pce.rules.create(plan.requests[1].body, href)
    const answer = await bench.ok(TOOL, { source: 'crm-2', destination: 'db-2', ...SQL })
    partial(t, answer, { status: 'allowed_when_provisioned', active: { verdict: 'potentially_blocked' } })
  })
})

t.test('what is almost the scope, the service or an allowed pair', async (t) => {
  const { ruleSets, services, ...rest } = handMade({
    hosts: {
      'a-1': { ip: '10.0.0.1', labels: 'app=a env=prod loc=x', mode: 'full' },
      'bad-1': { ip: '10.0.0.2', labels: 'app=bad env=prod loc=x', mode: 'full' },
      'db-1': { ip: '10.0.0.3', labels: 'app=db env=prod', mode: 'full' },
    },
    services: {
      'a range': { service_ports: [{ port: 5432, to_port: 5440, proto: 6 }] },
      'b exactly, to go': { service_ports: [{ port: 5432, proto: 6 }] },
      'c exactly': { service_ports: [{ port: 5432, proto: 6 }] },
    },
    ruleSets: [
      { name: 'a disabled', scope: 'app=db env=prod' },
      { name: 'b all but', scope: 'app=db env=prod' },
      { name: 'c the one', scope: 'app=db env=prod' },
      { name: 'open', scope: '', allow: [{ from: 'loc=x', to: 'app=db', services: [{ port: 443, proto: 6 }] }] },
      { name: 'closed', scope: '', override: [{ from: 'app=bad', to: 'ams', services: [{ port: 443, proto: 6 }] }] },
    ],
  })
  const [disabled, other, ...sets] = ruleSets
  const [app, env] = other!.scopes[0]!
  const bench = await startBench(t, {
    estate: {
      ...rest,
      services,
      ruleSets: [
        { ...disabled!, enabled: false },
        { ...other!, scopes: [[app!, { ...env!, exclusion: true }]] },
        ...sets,
      ],
    },
  })
  await bench.pce.services.delete('/orgs/1/sec_policy/draft/services/3')
  const answer = await bench.ok(TOOL, { source: 'a-1', destination: 'db-1', ...SQL })
  t.equal(answer.suggestion.ruleset, 'c the one', 'neither a disabled one nor one that excludes a label of the scope')
  t.same(answer.suggestion.create_rule.ingress_services, [{ service: 'c exactly' }])
  t.notOk(answer.warnings.some((text: string) => text.includes('exactly this scope')))

  const both = await bench.ok(TOOL, { source: 'loc=x', destination: 'db-1', port: 443, proto: 'tcp' })
  t.equal(both.active.why, 'Of 2 pairs: 1 allowed, 1 blocked.')
  t.equal(both.status, 'no_rule_helps', 'that one of the pairs is allowed already is no help to the other')
})

t.test('what it would open perhaps is counted as such', async (t) => {
  const estate = handMade({
    hosts: {
      'web-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: 'full' },
      'web-2': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web', mode: 'full' },
      'db-1': { ip: '10.0.0.3', labels: 'app=pay env=prod role=db', mode: 'full' },
    },
    ipLists: { Bad: ['192.168.9.0/24'] },
    ruleSets: [{ name: 'isolate', scope: '', override: [{ from: 'iplist:Bad', to: 'role=db' }] }],
  })
  const workloads = estate.workloads.map((one) =>
    one.name === 'web-2'
      ? { ...one, interfaces: ['10.0.0.2', '192.168.9.9'].map((address) => ({ name: address, address })) }
      : one,
  )
  const bench = await startBench(t, { estate: { ...estate, workloads } })
  const { opens } = await bench.ok(TOOL, { source: 'web-1', destination: 'db-1', ...SQL })
  partial(t, opens, { pairs: 2, asked: 1, beyond: 1, uncertain: 1 })
  t.same(opens.examples, [{ source: 'web-2', destination: 'db-1', before: 'blocked', after: 'uncertain' }])
})

t.test('what holds for the parts of a list that were judged is not said of the others', async (t) => {
  const addresses = Array.from({ length: 2001 }, (_, at) => `10.9.${Math.floor(at / 250)}.${at % 250}`)
  const on = (port: number) => [{ port, proto: 6 }]
  const estate = handMade({
    hosts: { 'db-1': { ip: '10.0.0.3', labels: 'app=pay env=prod', mode: 'full' } },
    ipLists: { Many: addresses, Bad: ['10.9.0.7'] },
    ruleSets: [
      {
        name: 'all',
        scope: '',
        allow: [{ from: 'iplist:Many', to: 'ams', services: on(22), extra: true }],
        override: [
          { from: 'iplist:Bad', to: 'ams', services: on(443) },
          { from: 'iplist:Many', to: 'ams', services: on(80) },
        ],
      },
    ],
  })
  const bench = await startBench(t, { estate })
  const ask = (port: number) => bench.ok(TOOL, { source: 'iplist:Many', destination: 'db-1', port, proto: 'tcp' })
  const note = 'Only the first 2000 parts of "Many" were judged.'

  const some = await ask(443)
  t.match(some.message, /It would allow at least 1999 pairs that were asked about, and at least 0 beyond\./)
  t.same(some.opens.notes, [note])
  t.match(some.warnings[0], /^At least 1 pair of those asked about would still not be allowed for certain: /)

  const none = await ask(80)
  t.equal(none.status, 'no_rule_helps')
  t.match(none.message, /^No allow rule would let any more of the pairs compared through for certain: /)
  t.same(none.warnings, [note])

  const all = await ask(22)
  partial(t, all, { status: 'already_allowed', message: 'It is allowed already as far as it was judged.' })
})

t.test('labels that open more have the workloads themselves as their alternative', async (t) => {
  const bench = await start(t)
  const { by_workload: narrower } = await bench.ok(TOOL, { source: 'crm-1', destination: 'db-1', ...SQL })
  await bench.ok('create-rule', narrower.create_rule)
  const verdict = async (source: string, destination: string) =>
    (await bench.ok('explain-flow', { source, destination, ...SQL, lookback_days: 0 })).draft.verdict
  t.equal(await verdict('crm-1', 'db-1'), 'allowed')
  t.equal(await verdict('crm-2', 'db-1'), 'blocked')
  t.equal(await verdict('crm-1', 'db-2'), 'potentially_blocked')

  const bare = await bench.ok(TOOL, { source: 'bare-1', destination: 'db-1', ...SQL })
  t.equal(bare.by_workload.rule, 'bare-1 to db-1, postgres', 'an end without labels is one already')
  for (const source of ['app=crm', '192.168.10.7', 'iplist:Office']) {
    const half = await bench.ok(TOOL, { source, destination: 'db-1', ...SQL })
    t.same([half.opens.beyond > 0, 'by_workload' in half], [true, false], `${source} stays what it is`)
  }
  const alone = await bench.ok(TOOL, { source: 'web-1', destination: 'log-1', ...SQL })
  t.same([alone.opens.beyond, 'by_workload' in alone], [0, false])
})

t.test('a rule is needed where only a mode lets a flow pass', async (t) => {
  const hosts = {
    'api-1': { ip: '10.0.0.1', labels: 'app=api env=lab', mode: 'selective' as const },
    'sql-1': { ip: '10.0.0.2', labels: 'app=sql env=lab', mode: 'selective' as const },
    'old-1': { ip: '10.0.0.3', labels: 'app=old env=lab', mode: 'visibility_only' as const },
    'idle-1': { ip: '10.0.0.4', labels: 'app=idle env=lab', mode: 'idle' as const },
    'full-1': { ip: '10.0.0.5', labels: 'app=full env=lab', mode: 'full' as const },
    'bare-1': { ip: '10.0.9.1', managed: false },
    'bare-2': { ip: '10.0.9.2', managed: false },
  }
  const ruleSets = [
    {
      name: 'all',
      scope: '',
      allow: [{ from: 'app=api', to: 'app=sql', services: [{ port: 22, proto: 6 }] }],
      deny: [{ from: 'app=old', to: 'app=sql', services: [SQL_PORT] }],
      override: [{ from: 'app=idle', to: 'app=sql', services: [SQL_PORT] }],
    },
  ]
  const bench = await startBench(t, { estate: handMade({ hosts, ruleSets }) })
  const ask = (source: string, destination: string, port = 5432) =>
    bench.ok(TOOL, { source, destination, port, proto: 'tcp' })
  const today = (modes: string) =>
    `It flows today, because ${modes} pass what no rule allows; full mode would need the rule. `
  for (const [source, destination, modes] of [
    ['api-1', 'sql-1', 'selective mode lets'],
    ['172.16.0.1', 'sql-1', 'selective mode lets'],
    ['api-1', '172.16.0.1', 'selective mode lets'],
    ['bare-1', 'idle-1', 'idle mode lets'],
    ['bare-1', 'old-1', 'visibility_only mode lets'],
    ['api-1', 'old-1', 'selective and visibility_only modes let'],
  ] as const) {
    const { status, message, opens } = await ask(source, destination)
    t.equal(status, 'suggested', `${source} to ${destination}`)
    t.ok(message.startsWith(today(modes)), message)
    t.same([opens.asked, opens.pairs], [1, 1])
  }
  const written = await ask('api-1', 'sql-1')
  t.same(written.active.verdict, 'allowed', 'as in explain-flow')
  t.equal(written.suggestion.create_ruleset.rules.length, 1)
  for (const destination of ['full-1', 'sql-1'])
    t.notMatch((await ask('old-1', destination)).message, /It flows today/, 'what is dropped does not flow')
  t.equal((await ask('api-1', 'sql-1', 22)).status, 'already_allowed', 'by a rule')
  t.equal((await ask('idle-1', 'sql-1')).status, 'no_rule_helps', 'an override deny')
  const bare = await ask('bare-1', 'bare-2')
  t.same([bare.status, bare.message], ['no_rule_helps', 'No end has a VEN, so no rule has an effect on it.'])
})

t.test('what is refused', async (t) => {
  const bench = await start(t)
  const { message } = await bench.fails(TOOL, { source: 'db-9', destination: 'db-1', ...SQL }, 'not_found')
  t.equal(message, 'source: No workload is named exactly "db-9".')
  await bench.fails(TOOL, { source: 'web-1', destination: 'db-1', proto: 'tcp' }, 'invalid_argument')
})

t.test('no rule helps an end that is offline', async (t) => {
  const bench = await start(t)
  const warning =
    '"lap-1" is offline, so the PCE leaves its addresses out of the policy of others: no rule about workloads or labels helps there until it is online again.'
  const suggested = await bench.ok(TOOL, { source: 'lap-1', destination: 'db-1', ...SQL })
  t.equal(suggested.status, 'suggested')
  t.equal(suggested.warnings[0], warning)
  const allowed = await bench.ok(TOOL, { source: '172.16.0.1', destination: 'lap-1', ...SQL })
  t.equal(allowed.status, 'suggested')
  t.match(
    allowed.message,
    /^It flows today, because idle mode lets pass what no rule allows; full mode would need the rule\. /,
  )
  t.same(allowed.warnings, [warning, LATER])
})

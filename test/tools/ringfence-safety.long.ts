/** create-ringfence where the draft or the labels change during the call, or where not everything could be read. */
import t, { type Test } from 'tap'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { partial } from '../partial.js'
import { AMS, ANY_LIST, handMade, type HandMadeEstate, type HandMadeRuleSet } from './hand-made.js'
import { startBench, type Bench } from './harness.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const FENCE: HandMadeRuleSet = { name: 'RF-pay-prod', scope: 'app=pay env=prod' }
const INSIDE = { from: 'ams', to: 'ams' }
const FROM_CRM = { from: 'app=crm env=prod', to: 'ams', extra: true }
const DENY = { from: 'any', to: 'ams', extra: true }

const start = async (t: Test, ruleSets: HandMadeRuleSet[] = [], more: HandMadeEstate = {}) => {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: {
        'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
        'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
        'lab-1': { ip: '10.0.1.2', labels: 'app=lab env=prod' },
      },
      flows: [
        { from: 'crm-1', to: 'pay-1', connections: 5 },
        { from: '8.8.8.8', to: 'pay-1' },
      ],
      ruleSets,
      ...more,
    }),
  })
  bench.writes()
  return bench
}

/** What someone else does once, when the last traffic query of the application begins. */
function meanwhile({ pce }: Bench, act: () => Promise<unknown>, at = 'mcp-ringfence-outbound') {
  const stream = pce.streamTrafficFlows.bind(pce)
  let isDone = false
  pce.streamTrafficFlows = async (name, query, options) => {
    if (name === at && !isDone) {
      isDone = true
      await act()
    }
    return stream(name, query, options)
  }
}

/** The client is told that there were as many rows as are asked for: 200,000 are too many for a test. */
function truncate({ pce }: Bench, at = 'mcp-ringfence-inbound') {
  const stream = pce.streamTrafficFlows.bind(pce)
  pce.streamTrafficFlows = async (name, query, options) => {
    const outcome = await stream(name, query, options)
    return name === at ? { ...outcome, flows: 200_000 } : outcome
  }
  return () => void (pce.streamTrafficFlows = stream)
}

const fence = async ({ pce }: Bench): Promise<RuleSet> => {
  const found = (await pce.ruleSets.getAll()).find(({ name }) => name === 'RF-pay-prod')
  if (found === undefined) throw new Error('no RF-pay-prod')
  return { ...found, deny_rules: await pce.denyRules.getAll('draft', found.href) }
}
const labelHref = async ({ pce }: Bench, value: string): Promise<string> => {
  const found = (await pce.labels.getAll()).find((label) => label.value === value)
  if (found === undefined) throw new Error(`no label ${value}`)
  return found.href
}
const allowed = (bench: Bench) => fence(bench).then(({ rules }) => rules?.[0]?.href ?? '')
const posts = (bench: Bench) =>
  bench.writes().flatMap(({ method, path }) => (method === 'POST' ? [path.slice(path.lastIndexOf('/') + 1)] : []))
const toEnv = async (bench: Bench) => ({ scopes: [[{ label: { href: await labelHref(bench, 'prod') } }]] })

const CHANGES: [string, (bench: Bench) => Promise<unknown>, RegExp][] = [
  ['scope', async (b) => b.pce.ruleSets.update((await fence(b)).href, await toEnv(b)), /its scope is different/],
  ['disabled', async (b) => b.pce.ruleSets.update((await fence(b)).href, { enabled: false }), /was disabled/],
  ['deleted', async (b) => b.pce.ruleSets.delete((await fence(b)).href), /its deletion is pending/],
  ['renamed', async (b) => b.pce.ruleSets.update((await fence(b)).href, { name: 'other' }), /deleted or renamed/],
  ['rule disabled', async (b) => b.pce.rules.update(await allowed(b), { enabled: false }), /sec_rules\/1 was changed/],
  ['rule deleted', async (b) => b.pce.rules.delete(await allowed(b)), /sec_rules\/1 was changed/],
  [
    'rule narrowed',
    async (b) => b.pce.rules.update(await allowed(b), { ingress_services: [{ port: 1, proto: 6 }] }),
    /sec_rules\/1 was changed/,
  ],
  [
    'deny rule added',
    async (b) =>
      b.pce.denyRules.create(
        {
          enabled: true,
          providers: [AMS],
          consumers: [ANY_LIST],
          ingress_services: [{ port: 1, proto: 6 }],
          unscoped_consumers: true,
          override: true,
        },
        (await fence(b)).href,
      ),
    /deny_rules\/\d+ was added/,
  ],
]

t.test('does not write to a rule set that changes during the queries', async (t) => {
  for (const [what, act, message] of CHANGES)
    for (const selective of [true, false])
      await t.test(`${what}, selective ${selective}`, async (t) => {
        const bench = await start(t, [{ ...FENCE, allow: [FROM_CRM] }])
        meanwhile(bench, async () => {
          await act(bench)
          bench.writes()
        })
        const error = await bench.fails('create-ringfence', { ...PAY, selective }, 'already_exists')
        partial(t, error, { reason: 'changed_meanwhile', message: /Nothing was written\. Call again\./ })
        partial(t, error.message, message)
        t.equal(error.changed.length, 1)
        t.same(bench.writes(), [])
      })
})

t.test('ignores changes that do not affect the rules', async (t) => {
  const bench = await start(t, [{ ...FENCE, allow: [FROM_CRM] }])
  meanwhile(bench, async () => {
    await bench.pce.rules.update(await allowed(bench), { description: 'reviewed' })
    await bench.pce.ruleSets.update((await fence(bench)).href, { description: 'ours' })
    bench.writes()
  })
  await bench.ok('create-ringfence', { ...PAY, selective: true })
  t.same(posts(bench), ['sec_rules', 'deny_rules'])
})

t.test('does not write if the name is taken during the queries', async (t) => {
  for (const scope of ['pay', 'crm']) {
    const bench = await start(t)
    meanwhile(bench, async () => {
      const labels = [await labelHref(bench, scope), await labelHref(bench, 'prod')]
      await bench.pce.ruleSets.create({ name: 'RF-pay-prod', scopes: [labels.map((href) => ({ label: { href } }))] })
      bench.writes()
    })
    const error = await bench.fails('create-ringfence', PAY, 'already_exists')
    partial(t, error, { reason: 'changed_meanwhile', changed: ['a rule set of this name was created'] })
    t.same(bench.writes(), [])
  }
})

/** From now on the PCE lists a second rule set of this name and scope, and lists it first. */
function listTwin({ pce }: Bench) {
  const { ruleSets } = pce
  const page = ruleSets.getPage.bind(ruleSets)
  ruleSets.getPage = async (...args) => {
    const { items, ...rest } = await page(...args)
    const [own] = items.filter(({ name }) => name === 'RF-pay-prod')
    const twin = own && { ...own, href: `${own.href}00`, rules: [], deny_rules: [] }
    return { ...rest, items: twin === undefined ? items : [twin, ...items] }
  }
}

t.test('a second rule set of the name that appears during the queries', async (t) => {
  await t.test('is the reason that is given', async (t) => {
    const bench = await start(t, [{ ...FENCE, allow: [FROM_CRM] }])
    meanwhile(bench, async () => listTwin(bench))
    const error = await bench.fails('create-ringfence', PAY, 'already_exists')
    partial(t, error, {
      reason: 'changed_meanwhile',
      changed: ['another rule set of this name and scope was created'],
    })
    t.same(bench.writes(), [])
  })

  await t.test('is not taken for the one that was written', async (t) => {
    const bench = await start(t, [{ ...FENCE, allow: [FROM_CRM] }])
    const { rules } = bench.pce
    const create = rules.create.bind(rules)
    rules.create = async (body, parent) => {
      const created = await create(body, parent)
      listTwin(bench)
      await bench.pce.rules.update(created.href, { enabled: false })
      return created
    }
    const error = await bench.fails('create-ringfence', { ...PAY, selective: true }, 'already_exists')
    partial(t, error, { changed: [/allow rule inside the application is not in force/], written: { length: 1 } })
    t.same(error.stands, error.written)
  })
})

t.test('withholds the deny rule if allow rules have disappeared', async (t) => {
  // Someone strikes after the first rule was written: the one inside the application.
  const strikes: [string, (bench: Bench, written: string) => Promise<unknown>, RegExp, number][] = [
    ['new one deleted', (b, href) => b.pce.rules.delete(href), /allow rule inside the application is not in force/, 2],
    [
      'new one disabled',
      (b, href) => b.pce.rules.update(href, { enabled: false }),
      /allow rule inside the application/,
      1,
    ],
    ['standing one disabled', async (b) => b.pce.rules.update(await allowed(b), { enabled: false }), /crm \(prod\)/, 1],
    ['scope', async (b) => b.pce.ruleSets.update((await fence(b)).href, await toEnv(b)), /its scope is different/, 1],
    ['set disabled', async (b) => b.pce.ruleSets.update((await fence(b)).href, { enabled: false }), /disabled/, 1],
  ]
  for (const [what, act, message, missing] of strikes)
    await t.test(what, async (t) => {
      const bench = await start(t, [{ ...FENCE, allow: [FROM_CRM] }])
      const { rules } = bench.pce
      const create = rules.create.bind(rules)
      rules.create = async (body, parent) => {
        const created = await create(body, parent)
        await act(bench, created.href)
        return created
      }
      const error = await bench.fails('create-ringfence', { ...PAY, selective: true }, 'already_exists')
      partial(t, error, { reason: 'changed_meanwhile', partial: true, written: { length: 1 }, not_written: missing })
      partial(t, error.message, message)
      t.match(error.message, /The deny rule was not written/)
      if (missing === 1) partial(t, error.stands, error.written)
      t.same((await fence(bench)).deny_rules, [])
      t.same(posts(bench), ['sec_rules'])
    })
})

t.test('reports a scope that changes afterwards first', async (t) => {
  const bench = await start(t, [FENCE])
  const { rules } = bench.pce
  const create = rules.create.bind(rules)
  rules.create = async (body, parent) => {
    const created = await create(body, parent)
    await bench.pce.ruleSets.update((await fence(bench)).href, await toEnv(bench))
    return created
  }
  const done = await bench.ok('create-ringfence', PAY)
  t.match(done.warnings[0], /^The PCE stored the rule set differently \(scopes\)/)
  t.match(done.message, /stored the rule set differently/)
})

t.test('withholds the deny rule if inbound traffic was not read in full', async (t) => {
  const bench = await start(t)
  const whole = truncate(bench)
  const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
  t.equal(plan.planned_rules.length, 2)
  const dry = { ...PAY, selective: true, dry_run: true, detail_level: 'full' }
  t.equal((await bench.ok('create-ringfence', dry)).requests.length, 3)
  const done = await bench.ok('create-ringfence', { ...PAY, selective: true })
  t.same(posts(bench), ['rule_sets', 'sec_rules', 'sec_rules'])
  const again = await bench.ok('create-ringfence', { ...PAY, selective: true })
  t.match(again.message, /already has all its allow rules; nothing to write\. The deny rule is withheld/)
  for (const answer of [plan, done, again]) {
    t.match(answer.deny_withheld, /shorter lookback_days/)
    t.match(answer.message, /The deny rule is withheld/)
    t.match(answer.warnings[0], /^The deny rule was left out: .*shorter lookback_days/)
    t.equal(answer.warnings[1], plan.discovery_warning)
    partial(t, answer.would_be_cut, [{ source: '8.8.8.8', effect: 'cut' }])
  }
  whole()
  const complete = await bench.ok('create-ringfence', { ...PAY, selective: true, lookback_days: 7 })
  t.same(posts(bench), ['deny_rules'])
  t.notOk('deny_withheld' in complete)

  // Nothing to withhold: not asked for, there already, or only the outbound side is short.
  truncate(bench)
  const standing = await bench.ok('create-ringfence', { ...PAY, selective: true })
  const standard = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.equal(standard.discovery_warning, plan.discovery_warning)
  for (const answer of [standing, standard]) {
    t.notOk('deny_withheld' in answer)
    t.equal(answer.warnings[0], plan.discovery_warning)
  }
  const other = await start(t)
  truncate(other, 'mcp-ringfence-outbound')
  await other.ok('create-ringfence', { ...PAY, selective: true })
  t.equal(posts(other).at(-1), 'deny_rules')
})

t.test('reports a missing Any list first', async (t) => {
  const bench = await start(t)
  const none = { kind: 'status' as const, path: /draft\/ip_lists$/, times: 9, status: 200, body: [] }
  bench.simulator.faults.add(none)
  const done = await bench.ok('create-ringfence', { ...PAY, selective: true, detail_level: 'full' })
  t.match(done.message, /There is no Any IP list, so the deny rule covers workloads only\.$/)
  t.match(done.warnings[0], /^The PCE has no Any IP list, so the deny rule falls back to ams\..*1 source seen/)
  t.equal(done.warnings.filter((text: string) => text.includes('deny_consumer ams')).length, 1)
  const asked = await bench.ok('create-ringfence', { ...PAY, selective: true, deny_consumer: 'ams', dry_run: true })
  t.notMatch(asked.message, /Any IP list/)
})

t.test('a label renamed during the call lets no one else in', async (t) => {
  const swap = async ({ pce }: Bench, one: string, other: string) => {
    const [a, b] = [await labelHref({ pce } as Bench, one), await labelHref({ pce } as Bench, other)]
    await pce.labels.update(a, { value: 'tmp' })
    await pce.labels.update(b, { value: one })
    await pce.labels.update(a, { value: other })
  }
  const renames: [string, (bench: Bench) => Promise<unknown>][] = [
    ['two sources swapped', (bench) => swap(bench, 'crm', 'lab')],
    ['the source is now called as the application was', (bench) => swap(bench, 'pay', 'crm')],
    ['renamed', async (bench) => bench.pce.labels.update(await labelHref(bench, 'crm'), { value: 'sales' })],
  ]
  for (const [what, act] of renames)
    await t.test(what, async (t) => {
      const bench = await start(t)
      meanwhile(bench, () => act(bench).then(() => void bench.writes()), 'mcp-ringfence-inbound')
      const error = await bench.fails('create-ringfence', PAY, 'label_not_found')
      t.match(error.message, /Labels changed in the meantime: .*Nothing was written/)
      t.same(bench.writes(), [])
    })
})

t.test('reports an existing deny rule that names more than was requested', async (t) => {
  const both = { ...DENY, from: 'any' }
  const bench = await start(t, [{ ...FENCE, allow: [INSIDE, FROM_CRM], deny: [both] }])
  const { href, deny_rules: denyRules } = await fence(bench)
  t.ok(href)
  await bench.pce.denyRules.update(denyRules?.[0]?.href ?? '', { consumers: [AMS, ANY_LIST] })
  const said = async (consumer: string) => {
    const plan = await bench.ok('create-ringfence', {
      ...PAY,
      selective: true,
      deny_consumer: consumer,
      dry_run: true,
    })
    t.same(plan.planned_rules, [], consumer)
    return plan.warnings.filter((text: string) => text.includes('denies more sources than'))
  }
  partial(t, await said('any'), [/deny_consumer any asks for \(all workloads\): .*deny_rules\/3\.$/])
  partial(t, await said('ams'), [/deny_consumer ams asks for \(\/orgs\/1\/sec_policy\/draft\/ip_lists\/1\)/])
  t.same(await said('ams_and_any'), [])
})

t.test('two services named All Services are always ambiguous', async (t) => {
  const bench = await start(t)
  await bench.pce.services.create({ name: 'All Services', service_ports: [{ port: 80, proto: 6 }] })
  bench.writes()
  for (const selective of [true, false])
    for (const dryRun of [true, false]) {
      const error = await bench.fails('create-ringfence', { ...PAY, selective, dry_run: dryRun }, 'ambiguous_name')
      partial(t, error, { name: 'All Services', candidates: { length: 2 } })
    }
  t.same(bench.writes(), [])
})

t.test("does not count others' concurrent writes as ours", async (t) => {
  const bench = await start(t)
  const { rules } = bench.pce
  const create = rules.create.bind(rules)
  let calls = 0
  rules.create = async (body, parent) => {
    calls += 1
    if (calls === 1) return create(body, parent)
    // Someone else writes five rules, and then ours is refused.
    for (let at = 0; at < 5; at++) await create({ ...body, description: `other ${at}` }, parent)
    bench.simulator.faults.add({ kind: 'status', path: /sec_rules$/, method: 'POST', times: 1, status: 406, body: [] })
    return create(body, parent)
  }
  const error = await bench.fails('create-ringfence', { ...PAY, selective: true }, 'pce_error')
  partial(t, error, { partial: true, written: { length: 2 }, not_written: 2 })
})

t.test('a call cancelled while reading writes nothing', async (t) => {
  const bench = await start(t)
  const { simulator } = bench
  const gone = () =>
    simulator.requests.filter(({ method, path }) => method === 'DELETE' && /async_queries\//.test(path))
  const atQuery = ({ message = '' }) => /queued|working/.test(message)
  for (const [name, args] of [
    ['create-ringfence', { ...PAY, selective: true }],
    ['create-ringfence', { ...PAY, dry_run: true }],
    ['ringfence-batch', { apps: [{ ...PAY, selective: true }] }],
  ] as const) {
    simulator.clearRequests()
    const error = await bench.cancelled(name, args, atQuery)
    t.equal(error['error'], 'cancelled', name)
    t.equal(gone().length, 1, 'the query is deleted at the PCE')
    t.notOk(
      simulator.requests.some(({ path }) => path.endsWith('/download')),
      'and nothing is downloaded',
    )
    t.same(
      simulator.requests.filter(({ method, path }) => method !== 'GET' && /rule_sets/.test(path)),
      [],
      'no write',
    )
  }

  await t.test('reports what was written by then and stops', async (t) => {
    const apps = [PAY, { app_name: 'crm', env_name: 'prod' }]
    let queries = 0
    const answered = await bench
      .cancelled('ringfence-batch', { apps }, ({ message = '' }) => {
        if (/Application 2 of 2/.test(message)) queries += 1
        return queries > 0 && atQuery({ message })
      })
      .catch((error: Error) => error.message)
    t.match(answered, /was not cancelled/, 'the call has an answer')
    t.same(
      (await bench.pce.ruleSets.getAll()).map(({ name }) => name),
      ['RF-pay-prod'],
      'the second application was not begun',
    )
  })
})

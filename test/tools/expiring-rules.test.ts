/** Rules with an end in their description: how it is written, kept and found. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeRule } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const AT = '/orgs/1/sec_policy/draft/rule_sets/1'
const rule = (description?: string): HandMadeRule => ({
  from: 'role=web',
  to: 'role=db',
  ...(description !== undefined && { description }),
})

/** The tests take place on 15 June 2026, at noon UTC. */
const start = (t: Test, allow: HandMadeRule[], deny: HandMadeRule[] = []) =>
  startBench(t, {
    estate: handMade({
      hosts: {
        web: { ip: '10.0.0.1', labels: 'role=web app=shop' },
        db: { ip: '10.0.0.2', labels: 'role=db app=shop' },
      },
      ruleSets: [{ name: 'Shop', scope: 'app=shop', allow, deny }],
    }),
  })

const endsOf = async (bench: Bench, before: string) =>
  (await bench.ok('find-rules', { expires_before: before, fields: ['href', 'expires', 'uncertain'] })).rules.map(
    ({ href, expires, uncertain }: Json) => [Number(href.split('/').at(-1)), expires, uncertain],
  )
const UNSURE = 'an end in the description that cannot be read'

t.test(
  'a rule has ended when its last day is over in UTC, and an end that cannot be read is never "none"',
  async (t) => {
    const texts = [
      'Web to database', // 1
      '[expires: 2026-06-14]', // 2
      'For the migration [EXPIRES:2026-06-13 ] of the shop', // 3
      '[expires: 2026-06-15]', // 4: today
      '[expires: 2026-06-16] tomorrow', // 5
      '[expires: never]', // 6
      '[expires: 2026-06-10] and once more [expires: 2026-06-10]', // 7
      '[expires: 2026-06-10] [expires: 2026-06-11]', // 8
      '[expires: 2026-06-10] [expires: never]', // 9
      '[expires: 14.06.2026]', // 10
      '[expires: 2026-02-30]', // 11
      '[expires 2026-06-10]', // 12
      '[expired: 2026-06-10] (CHG-1)', // 13
      '[expires: 2026-06-10 without an end', // 14
      'Expires on 10 June 2026', // 15
      'Until the session of the client expires', // 16
      '[ex\u200Bpires: 2026-06-09]', // 17
      '[expires: 2026-06-10] as the certificate, which expires 2027', // 18
      '[expires: 2026-06-10T12:00Z]', // 19
      '', // 20
    ]
    const bench = await start(t, texts.map(rule), [rule('[expires: 2026-01-01]')])
    const unclear = [
      [8, 'unclear: it says several ends: 2026-06-10, 2026-06-11', UNSURE],
      [9, 'unclear: it says several ends: 2026-06-10, never', UNSURE],
      [10, 'unclear: "[expires: 14.06.2026]" is not [expires: YYYY-MM-DD]', UNSURE],
      [11, 'unclear: "[expires: 2026-02-30]" is not [expires: YYYY-MM-DD]', UNSURE],
      [12, 'unclear: "[expires 2026-06-10]" is not [expires: YYYY-MM-DD]', UNSURE],
      [13, 'unclear: "[expired: 2026-06-10]" is not [expires: YYYY-MM-DD]', UNSURE],
      [14, 'unclear: "[expires: 2026-06-10 without an end" is not [expires: YYYY-MM-DD]', UNSURE],
      [15, 'unclear: "Expires on 10 June 2026" is prose, not [expires: YYYY-MM-DD]', UNSURE],
      [19, 'unclear: "[expires: 2026-06-10T12:00Z]" is not [expires: YYYY-MM-DD]', UNSURE],
    ]
    const over = [
      [2, '2026-06-14', undefined],
      [3, '2026-06-13', undefined],
      [7, '2026-06-10', undefined],
      [17, '2026-06-09', undefined],
      [18, '2026-06-10', undefined],
      [21, '2026-01-01', undefined],
    ]
    const sorted = (rows: unknown[][]) => rows.toSorted(([a], [b]) => Number(a) - Number(b))
    t.same(sorted(await endsOf(bench, 'today')), sorted([...over, ...unclear]))
    t.same(await endsOf(bench, '2026-06-15'), await endsOf(bench, 'today'))
    t.same(sorted(await endsOf(bench, '2026-06-16')), sorted([...over, ...unclear, [4, '2026-06-15', undefined]]))
    bench.advance(12 * 3_600_000 - 1)
    t.same(sorted(await endsOf(bench, 'today')), sorted([...over, ...unclear]), 'the last instant of the day')
    bench.advance(1)
    t.same(sorted(await endsOf(bench, 'today')), sorted([...over, ...unclear, [4, '2026-06-15', undefined]]))
  },
)

t.test('other questions say of a rule that it is over, or that its end cannot be read', async (t) => {
  const texts = ['[expires: 2026-06-14]', '[expires: 2026-07-01]', '[expires: soon]', 'plain']
  const bench = await start(t, texts.map(rule))
  const { rules } = await bench.ok('find-rules', { actor: 'role=web' })
  t.same(
    rules.map(({ expires }: Json) => expires),
    ['2026-06-14', undefined, 'unclear: "[expires: soon]" is not [expires: YYYY-MM-DD]', undefined],
  )
})

t.test('a question about no day is refused', async (t) => {
  const bench = await start(t, [rule()])
  for (const day of ['tomorrow', '2026-6-1', '2026-02-30', '15.06.2026', '2026-06-15T00:00:00Z']) {
    const { argument: found } = await bench.fails('find-rules', { expires_before: day }, 'invalid_argument')
    t.equal(found, 'expires_before', day)
  }
})

const NEW = {
  ruleset_name: 'Shop',
  providers: ['role=db'],
  consumers: ['role=web'],
  ingress_services: [{ port: 5432, proto: 6 }],
}

t.test('create-rule writes the end in front of the description', async (t) => {
  const bench = await start(t, [rule()])
  const cases: [args: object, description: string | undefined][] = [
    [{ expires: '2026-12-31' }, '[expires: 2026-12-31]'],
    [{ expires: '2026-06-15', description: 'Migration' }, '[expires: 2026-06-15] Migration'],
    [{ expires: '2026-12-31', description: 'CHG-1 [expires: 2026-12-31]' }, 'CHG-1 [expires: 2026-12-31]'],
    [{ description: 'CHG-1 [expires: 2026-12-31]' }, 'CHG-1 [expires: 2026-12-31]'],
    [{ description: 'plain' }, 'plain'],
    [{}, undefined],
  ]
  for (const [args, description] of cases) {
    const { requests } = await bench.ok('create-rule', { ...NEW, ...args, dry_run: true })
    t.equal(requests[0].body.description, description, JSON.stringify(args))
  }
  for (const type of ['allow', 'deny', 'override_deny']) {
    const { rule } = await bench.ok('create-rule', { ...NEW, rule_type: type, expires: '2026-12-31' })
    t.equal(rule.description, '[expires: 2026-12-31]', type)
  }
})

t.test('an end to come is said to need retire-expired, in a dry run as well', async (t) => {
  const bench = await start(t, [rule()])
  const said = 'The PCE does not end the rule after 2026-12-31: retire-expired has to be run then.'
  const tells = async (args: object) => {
    const { warnings = [] } = await bench.ok('create-rule', { ...NEW, ...args })
    return warnings.includes(said)
  }
  t.equal(await tells({ expires: '2026-12-31', dry_run: true }), true)
  t.equal(await tells({ description: '[expires: 2026-12-31]', dry_run: true }), true)
  t.equal(await tells({ dry_run: true }), false)
  t.equal(await tells({ expires: '2026-12-31' }), true)
  const description = '[expires: 2026-12-31]'
  const deny = await bench.ok('create-deny-rule', { ...NEW, description, dry_run: true })
  t.ok(deny.warnings.includes(said), 'create-deny-rule')
  const { ruleset_name: _set, ...plain } = NEW
  const rules = [plain, { ...plain, description }]
  const { warnings } = await bench.ok('create-ruleset', { name: 'New', scopes: [[]], rules, dry_run: true })
  t.same(
    warnings.filter((text: string) => text.includes('retire-expired')),
    [`Rule 1: ${said}`],
  )
})

t.test(
  'an end that is over, is no day, or contradicts the description is refused before anything is written',
  async (t) => {
    const bench = await start(t, [rule()])
    bench.writes()
    const cases: [args: object, argument: string][] = [
      [{ expires: '2026-06-14' }, 'expires'],
      [{ expires: '31.12.2026' }, 'expires'],
      [{ expires: '2026-02-30' }, 'expires'],
      [{ expires: 'never' }, 'expires'],
      [{ expires: '2026-12-31', description: '[expires: 2027-01-01]' }, 'description'],
      [{ expires: '2026-12-31', description: '[expires: never]' }, 'description'],
      [{ expires: '2026-12-31', description: '[expires 2026-12-31]' }, 'description'],
      [{ description: '[expires: 31.12.2026]' }, 'description'],
      [{ description: '[expires: 2026-12-31] [expires: 2027-12-31]' }, 'description'],
    ]
    for (const [args, argument] of cases) {
      const { argument: found } = await bench.fails('create-rule', { ...NEW, ...args }, 'invalid_argument')
      t.equal(found, argument, JSON.stringify(args))
    }
    const deny = { ...NEW, description: '[expires 2026]' }
    t.equal((await bench.fails('create-deny-rule', deny, 'invalid_argument')).argument, 'description')
    const { ruleset_name: _name, ...inside } = deny
    const set = { name: 'New', scopes: [['app=shop']], rules: [{ ...inside, description: 'fine' }, inside] }
    const refused = await bench.fails('create-ruleset', set, 'invalid_argument')
    t.same([refused.argument, refused.rule_index], ['description', 1])
    t.same(bench.writes(), [])
  },
)

t.test('a day in prose is stored with a warning that it ends nothing', async (t) => {
  const bench = await start(t, [rule()])
  const said =
    'The description is not read as an end of the rule: "expires 31 December 2026" is prose, not [expires: YYYY-MM-DD].'
  for (const tool of ['create-rule', 'create-deny-rule']) {
    const { warnings } = await bench.ok(tool, { ...NEW, description: 'expires 31 December 2026', dry_run: true })
    t.ok(warnings.includes(said), tool)
  }
  const { warnings } = await bench.ok('update-sec-rule', {
    href: `${AT}/sec_rules/1`,
    description: 'expires 31 December 2026',
  })
  t.ok(warnings.includes(said))
})

t.test('a new description keeps the end of the rule, unless it names another one or [expires: never]', async (t) => {
  const ended = '[expires: 2026-12-31] Migration'
  const kept =
    'The rule still ends after 2026-12-31: the new description said nothing of that, so its marker was kept. To take the end away, write [expires: never].'
  const cases: [was: string | undefined, asked: string, stored: string, said: string[]][] = [
    [ended, 'Migration of the shop', '[expires: 2026-12-31] Migration of the shop', [kept]],
    [ended, '', '[expires: 2026-12-31]', [kept]],
    [
      ended,
      'Longer [expires: 2027-01-31]',
      'Longer [expires: 2027-01-31]',
      ['The rule ends after 2027-01-31, no longer after 2026-12-31.'],
    ],
    [ended, 'For good [expires: never]', 'For good [expires: never]', ['The rule no longer ends after 2026-12-31.']],
    [ended, '[expires: 2026-12-31] Other text', '[expires: 2026-12-31] Other text', []],
    ['plain', 'other', 'other', []],
    [undefined, '[expires: 2026-12-31]', '[expires: 2026-12-31]', []],
    [
      '[expires: soon]',
      'other',
      'other',
      [
        'The old description was about an end that could not be read ("[expires: soon]" is not [expires: YYYY-MM-DD]); the new one is not.',
      ],
    ],
  ]
  for (const kind of ['sec', 'deny'] as const) {
    const rules = cases.map(([was]) => rule(was))
    const bench = kind === 'sec' ? await start(t, rules) : await start(t, [], rules)
    for (const [at, [, asked, stored, said]] of cases.entries()) {
      const href = `${AT}/${kind}_rules/${at + 1}`
      const { rule: now, warnings = [] } = await bench.ok(`update-${kind}-rule`, { href, description: asked })
      t.equal(now.description ?? '', stored, `${kind}: ${asked}`)
      t.same(
        warnings.filter((text: string) => /end/.test(text) && !/VEN/.test(text)),
        said,
        `${kind}: ${asked}`,
      )
      const again = await bench.ok(`update-${kind}-rule`, { href, description: asked })
      t.same(again.updated_fields, [], `${kind}: the same call again changes nothing`)
    }
    const href = `${AT}/${kind}_rules/1`
    const { argument: found } = await bench.fails(
      `update-${kind}-rule`,
      { href, description: '[expires: x]' },
      'invalid_argument',
    )
    t.equal(found, 'description')
    const { rule: same } = await bench.ok(`update-${kind}-rule`, { href, enabled: false })
    t.equal(same.description, '[expires: 2026-12-31] Migration of the shop', 'another change leaves the text alone')
  }
})

t.test('create-ruleset takes ends in descriptions of its rules as create-rule does', async (t) => {
  const bench = await start(t, [])
  const create = (description: string) => ({
    name: 'New',
    scopes: [['app=shop']],
    rules: [{ providers: ['ams'], consumers: ['role=web'], ingress_services: [{ port: 443, proto: 6 }], description }],
  })
  const odd = await bench.fails('create-ruleset', create('[expires: 30.06.2026]'), 'invalid_argument')
  t.same([odd.argument, odd.rule_index], ['description', 0])
  const over = '[expires: 2026-06-14] test'
  const said = 'The description says that the rule ended after 2026-06-14 (UTC), which is over.'
  for (const more of [{ dry_run: true }, {}])
    t.ok((await bench.ok('create-ruleset', { ...create(over), ...more })).warnings.includes(`Rule 0: ${said}`))
  const rule = { ruleset_name: 'Shop', providers: ['ams'], consumers: ['role=web'] }
  const one = { ...rule, ingress_services: [{ port: 22, proto: 6 }], description: over }
  const made = await bench.ok('create-rule', one)
  t.ok(made.warnings.includes(said))
})

t.test('an empty answer says what was not searched', async (t) => {
  const bench = await start(t, [rule('Web to database')])
  const none = await bench.ok('find-rules', { expires_before: 'today' })
  t.match(
    none.summary,
    /compared here\. Ends are found by \[expires: YYYY-MM-DD\] in the description of a rule; a rule without it counts as one without an end\.$/,
  )
  const ends = await bench.ok('find-rules', { actor: 'app=shop' })
  t.match(
    ends.summary,
    / Scopes of rule sets are not searched for actor: applies_to \(labels, a workload or an address\) counts them, too\.$/,
  )
  t.notMatch((await bench.ok('find-rules', { actor: 'role=web' })).summary, 'Scopes')
})

/** retire-expired on an estate made by hand: which rules are over, what traffic depends on them, and what is written. */
import t, { type Test } from 'tap'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TCP = (port: number) => ({ port, proto: 6 })
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const OVER = '[expires: 2026-06-14]'

const start = (t: Test) =>
  startBench(t, {
    estate: handMade({
      hosts: {
        web: { ip: '10.0.0.1', labels: 'app=shop role=web', mode: 'full' },
        db: { ip: '10.0.0.2', labels: 'app=shop role=db', mode: 'full' },
        batch: { ip: '10.0.0.3', labels: 'app=shop role=batch', mode: 'full' },
      },
      ruleSets: [
        {
          name: 'Shop',
          scope: 'app=shop',
          allow: [
            { from: 'role=web', to: 'role=db', services: [TCP(5432)], description: `${OVER} migration` }, // 1
            { from: 'role=batch', to: 'role=db', services: [TCP(22)], description: OVER }, // 2
            { from: 'ams', to: 'role=db', services: [TCP(22)], description: '[expires: 2026-06-01]' }, // 3
            { from: 'role=web', to: 'role=batch', services: [TCP(9)], description: OVER }, // 4
            { from: 'role=web', to: 'role=db', services: [TCP(443)], description: '[expires: 2026-06-15]' }, // 5
            { from: 'role=web', to: 'role=db', services: [TCP(444)], description: '[expires: soon]' }, // 6
            { from: 'role=web', to: 'role=db', services: [TCP(445)], description: OVER, enabled: false }, // 7
            { from: 'ams', to: 'role=db', services: [TCP(3306)] }, // 8
          ],
          override: [{ from: 'role=web', to: 'role=db', services: [TCP(3306)], description: OVER }], // 9
        },
        { name: 'Other', scope: 'app=other', allow: [{ from: 'ams', to: 'ams', description: OVER }] }, // 10
      ],
      flows: [
        { from: 'web', to: 'db', port: 5432, connections: 40 },
        { from: 'batch', to: 'db', port: 22, connections: 7 },
        { from: 'web', to: 'db', port: 3306, connections: 3 },
        { from: 'web', to: 'db', port: 443, connections: 5 },
      ],
    }),
  })

const idOf = (href: string) => Number(href.slice(href.lastIndexOf('/') + 1))
const hrefOf = (id: number) =>
  id === 10 ? `${SETS}/2/sec_rules/10` : `${SETS}/1/${id === 9 ? 'deny_rules' : 'sec_rules'}/${id}`
/** Whether the rules of the draft are enabled, and what is pending of them, by id. */
async function rulesOf({ pce }: Bench): Promise<Record<number, string>> {
  const sets = await pce.ruleSets.getAll('draft')
  const rules = sets.flatMap(({ rules = [], deny_rules: denies = [] }) => [...(rules ?? []), ...(denies ?? [])])
  return Object.fromEntries(
    rules.map(({ href, enabled, update_type: type }) => [idOf(href), `${enabled ? 'on' : 'off'} ${type ?? ''}`.trim()]),
  )
}
const STAY = { 5: 'on', 6: 'on', 7: 'off', 8: 'on' }
const CHANGED = [1, 2, 3, 4, 9, 10]
const each = (ids: readonly number[], text: string) => Object.fromEntries(ids.map((id) => [id, text]))

t.test(
  'a dry run has each rule that is over with the traffic that depends on it, judged with all of them gone',
  async (t) => {
    const bench = await start(t)
    bench.writes()
    const answer = await bench.ok('retire-expired', { dry_run: true })
    t.same(
      answer.rules.map(({ href, evidence, says, depends, asked_for: asked }: Json) => [
        idOf(href),
        evidence,
        says,
        ...[...(depends ?? []), ...(asked ?? [])].map((pair: Json) => `${pair.connections} ${pair.ports}`),
      ]),
      [
        // Rules 3 and 2 allow the same: without one alone nothing would be cut, without both it is.
        [3, 'depends', 'In 30 days 7 connections of 1 pair would be cut.', '7 22/tcp'],
        [1, 'depends', 'In 30 days 40 connections of 1 pair would be cut.', '40 5432/tcp'],
        [2, 'depends', 'In 30 days 7 connections of 1 pair would be cut.', '7 22/tcp'],
        [9, 'asked_for', 'In 30 days 3 connections of 1 pair would be stopped without it.', '3 3306/tcp'],
        [4, 'none', 'No evidence in 30 days.'],
        [10, 'none', 'No evidence in 30 days.'],
      ],
    )
    t.same(answer.counts, { over: 7, already_disabled: 1, left: 0, unclear: 1 })
    t.same(answer.unclear, [
      { href: hrefOf(6), rule_set: 'Shop', why: '"[expires: soon]" is not [expires: YYYY-MM-DD]' },
    ])
    t.equal(answer.message, 'Would disable, in draft, 6 rules of 2 rule sets that are over.')
    t.same(
      answer.requests.map(({ method, path, body }: Json) => [method, idOf(path), body.enabled]).sort(),
      CHANGED.map((id) => ['PUT', id, false]).sort(),
    )
    t.same(answer.warnings, [
      'Of 3 rules: observed traffic depends on what it takes away.',
      'Of 1 rule: observed traffic asked for what it lets pass.',
      '1 description about an end that cannot be read: see unclear. They were left alone.',
    ])
    t.same(bench.writes(), [])
  },
)
t.test('rules are disabled, or deleted, as a draft; the same call again finds nothing to do', async (t) => {
  const bench = await start(t)
  bench.writes()
  const answer = await bench.ok('retire-expired')
  t.equal(answer.message, 'Disabled 6 of 6 rules that are over, in draft. It takes effect when provisioned.')
  t.same(
    answer.rules.map(({ href, outcome }: Json) => [idOf(href), outcome]).sort(),
    CHANGED.map((id) => [id, 'disabled']).sort(),
  )
  t.same(
    bench.writes().map(({ method, body }) => [method, body]),
    CHANGED.map(() => ['PUT', { enabled: false }]),
  )
  t.same(await rulesOf(bench), { ...STAY, ...each(CHANGED, 'off update') })
  const again = await bench.ok('retire-expired')
  t.same([again.message, again.rules, bench.writes()], ['Nothing to do: 7 rules over, disabled already.', [], []])

  const deleted = await bench.ok('retire-expired', { action: 'delete' })
  t.equal(deleted.message, 'Deleted 7 of 7 rules that are over, in draft. It takes effect when provisioned.')
  t.same(await rulesOf(bench), { 5: 'on', 6: 'on', 8: 'on', ...each([...CHANGED, 7], 'off delete') })
  const none = await bench.ok('retire-expired', { action: 'delete' })
  t.same([none.message, none.rules], ['No rule of the draft is over.', []])
})

t.test('only the rules that are named, each of which has to be over', async (t) => {
  const bench = await start(t)
  bench.writes()
  const cases: [id: number, why: string][] = [
    [5, 'it ends after 2026-06-15'],
    [6, '"[expires: soon]" is not [expires: YYYY-MM-DD]'],
    [8, 'its description says no end'],
    [99, 'no such rule'],
  ]
  for (const [id, why] of cases) {
    const refused = await bench.fails('retire-expired', { hrefs: [hrefOf(1), hrefOf(id)] }, 'invalid_argument')
    t.equal(refused.message, `Not of a rule of the draft that is over: "${hrefOf(id)}" (${why}). Nothing was written.`)
    t.same([refused.argument, refused.hrefs], ['hrefs', [hrefOf(id)]])
  }
  t.same(bench.writes(), [])
  await bench.ok('retire-expired', { hrefs: [hrefOf(1).replace('/draft/', '/active/'), hrefOf(9)] })
  t.same(
    bench.writes().map(({ path }) => path),
    [`/api/v2${hrefOf(9)}`, `/api/v2${hrefOf(1)}`],
  )
})

t.test('a write that fails says what exists, and the same call completes it', async (t) => {
  const bench = await start(t)
  bench.writes()
  bench.simulator.faults.add({ kind: 'status', status: 406, method: 'PUT', path: hrefOf(2), times: 1 } as Json)
  const failed = await bench.fails('retire-expired', {}, 'pce_error')
  const done = (await rulesOf(bench)) as Json
  const off = CHANGED.filter((id) => done[id] === 'off update')
  t.same(failed.written.map(({ href }: Json) => idOf(href)).sort(), off, 'written is what is disabled')
  t.same([failed.partial, idOf(failed.failed)], [true, 2])
  t.same(
    [...off, 2, ...failed.not_attempted.map(idOf)].sort(),
    [...CHANGED].sort(),
    'every rule is in one of the three',
  )
  await bench.ok('retire-expired')
  t.same(await rulesOf(bench), { ...STAY, ...each(CHANGED, 'off update') })
})

t.test('whatever a write meets, what is written is said, and the same call completes it', async (t) => {
  const strikes = [
    { kind: 'status', status: 503, times: 20 },
    { kind: 'reset', times: 20 },
    { kind: 'commit-then-drop', times: 1 },
    { kind: 'truncate', times: 1 },
  ] as const
  for (const action of ['disable', 'delete'])
    for (const strike of strikes)
      for (const skip of [0, 3]) {
        const bench = await start(t)
        const what = `${action}, write ${skip + 1}: ${strike.kind}`
        const method = action === 'delete' ? 'DELETE' : 'PUT'
        const wanted = action === 'delete' ? [...CHANGED, 7] : CHANGED
        const isRetired = (text = 'gone') => (action === 'delete' ? /delete$/ : /^off update/).test(text)
        bench.simulator.faults.add({ ...strike, path: /_rules\/\d+$/, method, skip } as Json)
        const answer = await bench.answer('retire-expired', { action })
        bench.simulator.faults.clear()
        const now = await rulesOf(bench)
        const retired = wanted.filter((id) => isRetired(now[id]))
        if (answer.error === undefined) t.same(retired.sort(), [...wanted].sort(), what)
        else {
          const written = (answer.written ?? []).map(({ href }: Json) => idOf(href))
          const open = idOf(answer.failed ?? answer.href ?? '')
          t.same(retired.filter((id) => id !== open).sort(), written.filter((id: number) => id !== open).sort(), what)
          t.equal(answer.partial ?? false, skip > 0, what)
        }
        await bench.ok('retire-expired', { action })
        const after = await rulesOf(bench)
        t.same(
          wanted.filter((id) => !isRetired(after[id])),
          [],
          `${what}: the same call completes it`,
        )
      }
})

t.test('a rule that is given another end meanwhile is kept', async (t) => {
  const bench = await start(t)
  const { pce } = bench
  const get = pce.rules.getByReference.bind(pce.rules)
  let isChanged = false
  pce.rules.getByReference = async (href, options) => {
    if (!isChanged && href === hrefOf(2)) {
      isChanged = true
      await pce.put(href, { json: { description: '[expires: 2026-07-31]' }, includeOrg: false })
    }
    return get(href, options)
  }
  const answer = await bench.ok('retire-expired')
  t.equal(answer.message, 'Disabled 5 of 6 rules that are over, in draft. It takes effect when provisioned.')
  const kept = answer.rules.find(({ href }: Json) => idOf(href) === 2)
  partial(t, kept, { outcome: 'kept', note: 'It was given another end meanwhile: 2026-07-31.' })
  t.equal((await rulesOf(bench))[2], 'on update')
})

t.test('what is confirmed is bound to the rules as they are', async (t) => {
  const bench = await start(t)
  const tool = tools.find(({ name }) => name === 'retire-expired')!
  const ctx = contextOf(bench) as never
  const bound = (args: object) => tool.boundTo!(args as never, ctx)
  const first = await bound({})
  t.equal(first, await bound({}))
  t.not(first, await bound({ action: 'delete' }), 'by what becomes of them')
  const preview = await tool.preview!({} as never, ctx)
  t.equal(preview.boundTo, first, 'the preview is bound as the call is')
  partial(t, preview.page?.objects[0], {
    kind: 'allow rule',
    href: hrefOf(3),
    change: 'update',
    fields: [{ path: 'enabled', before: true, after: false }],
    evidence: {
      says: 'In 30 days 7 connections of 1 pair would be cut.',
      traffic: [
        {
          source: 'batch',
          destination: 'db',
          ports: ['22/tcp'],
          connections: 7,
          effect: 'would be cut',
          last_seen: '2026-06-14',
        },
      ],
    },
    note: 'It ended after 2026-06-01.',
  })
  await bench.pce.put(hrefOf(1), { json: { ingress_services: [TCP(5433)] }, includeOrg: false })
  t.not(await bound({}), first, 'by what the rules are')
})

/** The part of a context that a tool needs to look. */
function contextOf({ pce }: Bench): object {
  const { signal } = new AbortController()
  return {
    pce,
    caller: {},
    signal,
    beforeWriting: signal,
    now: () => Date.parse('2026-06-15T12:00:00Z'),
    progress: () => undefined,
    limits: { responseBudgetBytes: 24_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
  }
}

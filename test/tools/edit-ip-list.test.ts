/** edit-ip-list-ranges: entries added to an IP list and removed from it; everything else stays as it is, and what that does is told. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TOOL = 'edit-ip-list-ranges'
const HREF = '/orgs/1/sec_policy/draft/ip_lists/2'

async function start(t: Test): Promise<Bench> {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: { web: { ip: '10.0.0.1', labels: 'app=shop' } },
      ipLists: {
        Office: ['10.0.0.0/8', '192.0.2.0-192.0.2.63', '!10.9.0.0/16', '2001:db8::/64'],
        Unused: ['198.51.100.7'],
        Bad: ['203.0.113.0/24'],
      },
      ruleSets: [
        { name: 'Shop', scope: 'app=shop', allow: [{ from: 'iplist:Office', to: 'ams' }] },
        { name: 'Block', scope: '', deny: [{ from: 'iplist:Bad', to: 'ams' }] },
      ],
    }),
  })
  bench.writes()
  return bench
}

/** The ranges and names that the PCE has. */
const stored = async (bench: Bench, name = 'Office'): Promise<string[]> => {
  const { ip_ranges: ranges, fqdns } = (await bench.pce.ipLists.getByName(name)) as Json
  const written = ranges.map(({ from_ip: from, to_ip: to, exclusion, description }: Json) =>
    [exclusion ? '!' : '', from, to ? `-${to}` : '', description ? ` ${description}` : ''].join(''),
  )
  return [...written, ...(fqdns ?? []).map(({ fqdn }: Json) => fqdn)]
}

async function refused(t: Test, bench: Bench, args: object, code: string, facts: object): Promise<void> {
  bench.writes()
  partial(t, await bench.fails(TOOL, { name: 'Office', ...args }, code), facts)
  t.same(bench.writes(), [], 'nothing was written')
}

const BEFORE = ['10.0.0.0/8', '192.0.2.0-192.0.2.63', '!10.9.0.0/16', '2001:db8::/64']

t.test('adds and removes entries in any spelling; the rest stays, in its order', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok(TOOL, {
    name: 'Office',
    add_ranges: [
      '172.16.0.0/12',
      ' 198.51.100.1 - 198.51.100.9 ',
      { from_ip: '10.8.0.0/16', exclusion: true, description: 'lab' },
    ],
    remove_ranges: ['192.0.2.0/26', { from_ip: '10.9.0.0', to_ip: '10.9.255.255', exclusion: true }],
    add_fqdns: ['*.example.com', { fqdn: 'db.example.org', description: 'db' }],
  })
  t.same(answer, {
    message: 'Changed the IP list "Office": 5 additions and 2 removals. It takes effect when provisioned.',
    updated_fields: ['ip_ranges', 'fqdns'],
    warnings: [answer.warnings[0]],
    href: HREF,
    name: 'Office',
    added: ['172.16.0.0/12', '198.51.100.1-198.51.100.9', '!10.8.0.0/16', '*.example.com', 'db.example.org'],
    removed: ['192.0.2.0-192.0.2.63', '!10.9.0.0/16'],
    gained: {
      addresses: String(2 ** 20 + 2 ** 16 + 9),
      ranges: ['10.9.0.0/16', '172.16.0.0/12', '198.51.100.1-198.51.100.9'],
    },
    lost: { addresses: String(64 + 2 ** 16), ranges: ['10.8.0.0/16', '192.0.2.0/26'] },
    ranges_total: 5,
    fqdns_total: 2,
    effect_note: 'Mixed: it permits some traffic that is not permitted today, and stops some that is.',
    used_by: { rules: 1, in: ['Shop'] },
  })
  t.match(answer.warnings[0], /^1 rule uses the list \(in "Shop"\): Mixed/)
  t.same(await stored(bench), [
    '10.0.0.0/8',
    '2001:db8::/64',
    '172.16.0.0/12',
    '198.51.100.1-198.51.100.9',
    '!10.8.0.0/16 lab',
    '*.example.com',
    'db.example.org',
  ])
  const [sent, ...more] = bench.writes()
  t.same(more, [])
  partial(t, sent, { method: 'PUT', path: `/api/v2${HREF}` })
  t.same(Object.keys(sent!.body as object).sort(), ['fqdns', 'ip_ranges'])
})

t.test('only the list that changes is sent', async (t) => {
  const bench = await start(t)
  await bench.ok(TOOL, { href: HREF.replace('draft', 'active'), add_fqdns: ['a.example.com'] })
  const [sent] = bench.writes()
  t.same(sent!.body, { fqdns: [{ fqdn: 'a.example.com' }] })
  await bench.ok(TOOL, { href: HREF, remove_fqdns: ['A.Example.COM'] })
  t.same(await stored(bench), BEFORE)
})

t.test('what is there already is told; where that is all, nothing is written', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok(TOOL, {
    name: 'Office',
    add_ranges: ['10.0.0.0-10.255.255.255', '2001:DB8:0::/64', '192.0.2.99'],
  })
  partial(t, answer, { added: ['192.0.2.99'], already_there: ['10.0.0.0-10.255.255.255', '2001:DB8:0::/64'] })
  t.same(await stored(bench), [...BEFORE, '192.0.2.99'])
  bench.writes()
  const again = await bench.ok(TOOL, { name: 'Office', add_ranges: ['192.0.2.99', '192.0.2.99/32'] })
  t.same(again, {
    message: 'The IP list "Office" already has these values; nothing was written.',
    updated_fields: [],
    href: HREF,
    name: 'Office',
    already_there: ['192.0.2.99', '192.0.2.99/32'],
    ranges_total: 5,
    fqdns_total: 0,
  })
  t.same(bench.writes(), [])
  t.same((await bench.ok(TOOL, { name: 'Office', add_ranges: ['192.0.2.98', '192.0.2.98'] })).added, ['192.0.2.98'])
})

t.test('an addition that changes nothing is made, and told', async (t) => {
  const bench = await start(t)
  const { warnings } = await bench.ok(TOOL, {
    name: 'Unused',
    add_ranges: [
      '10.0.0.0/8',
      { from_ip: '10.1.0.0/16', exclusion: true },
      { from_ip: '172.16.0.0/12', exclusion: true },
      '198.51.100.0/24',
    ],
  })
  t.same(warnings, ['!172.16.0.0/12 takes nothing out: no range has any of it.'])
  const later = await bench.ok(TOOL, { name: 'Unused', add_ranges: ['10.1.2.0/24', '198.51.100.4', '10.0.0.0/7'] })
  const wide = later.warnings.pop()
  t.match(wide, /^The list has thousands of addresses beyond private ranges: 0\.7 % of IPv4 and 0 % of IPv6\./u)
  t.same(later.warnings, [
    '10.1.2.0/24 adds nothing: exclusions take it out.',
    '198.51.100.4 adds nothing: other ranges have it.',
  ])
  partial(t, later, { gained: { addresses: String(2 ** 24), ranges: ['11.0.0.0/8'] }, effect: 'neutral' })
})

t.test('the effect is judged through the rules: allows and denies, used or not', async (t) => {
  const bench = await start(t)
  const judged = async (args: object) => {
    const {
      effect,
      effect_note: note,
      used_by: used,
      risks,
      warnings,
    } = await bench.ok(TOOL, { ...args, dry_run: true })
    return { effect: effect ?? note, used: used?.rules, risks, warned: (warnings ?? []).join(' ') }
  }
  partial(t, await judged({ name: 'Office', add_ranges: ['172.16.0.1'] }), {
    effect: 'widening',
    used: 1,
    warned: /may permit more traffic/,
  })
  partial(t, await judged({ name: 'Office', remove_ranges: ['192.0.2.0/26'] }), {
    effect: 'narrowing',
    warned: /may permit less/,
  })
  partial(t, await judged({ name: 'Bad', add_ranges: ['172.16.0.1'] }), { effect: 'narrowing' })
  partial(t, await judged({ name: 'Bad', add_ranges: ['172.16.0.1'], remove_ranges: ['203.0.113.0/24'] }), {
    effect: /^Mixed/,
  })
  partial(t, await judged({ name: 'Office', add_ranges: ['0.0.0.0/0'] }), {
    effect: 'widening',
    risks: ['any_address'],
  })
  t.same(await judged({ name: 'Unused', add_ranges: ['0.0.0.0/0'] }), {
    effect: 'neutral',
    used: 0,
    risks: undefined,
    warned:
      'The list is any address in effect: it has 100 % of IPv4 and 0 % of IPv6. A rule that allows it allows nearly everybody.',
  })
  t.same(await judged({ name: 'Office', add_ranges: ['10.1.0.0/16'] }), {
    effect: 'neutral',
    used: 1,
    risks: undefined,
    warned: '10.1.0.0/16 adds nothing: other ranges have it.',
  })
  // A rule of the draft alone counts as well.
  await bench.ok('create-ruleset', {
    name: 'Later',
    scopes: [['app=shop']],
    rules: [{ consumers: ['iplist:Unused'], providers: ['ams'], ingress_services: ['All Services'] }],
  })
  partial(t, await judged({ name: 'Unused', add_fqdns: ['a.example.com'] }), {
    effect: 'widening',
    used: 1,
    warned: /in "Later"/,
  })
  bench.simulator.faults.add({ kind: 'status', status: 403, path: /\/active\/rule_sets$/, times: 1 })
  partial(t, await judged({ name: 'Office', add_ranges: ['172.16.0.1'] }), {
    effect: /^Undecided/,
    warned: /could not be read/,
  })
})

t.test('what is not in the list cannot be removed, and what is near is named', async (t) => {
  const bench = await start(t)
  const unknown = (args: object, facts: object) => refused(t, bench, args, 'not_found', facts)
  await unknown(
    { remove_ranges: ['10.1.0.0/16'] },
    {
      message: 'The IP list "Office" does not have "10.1.0.0/16".',
      not_in_list: ['10.1.0.0/16'],
      near_entries: ['10.0.0.0/8', '!10.9.0.0/16'],
      hint: /part of 10\.0\.0\.0\/8: add it with exclusion: true/,
    },
  )
  await unknown(
    { remove_ranges: ['10.9.0.0/16'] },
    { near_entries: ['10.0.0.0/8', '!10.9.0.0/16'], hint: /there as an exclusion/ },
  )
  // Next to one that is there, which has none of it.
  await unknown({ remove_ranges: ['11.0.0.0-11.9.9.9'] }, { near_entries: [] })
  await unknown({ remove_ranges: [{ from_ip: '10.0.0.0/8', exclusion: true }] }, { hint: /leave exclusion out/ })
  await unknown(
    { remove_ranges: ['192.0.2.0-192.0.2.64', '10.0.0.0/8'] },
    {
      not_in_list: ['192.0.2.0-192.0.2.64'],
      near_entries: ['192.0.2.0-192.0.2.63'],
    },
  )
  await bench.ok(TOOL, { name: 'Office', add_fqdns: ['db.example.org'] })
  await unknown(
    { remove_fqdns: ['dbb.example.org', 'x'] },
    { not_in_list: ['dbb.example.org', 'x'], near_entries: ['db.example.org'] },
  )
})

t.test('what is no edit is refused, and so is an empty list', async (t) => {
  const bench = await start(t)
  await refused(t, bench, {}, 'no_update_fields', {
    fields: ['add_ranges', 'remove_ranges', 'add_fqdns', 'remove_fqdns'],
  })
  await refused(t, bench, { add_ranges: [] }, 'no_update_fields', {})
  await refused(t, bench, { name: 'Offic', add_ranges: ['192.0.2.1'] }, 'not_found', { near_names: ['Office'] })
  await refused(t, bench, { href: HREF, add_ranges: ['192.0.2.1'] }, 'conflicting_identifiers', {})
  await refused(t, bench, { add_ranges: ['192.0.2.1', '10.0.0.300'] }, 'invalid_argument', {
    argument: 'add_ranges[1]',
  })
  await refused(t, bench, { remove_ranges: ['10.0.0.9-10.0.0.1'] }, 'invalid_argument', {
    argument: 'remove_ranges[0]',
  })
  await refused(t, bench, { add_ranges: ['10.0.0.0/8-10.0.0.1'] }, 'invalid_argument', { message: /already a network/ })
  await refused(t, bench, { add_ranges: ['10.0.0.1-'] }, 'invalid_argument', { message: /not an address/ })
  for (const entry of [{}, { from_ip: 7 }, { from_ip: '10.0.0.1', exclusion: 'yes' }, { from_ip: '10.0.0.1', mask: 8 }])
    await refused(t, bench, { add_ranges: [entry] }, 'invalid_argument', { argument: 'add_ranges[0]' })
  await refused(t, bench, { add_fqdns: ['not a name'] }, 'invalid_argument', { argument: 'add_fqdns' })
  await refused(t, bench, { remove_fqdns: ['10.0.0.1'] }, 'invalid_argument', { argument: 'remove_fqdns' })
  await refused(t, bench, { add_ranges: ['192.0.2.1'], remove_ranges: ['192.0.2.1/32'] }, 'invalid_argument', {
    both: ['192.0.2.1/32'],
  })
  await refused(t, bench, { name: 'Unused', remove_ranges: ['198.51.100.7'] }, 'invalid_argument', {
    message: /would leave nothing in the IP list "Unused"/,
  })
  partial(t, await bench.ok(TOOL, { name: 'Any (0.0.0.0/0 and ::/0)', add_ranges: ['192.0.2.1'], dry_run: true }), {
    warnings: [/built in/, /adds nothing/],
  })
})

t.test('a dry run shows the request, sends none, and is what a real call sends', async (t) => {
  const bench = await start(t)
  const args = { name: 'Office', add_ranges: ['172.16.0.0/12'], remove_ranges: ['192.0.2.0/26'] }
  const dried = await bench.ok(TOOL, { ...args, dry_run: true })
  const { message, requests, dry_run: dry, warnings, observed: _seen, ...plan } = dried
  t.same(bench.writes(), [])
  t.equal(dry, true)
  t.equal(message, 'Would change the IP list "Office": 1 addition and 1 removal.')
  const done = await bench.ok(TOOL, args)
  const [sent] = bench.writes()
  t.same(requests, [{ method: 'PUT', path: HREF, body: sent!.body }])
  const { message: _done, updated_fields: _fields, warnings: said, ...rest } = done
  t.same(rest, plan)
  t.same(said, warnings)
})

t.test(
  'a dry run on a long list shows what changes and counts the rest, and detail_level full shows the request',
  async (t) => {
    const ranges = Array.from({ length: 400 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`)
    const bench = await startBench(t, { estate: handMade({ ipLists: { Long: ranges } }) })
    const args = { name: 'Long', add_ranges: ['172.16.0.0/12'], remove_ranges: ['10.0.7.0/24'], dry_run: true }
    bench.writes()
    const { requests, ...dry } = await bench.ok(TOOL, args)
    partial(t, dry, { added: ['172.16.0.0/12'], removed: ['10.0.7.0/24'], ranges_total: 400 })
    t.same(requests, [{ method: 'PUT', path: HREF, body: { ip_ranges: '400 items: detail_level full shows them' } }])
    const full = await bench.ok(TOOL, { ...args, detail_level: 'full' })
    t.equal(full.requests[0].body.ip_ranges.length, 400)
    t.same(bench.writes(), [])
    await bench.ok(TOOL, { ...args, dry_run: false })
    t.same(
      bench.writes().map(({ method, body }) => ({ method, body })),
      full.requests.map(({ method, body }: Json) => ({ method, body })),
      'which is what a real call sends',
    )
    const asked = await startBench(t, { estate: handMade({ ipLists: { Long: ranges } }), budget: Infinity })
    t.same(
      (await asked.ok(TOOL, args)).requests,
      full.requests,
      'a question before the write is bound to all of it (D232)',
    )
  },
)

/** Does something else right before the list is read again, which is the last thing before the write. */
function meanwhile({ pce }: Bench, times: number, act: (at: number) => Promise<unknown>) {
  const read = pce.ipLists.getByReference.bind(pce.ipLists)
  let at = 0
  pce.ipLists.getByReference = async (...args) => {
    if (at < times) await act(at++)
    return read(...args)
  }
  return () => void (pce.ipLists.getByReference = read)
}

t.test('what somebody else changes meanwhile is kept, and told', async (t) => {
  const bench = await start(t)
  const theirs = (ranges: string[]) =>
    bench.pce.ipLists.update(HREF, { ip_ranges: ranges.map((from_ip) => ({ from_ip })) })
  meanwhile(bench, 1, () => theirs(['10.0.0.0/8', '203.0.113.0/24']))
  const answer = await bench.ok(TOOL, { name: 'Office', add_ranges: ['172.16.0.0/12', '203.0.113.0/24'] })
  t.same(await stored(bench), ['10.0.0.0/8', '203.0.113.0/24', '172.16.0.0/12'])
  partial(t, answer, {
    added: ['172.16.0.0/12'],
    already_there: ['203.0.113.0/24'],
    warnings: [/Somebody else changed the list/, /widen|more/],
  })

  bench.writes()
  meanwhile(bench, 1, () => theirs(['10.0.0.0/8']))
  await bench.fails(TOOL, { name: 'Office', remove_ranges: ['172.16.0.0/12'] }, 'not_found')
  t.same(await stored(bench), ['10.0.0.0/8'], 'what is gone by then is told')

  const stop = meanwhile(bench, 9, (at) => theirs(['10.0.0.0/8', `192.0.2.${at}`]))
  partial(t, await bench.fails(TOOL, { name: 'Office', add_ranges: ['172.16.0.0/12'] }, 'busy'), {
    message: /changed by somebody else 3 times.*Nothing was written/,
    href: HREF,
  })
  t.same(await stored(bench), ['10.0.0.0/8', '192.0.2.2'])
  stop()

  meanwhile(bench, 1, () => bench.pce.ipLists.update(HREF, { description: 'theirs' }))
  t.notMatch((await bench.ok(TOOL, { name: 'Office', add_ranges: ['172.16.0.0/12'] })).warnings.join(), /Somebody/)
  t.equal((await bench.pce.ipLists.getByReference(HREF)).description, 'theirs', 'other fields are not sent')

  meanwhile(bench, 1, () =>
    bench.pce.ipLists
      .delete('/orgs/1/sec_policy/draft/ip_lists/3')
      .then(() => bench.pce.provisionPolicyChanges('d', ['/orgs/1/sec_policy/draft/ip_lists/3'])),
  )
  await bench.fails(TOOL, { name: 'Unused', add_ranges: ['172.16.0.0/12'] }, 'not_found')
})

t.test('it reads back what was stored, and sends no more requests than it says', async (t) => {
  const bench = await start(t)
  bench.simulator.clearRequests()
  await bench.ok(TOOL, { name: 'Office', add_ranges: ['172.16.0.0/12'] })
  const { atMost } = tools.find(({ name }) => name === TOOL)!.pceRequests!
  t.ok(
    bench.simulator.requests.length <= atMost + 2,
    `${bench.simulator.requests.length} requests, of which two for All Services`,
  )
  const read = bench.pce.ipLists.getByReference.bind(bench.pce.ipLists)
  let reads = 0
  bench.pce.ipLists.getByReference = async (...args) => {
    const list = await read(...args)
    return (reads += 1) === 2 ? { ...list, ip_ranges: list.ip_ranges!.slice(1) } : list
  }
  const { differences } = await bench.ok(TOOL, { name: 'Office', add_ranges: ['172.32.0.0/12'] })
  t.same(
    differences.map(({ field }: Json) => field),
    ['ip_ranges'],
  )
})

/** Creating what is there already is warned of before the write: in the dry run, and in the real answer. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Bench } from './harness.js'

const made = handMade({
  hosts: {
    'db-1': { ip: '10.1.0.1', labels: ['app=pay', 'env=prod'] },
    other: { ip: '10.1.0.2', managed: false, labels: ['app=pay day'] },
  },
  ipLists: {
    Branches: ['10.2.0.0/16', '10.3.0.0-10.3.0.255', '!10.2.5.0/24'],
    Half: ['10.2.0.0/17'],
  },
  ruleSets: [{ name: 'Pay', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams' }] }],
})
/** The managed host has no name of its own. */
const estate = {
  ...made,
  workloads: made.workloads.map((one) => (one.hostname === 'db-1' ? { ...one, name: null } : one)),
}
const WORKLOAD = '/orgs/1/workloads/00000000-0000-4000-8000-00000000000'

/** The warnings of the dry run, which are those of the write as well. */
async function warned(bench: Bench, tool: string, args: object): Promise<string[]> {
  const dry = await bench.ok(tool, { ...args, dry_run: true })
  const real = await bench.ok(tool, args)
  t.same(real.warnings, dry.warnings, `${tool} warns of the same in the dry run and after the write`)
  return dry.warnings ?? []
}

t.test('a workload whose name, host name or address another one has', async (t) => {
  const bench = await startBench(t, { estate })
  t.same(await warned(bench, 'create-workload', { name: 'db-1', ip_addresses: ['10.7.0.1', '10.1.0.2'] }), [
    `The PCE allows it, but the name "db-1" is already used by "db-1" (${WORKLOAD}1): from then on it names neither.`,
    `The address 10.1.0.2 is already that of "other" (${WORKLOAD}2): traffic and rules cannot tell them apart.`,
  ])
  t.same(await warned(bench, 'create-workload', { name: 'new', ip_addresses: ['10.7.0.2', '2001:DB8::1'] }), [])
  const [again] = await warned(bench, 'create-workload', { name: 'newer', ip_addresses: ['2001:db8:0::1'] })
  t.match(again, /^The address 2001:db8:0::1 is already that of "new" \(/u)
  const change = { href: `${WORKLOAD}2`, new_name: 'newer', ip_addresses: ['10.1.0.2', '10.1.0.1'] }
  t.same(
    (await warned(bench, 'update-workload', change)).map((text) => text.replace(/ is already .*/u, '')),
    ['The PCE allows it, but the name "newer"', 'The address 10.1.0.1'],
    'what it has itself is no clash',
  )
})

t.test('in a large estate the look is bounded, and says what it did not look at', async (t) => {
  const many = Object.fromEntries(
    Array.from({ length: 501 }, (_, at) => [
      `host-${at}`,
      { ip: `10.${100 + (at >> 8)}.${at & 255}.1`, managed: false },
    ]),
  )
  const ipLists = Object.fromEntries(
    Array.from({ length: 500 }, (_, at) => [`List ${at}`, [`10.${at >> 8}.${at & 255}.0/24`]]),
  )
  const bench = await startBench(t, {
    estate: handMade({ hosts: many, ipLists: { ...ipLists, Last: ['192.0.2.0/24'] } }),
  })
  const asked = async (tool: string, args: object) => {
    const before = bench.simulator.requests.length
    const { warnings = [] } = await bench.ok(tool, { ...args, dry_run: true })
    return {
      warnings,
      requests: bench.simulator.requests.slice(before).filter(({ path }) => /\/(?:workloads|ip_lists)$/u.test(path))
        .length,
    }
  }
  const addresses = ['2001:DB8:0::1', ...Array.from({ length: 13 }, (_, at) => `10.100.${at}.1`)]
  const workload = await asked('create-workload', { name: 'host-7', ip_addresses: addresses })
  t.match(workload.warnings[0], /^IPv6 addresses were looked for in their usual spelling alone/u)
  t.match(workload.warnings[1], /^Whether another workload has one of the last 2 addresses is not known/u)
  t.match(workload.warnings[2], /the name "host-7" is already used by "host-7" /u)
  t.equal(workload.warnings.length, 3 + 13, 'and those that were read')
  t.equal(workload.requests, 1 + 2 + 12)
  const few = await asked('create-workload', { name: 'host', ip_addresses: ['10.99.0.1'] })
  t.same(few.warnings, [
    'Too many names contain "host" to read them all: whether another workload has it is not known.',
  ])
  const list = await asked('create-iplist', {
    name: 'New',
    ip_ranges: [{ from_ip: '192.0.2.0', to_ip: '192.0.2.255' }],
  })
  t.match(
    list.warnings[0],
    /^"Last" .* already has exactly these addresses/u,
    'a twin beyond the first 500 that begins alike',
  )
  const other = await asked('create-iplist', { name: 'New', ip_ranges: [{ from_ip: '192.0.3.0/24' }] })
  t.same(other, {
    warnings: ['Only 500 of 502 IP lists were compared: whether another has these addresses is not known.'],
    requests: 3,
  })
})

t.test('an IP list with the same addresses, however they are written', async (t) => {
  const bench = await startBench(t, { estate })
  const same = ['10.3.0.0/24', '10.2.0.0/22', '10.2.4.0/24', '10.2.6.0/23', '10.2.8.0-10.2.255.255'].map((text) => {
    const [from = '', to] = text.split('-')
    return { from_ip: from, ...(to !== undefined && { to_ip: to }) }
  })
  const twin =
    '"Branches" (/orgs/1/sec_policy/draft/ip_lists/2) already has exactly these addresses and domain names: use it instead.'
  t.same(await warned(bench, 'create-iplist', { name: 'Twin', ip_ranges: same }), [twin])
  t.same(await warned(bench, 'create-iplist', { name: 'With a name', ip_ranges: same, fqdn: 'a.test' }), [])
  t.same(await warned(bench, 'update-iplist', { name: 'Half', description: 'x' }), [], 'nothing new')
  await bench.ok('delete-iplist', { name: 'Twin' })
  t.same(await warned(bench, 'update-iplist', { name: 'Half', ip_ranges: same }), [twin])
  await bench.ok('update-iplist', { name: 'Half', ip_ranges: same.slice(1) })
  const { warnings } = await bench.ok('edit-ip-list-ranges', {
    name: 'Half',
    add_ranges: ['10.3.0.0/24'],
    dry_run: true,
  })
  t.same(warnings, [twin])
})

t.test('an odd list is left out of the comparison', async (t) => {
  const odd = {
    ...estate,
    ipLists: estate.ipLists.map((list) => (list.name === 'Half' ? { ...list, fqdns: [{ fqdn: null }] } : list)),
  } as unknown as typeof estate
  const bench = await startBench(t, { estate: odd })
  const ranges = [{ from_ip: '10.2.0.0/17' }]
  t.same((await bench.ok('create-iplist', { name: 'Again', ip_ranges: ranges, dry_run: true })).warnings, undefined)
})

t.test('an IP list that is any address in effect', async (t) => {
  const bench = await startBench(t, { estate })
  const halves = ['0.0.0.0/1', '128.0.0.0/1'].map((from) => ({ from_ip: from }))
  const wide = (shares: string) =>
    `The list is any address in effect: it has ${shares}. A rule that allows it allows nearly everybody.`
  t.same(await warned(bench, 'create-iplist', { name: 'Halves', ip_ranges: halves }), [
    wide('100 % of IPv4 and 0 % of IPv6'),
  ])
  t.same(await warned(bench, 'create-iplist', { name: 'Six', ip_ranges: [{ from_ip: '2000::/3' }] }), [
    wide('0 % of IPv4 and 12.5 % of IPv6'),
  ])
  t.same(await warned(bench, 'create-iplist', { name: 'Quarter', ip_ranges: [{ from_ip: '192.0.0.0/2' }] }), [
    'The list has thousands of addresses beyond private ranges: 25 % of IPv4 and 0 % of IPv6. A rule that allows it allows whoever has one of them.',
  ])
  const ours = ['10.0.0.0/8', '172.16.0.0/12', 'fc00::/7', '198.51.100.0/22', '2001:db8::/40'].map((from_ip) => ({
    from_ip,
  }))
  t.same(await warned(bench, 'create-iplist', { name: 'Private', ip_ranges: ours }), [], 'and a few public ones')
  const added = { name: 'Quarter', add_ranges: ['0.0.0.0/1'], dry_run: true }
  t.ok((await bench.ok('edit-ip-list-ranges', added)).warnings.includes(wide('75 % of IPv4 and 0 % of IPv6')))
  const replaced = { name: 'Half', ip_ranges: halves, dry_run: true }
  t.equal((await bench.ok('update-iplist', replaced)).warnings[0], wide('100 % of IPv4 and 0 % of IPv6'))
})

t.test('a label that differs in case or spaces', async (t) => {
  const bench = await startBench(t, { estate })
  const [label] = (await bench.ok('get-labels', { key: 'app', value: 'pay day' })).labels
  t.same(await warned(bench, 'create-label', { key: 'app', value: 'PayDay' }), [
    `The label "app=PayDay" differs only in case or spaces from "app=pay day" (${label.href}); policy treats them as different labels.`,
  ])
})

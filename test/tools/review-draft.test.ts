/** review-draft on an estate made by hand: each pending change with exactly the traffic that depends on it or asked for it. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TCP = (port: number) => ({ port, proto: 6 })
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const estate = () =>
  handMade({
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
      'shop-1': { ip: '10.0.1.1', labels: 'app=shop env=prod', mode: 'full' },
      'crm-1': { ip: '10.0.2.1', labels: 'app=crm env=prod', mode: 'visibility_only' },
    },
    ipLists: { Office: ['192.168.0.0/24'], Unused: ['203.0.113.0/24'] },
    ruleSets: [
      {
        name: 'Pay',
        scope: 'app=pay env=prod',
        allow: [
          { from: 'app=shop', to: 'ams', services: [TCP(443)], extra: true },
          { from: 'iplist:Office', to: 'ams', services: [TCP(22)], extra: true },
        ],
      },
      { name: 'Crm', scope: 'app=crm env=prod' },
      { name: 'Shop', scope: 'app=shop env=prod' },
    ],
    flows: [
      { from: 'shop-1', to: 'pay-1', port: 443, connections: 7 },
      { from: '192.168.0.200', to: 'pay-1', port: 22, connections: 3 },
      { from: 'pay-1', to: 'shop-1', port: 8443, connections: 5 },
      { from: 'pay-1', to: 'crm-1', port: 5432, connections: 2 },
    ],
  })

const rule = (app: string, port: number) => ({
  enabled: true,
  consumers: [{ label: { href: app } }],
  providers: [{ actors: 'ams' }],
  ingress_services: [TCP(port)],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  unscoped_consumers: true,
})

/** The draft: Pay loses shop's rule; Shop and Crm get a rule for what pay asks; Office shrinks; Unused grows. */
async function change({ pce }: Bench): Promise<void> {
  const labels = await pce.labels.getAll()
  const pay = labels.find(({ value }) => value === 'pay')!.href
  const lists = await pce.ipLists.getAll()
  const list = (wanted: string) => lists.find(({ name }) => name === wanted)!.href
  await pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
  await pce.post(`${SETS}/2/sec_rules`, { includeOrg: false, json: rule(pay, 5432) })
  await pce.post(`${SETS}/3/sec_rules`, { includeOrg: false, json: rule(pay, 8443) })
  await pce.ipLists.update(list('Office'), { ip_ranges: [{ from_ip: '192.168.0.0/25' }] })
  await pce.ipLists.update(list('Unused'), { ip_ranges: [{ from_ip: '203.0.113.0/25' }] })
}

const brief = ({ changes }: Json) =>
  Object.fromEntries(
    changes.map(({ name, evidence, says, depends, asked_for: asked }: Json) => [
      name,
      [
        evidence,
        says,
        ...[...(depends ?? []), ...(asked ?? [])].map(
          (pair: Json) => `${pair.source} > ${pair.destination} ${pair.ports}`,
        ),
      ],
    ]),
  )

t.test('each change has the traffic that depends on what it removes, or asked for what it adds', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  await change(bench)
  const answer = await bench.ok('review-draft')
  t.same(brief(answer), {
    Pay: ['depends', 'In 30 days 7 connections of 1 pair would be cut.', 'shop (prod) > pay (prod) 443/tcp'],
    Office: [
      'depends',
      'In 30 days 3 connections of 1 pair would be cut.',
      '192.168.0.200 (Office) > pay (prod) 22/tcp',
    ],
    Shop: [
      'asked_for',
      'In 30 days 5 connections of 1 pair would be stopped without it.',
      'pay (prod) > shop (prod) 8443/tcp',
    ],
    Crm: [
      'asked_for',
      'In 30 days 2 connections of 1 pair would be stopped without it.',
      'pay (prod) > crm (prod) 5432/tcp',
    ],
    Unused: ['no_rules', 'No rule depends on it.'],
  })
  t.same(answer.evidence, { depends: 2, asked_for: 2, no_rules: 1 })
  t.equal(answer.total_pending_changes, 5)
  t.same(answer.changes.map(({ evidence }: Json) => evidence).slice(0, 2), ['depends', 'depends'], 'the worst first')
  t.equal(answer.changes.find(({ name }: Json) => name === 'Pay').effect, 'narrowing')
  t.ok(Buffer.byteLength(JSON.stringify(answer)) < 6_000)
})

t.test('a change that no observed traffic is about has no evidence, and that is said as such', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  const labels = await bench.pce.labels.getAll()
  const crm = labels.find(({ value }) => value === 'crm')!.href
  await bench.pce.post(`${SETS}/3/sec_rules`, { includeOrg: false, json: rule(crm, 9999) })
  const answer = await bench.ok('review-draft', { name: 'Shop' })
  t.same(brief(answer), { Shop: ['none', 'No evidence in 30 days.'] })
})

t.test('pages have each change once, and nothing pending is said', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  t.same(await bench.ok('review-draft'), {
    summary: 'Nothing is pending; draft and active policy are the same.',
    total_pending_changes: 0,
    evidence: {},
    changes: [],
    truncated: false,
  })
  await change(bench)
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page: Json = await bench.ok('review-draft', { max_results: 2, ...(cursor && { cursor }) })
    names.push(...page.changes.map(({ name }: Json) => name))
    cursor = page.next_cursor
  } while (cursor !== undefined)
  t.same(names.toSorted(), ['Crm', 'Office', 'Pay', 'Shop', 'Unused'])
  await bench.fails('review-draft', { name: 'Payy' }, 'not_found')
})

t.test(
  'more pairs than are shown: the answer says how to see them, and a call about one change shows them',
  async (t) => {
    const flows = Array.from({ length: 12 }, (_, at) => ({
      from: `203.0.114.${at + 1}`,
      to: 'pay-1',
      port: 22,
      connections: 2,
    }))
    const world = handMade({
      hosts: { 'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' } },
      ipLists: { Branch: ['203.0.114.0/24'] },
      ruleSets: [
        {
          name: 'Pay',
          scope: 'app=pay env=prod',
          allow: [{ from: 'iplist:Branch', to: 'ams', services: [TCP(22)], extra: true }],
        },
      ],
      flows,
    })
    const bench = await startBench(t, { estate: world })
    const [list] = (await bench.pce.ipLists.getAll()).filter(({ name }) => name === 'Branch')
    await bench.pce.ipLists.update(list!.href, { description: 'x' })
    await bench.pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
    const both = await bench.ok('review-draft')
    const shown = both.changes.find(({ name }: Json) => name === 'Pay')
    t.same([shown.depends.length, shown.pairs_total], [3, 12])
    t.equal(both.more_pairs, 'With href, the answer is about one change and has up to 100 pairs of each kind.')
    const one = await bench.ok('review-draft', { href: shown.href })
    t.same([one.changes[0].depends.length, one.changes[0].pairs_total, one.more_pairs], [12, undefined, undefined])
    const small = await startBench(t, { estate: world, budget: 2_500 })
    await small.pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
    const cut = await small.ok('review-draft', { name: 'Pay' })
    t.ok(cut.changes[0].depends.length >= 3 && cut.changes[0].depends.length < 12)
    t.equal(cut.changes[0].pairs_total, 12)
    t.match(cut.more_pairs, /^The others are in get-traffic-flows: /)
  },
)

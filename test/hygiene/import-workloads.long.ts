/**
 * import-workloads on a large estate with a PCE that fails in the middle: what is told is what the PCE has, and the same call
 * completes it, with nothing twice.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Fault } from '../../pce-simulator/http/inject-faults.js'
import { handMade } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'
import { largeEstate } from '../tools/large-estate.js'

/** The first twentieth of the rows is about unmanaged workloads that are there; the others are new. */
const knownOf = (rows: number) => rows / 20
const addressOf = (at: number) => `10.${64 + (at >> 14)}.${(at >> 7) & 127}.${(at & 127) + 1}`
const tableOf = (rows: number) =>
  [
    'name,ip_addresses,env',
    ...Array.from({ length: rows }, (_, at) => {
      // Every tenth workload of the estate is unmanaged. Its address has another spelling there.
      const n = at * 10
      const known = `2001:db8:0:0::${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}`
      return at < knownOf(rows) ? `host-${n},${known},lab` : `import-${at},${addressOf(at)},lab`
    }),
  ].join('\n')

/** What the PCE has of the rows: how many of the new ones, which of them twice, and how many known ones are labelled. */
async function storedBy({ pce }: Bench, href: string) {
  const counts = new Map<string, number>()
  let labelled = 0
  const onItems = (items: readonly Json[]) => {
    for (const { name, labels } of items)
      if (name.startsWith('import-')) counts.set(name, (counts.get(name) ?? 0) + 1)
      else if (labels.some((label: Json) => label.href === href)) labelled += 1
  }
  const onBegin = () => void (counts.clear(), (labelled = 0))
  const { isWhole } = await pce.workloads.scan('draft', null, { onBegin, onItems })
  return { isWhole, created: counts.size, twice: [...counts].filter(([, count]) => count > 1), labelled }
}

/** The numbers of lines in ranges such as `2-5, 9`. */
const sizeOf = (ranges = '') =>
  ranges.split(', ').reduce((sum, range) => {
    const [from, to = from] = range.split('-').map(Number)
    return range === '' ? sum : sum + to! - from! + 1
  }, 0)

type Struck = [string, number, Partial<Fault> & Pick<Fault, 'kind'>]

async function strike(t: Test, [request, skip, fault]: Struck, size: { workloads: number; rows: number }) {
  const [csv, known] = [tableOf(size.rows), knownOf(size.rows)]
  const estate = largeEstate({ workloads: size.workloads, events: 0, ipLists: 0, services: 0 })
  for (const one of estate.workloads) Object.assign(one, { services: { open_service_ports: [] } })
  const bench = await startBench(t, { estate })
  const label = (await bench.pce.labels.create({ key: 'env', value: 'lab' })).href
  bench.simulator.faults.add({ path: `/orgs/1/workloads/${request}`, skip, times: 20, ...fault })
  const error = await bench.answer('import-workloads', { csv })
  bench.simulator.faults.clear()
  const now = await storedBy(bench, label)
  t.ok(error.error, 'it fails')
  t.same([now.isWhole, now.twice], [true, []])
  const done = now.created + now.labelled
  if (error.outcomes === undefined) t.equal(done, 0, 'an error that tells of nothing has done nothing')
  else {
    const { created, updated, not_done: left = 0, unknown = 0, ...others } = error.outcomes
    t.same([created, updated], [now.created, now.labelled], 'what is told is what the PCE has')
    t.equal(left + unknown, size.rows - done, 'and the rest is told, too')
    t.same(others, { unchanged: 0, conflict: 0 })
    t.same([sizeOf(error.lines.created), sizeOf(error.lines.updated)], [created, updated])
    t.equal(error.written_total ?? 0, done)
    t.match(error.hint, /^Read back, \d+ are created, \d+ updated, .* The same call completes it/)
  }
  t.ok(JSON.stringify(error).length < 12_000, `${JSON.stringify(error).length} bytes`)
  bench.writes()
  const again = await bench.ok('import-workloads', { csv })
  const created = size.rows - known
  t.same(again.outcomes, {
    created: created - now.created,
    updated: known - now.labelled,
    unchanged: done,
    conflict: 0,
  })
  t.same(await storedBy(bench, label), { isWhole: true, created, twice: [], labelled: known })
  const sent = bench.writes().reduce((sum, { body }) => sum + (body as Json[]).length, 0)
  t.equal(sent, size.rows - done, 'what is done is not sent again')
  await bench.simulator.close()
}

t.test('a failure in the middle is told as the PCE has it, and the same call completes it', async (t) => {
  const struck: Struck[] = [
    ['bulk_create', 1, { kind: 'reset' }],
    ['bulk_create', 0, { kind: 'status', status: 503 }],
    ['bulk_create', 2, { kind: 'status', status: 406, body: [{ token: 'odd_token', message: 'no' }] }],
    ['bulk_create', 1, { kind: 'status', status: 200, body: {} }],
    ['bulk_create', 1, { kind: 'truncate' }],
    ['bulk_update', 0, { kind: 'commit-then-drop' }],
    ['bulk_update', 0, { kind: 'reset' }],
  ]
  for (const one of struck)
    await t.test(`${one[2].kind} ${one[2].status ?? ''} at ${one[0]} ${one[1] + 1}`, (t) =>
      strike(t, one, { workloads: 2000, rows: 3000 }),
    )
})

t.test('5,000 rows into 50,000 workloads are completed by the same call after a lost answer in the middle', (t) =>
  strike(t, ['bulk_create', 2, { kind: 'commit-then-drop' }], { workloads: 50_000, rows: 5000 }),
)

t.test(
  'random tables on random estates: an import is repeated without effect, and no machine is there twice',
  async (t) => {
    const address = fc.integer({ min: 1, max: 12 }).map((n) => `10.0.0.${n}`)
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'A', 'e')
    const host = fc.record({ name, ip: address, managed: fc.boolean(), app: fc.constantFrom('x', 'y') })
    const row = fc.record(
      {
        name,
        hostname: name,
        ip_addresses: fc.uniqueArray(address, { maxLength: 2 }),
        labels: fc.constantFrom(['app=x'], ['app=y'], ['app=x', 'env=p'], []),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(host, { maxLength: 6, selector: (one) => one.name }),
        fc.array(row, { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        async (hosts, given, replace) => {
          const rows = given.filter((one) => one.name ?? one.hostname ?? one.ip_addresses?.[0])
          if (rows.length === 0) return
          const estate = handMade({
            hosts: Object.fromEntries(
              hosts.map((one) => [one.name, { ip: one.ip, managed: one.managed, labels: `app=${one.app}` }]),
            ),
            labels: ['app=x', 'app=y', 'env=p'],
          })
          const bench = await startBench(t, { estate })
          try {
            const all = (): Json[] => bench.simulator.state.find('/orgs/1/workloads') as Json
            const addresses = (one: Json): string[] => one.interfaces.map(({ address: own }: Json) => own)
            const before = structuredClone(all())
            const args = { rows, ...(replace && { replace_addresses: true }) }
            const plan = await bench.ok('import-workloads', { ...args, dry_run: true })
            t.same(all(), before)
            const done = await bench.ok('import-workloads', args)
            const { create, update, unchanged, conflict } = plan.outcomes
            t.same(done.outcomes, { created: create, updated: update, unchanged, conflict }, 'as the dry run said')
            t.equal(all().length, before.length + create)
            const managed = before.filter((one) => one.managed)
            t.same(
              managed,
              all().filter((one) => one.managed),
              'managed hosts are left alone',
            )
            const hrefs = new Set(before.map(({ href }) => href))
            for (const one of all().filter(({ href }) => !hrefs.has(href)))
              for (const other of all())
                if (other.href !== one.href)
                  t.notOk(
                    addresses(other).some((own) => addresses(one).includes(own)),
                    'a new address',
                  )
            const settled = structuredClone(all())
            const again = await bench.ok('import-workloads', args)
            t.same(
              [again.outcomes.created, again.outcomes.unchanged >= create + update + unchanged],
              [0, true],
              'and again nothing is created',
            )
            if (again.outcomes.updated === 0) t.same(all(), settled)
          } finally {
            await bench.simulator.close()
          }
        },
      ),
      { numRuns: 60 },
    )
  },
)

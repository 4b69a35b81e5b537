/**
 * label-workloads against a model of a few lines: random wishes on random workloads come out as the model says, and a failure in the
 * middle of its chunks is reported as the PCE has it, and completed by the same call.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Fault } from '../../pce-simulator/http/inject-faults.js'
import { handMade, type HandMadeHost } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'

type Labels = Record<string, string>
interface Wish {
  set: Labels
  add: Labels
  removeKeys: string[]
  removeLabels: [string, string][]
}

const KEYS = ['role', 'app', 'env', 'loc']
const VALUES = ['a', 'b', 'c']
const ALL = KEYS.flatMap((key) => VALUES.map((value) => `${key}=${value}`))

/** What the tool promises, in so many words. */
function model(labels: Labels, { set, add, removeKeys, removeLabels }: Wish): Labels {
  const after = { ...labels }
  for (const key of removeKeys) delete after[key]
  for (const [key, value] of removeLabels) if (after[key] === value) delete after[key]
  for (const [key, value] of Object.entries(add)) if (!(key in labels)) after[key] = value
  return { ...after, ...set }
}

const value = fc.constantFrom(...VALUES)
const labels: fc.Arbitrary<Labels> = fc.dictionary(fc.constantFrom(...KEYS), value, { maxKeys: 4 })
const wish: fc.Arbitrary<Wish> = fc
  .tuple(...KEYS.map(() => fc.tuple(fc.constantFrom('set', 'add', 'key', 'label', 'none'), value)))
  .map((choices) => {
    const chosen: Wish = { set: {}, add: {}, removeKeys: [], removeLabels: [] }
    for (const [at, [kind, of]] of choices.entries()) {
      const key = KEYS[at]!
      if (kind === 'set') chosen.set[key] = of
      else if (kind === 'add') chosen.add[key] = of
      else if (kind === 'key') chosen.removeKeys.push(key)
      else if (kind === 'label') chosen.removeLabels.push([key, of])
    }
    return chosen
  })
  .filter(({ set, add, removeKeys, removeLabels }) =>
    [Object.keys(set), Object.keys(add), removeKeys, removeLabels].some(({ length }) => length > 0),
  )

const pairs = (of: Labels) => Object.entries(of).map(([key, one]) => `${key}=${one}`)
const orNothing = <T>(name: string, list: T[]) => (list.length === 0 ? {} : { [name]: list })
const argsOf = ({ set, add, removeKeys, removeLabels }: Wish) => ({
  ...orNothing('set', pairs(set)),
  ...orNothing('add', pairs(add)),
  ...orNothing('remove', [...removeKeys, ...removeLabels.map(([key, one]) => `${key}=${one}`)]),
})

const estateOf = (hosts: readonly Labels[]) =>
  handMade({
    hosts: Object.fromEntries(
      hosts.map((own, at): [string, HandMadeHost] => [
        `h${at}`,
        { ip: `10.${at >> 14}.${(at >> 7) & 127}.${at & 127}`, labels: pairs(own) },
      ]),
    ),
    labels: ALL,
  })

async function stored({ pce }: Bench): Promise<Labels[]> {
  const workloads: Json[] = await pce.workloads.getAll()
  return workloads.map(({ labels: own }) => Object.fromEntries(own.map(({ key, value: one }: Json) => [key, one])))
}

const isSame = (a: Labels, b: Labels) =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort())

t.test('random wishes on random workloads come out as the model says, however the workloads are named', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(labels, { minLength: 3, maxLength: 14 }),
      wish,
      fc.constantFrom('list', 'selection', 'csv'),
      async (hosts, wished, way) => {
        const bench = await startBench(t, { estate: estateOf(hosts) })
        try {
          const picked = hosts.map((_, at) => at).filter((at) => at % 3 !== 1)
          const names = picked.map((at) => `h${at}`)
          // A table has neither add nor labels to take away.
          const own: Wish = way === 'csv' ? { ...wished, add: {}, removeLabels: [] } : wished
          const columns = [...Object.keys(own.set), ...own.removeKeys]
          if (way === 'csv' && columns.length === 0) return
          const args =
            way === 'list'
              ? { workloads: names, ...argsOf(own) }
              : way === 'selection'
                ? { selection: { labels: ['role=a'] }, max_matches: 100, ...argsOf(own) }
                : {
                    csv: [
                      ['name', ...columns],
                      ...names.map((name) => [name, ...columns.map((key) => own.set[key] ?? 'X')]),
                    ]
                      .map((cells) => cells.join(','))
                      .join('\n'),
                    remove_token: 'X',
                  }
          const isMeant = (at: number) => (way === 'selection' ? hosts[at]!['role'] === 'a' : picked.includes(at))
          const wanted = hosts.map((host, at) => (isMeant(at) ? model(host, own) : host))
          if (!hosts.some((_, at) => isMeant(at))) {
            await bench.fails('label-workloads', args, 'no_workloads')
            return
          }
          const plan = await bench.ok('label-workloads', { ...args, dry_run: true })
          const changing = hosts.filter((host, at) => !isSame(host, wanted[at]!)).length
          t.equal(plan.changed, changing)
          t.ok((await stored(bench)).every((one, at) => isSame(one, hosts[at]!)))
          const done = await bench.ok('label-workloads', args)
          t.same([done.changed, done.outcomes?.updated ?? 0], [changing, changing])
          for (const [at, one] of (await stored(bench)).entries())
            t.ok(isSame(one, wanted[at]!), `h${at} ${JSON.stringify(args)}`)
          if (way !== 'selection') t.equal((await bench.ok('label-workloads', args)).changed, 0)
        } finally {
          await bench.simulator.close()
        }
      },
    ),
    { numRuns: 60 },
  )
})

const COUNT = 2300
/** Each fault strikes the chunk in the middle, and in turn the first or the last. */
const FAULTS: (Partial<Fault> & Pick<Fault, 'kind'>)[] = [
  { kind: 'status', status: 406, body: [{ token: 'odd_token', message: 'no' }] },
  { kind: 'status', status: 503 },
  { kind: 'reset' },
  { kind: 'commit-then-drop' },
  { kind: 'truncate' },
  { kind: 'status', status: 200, body: {} },
]

t.test('a failure in the middle of the chunks is told as the PCE has it, and the same call completes it', async (t) => {
  const hosts = Array.from({ length: COUNT }, (_, at): Labels => ({ app: 'a', ...(at % 2 === 0 && { role: 'b' }) }))
  for (const [at, fault] of FAULTS.entries())
    for (const chunk of [1, at % 2 === 0 ? 0 : 2])
      await t.test(`${fault.kind} ${fault.status ?? ''} at chunk ${chunk + 1}`, async (t) => {
        const bench = await startBench(t, { estate: estateOf(hosts), budget: 200_000 })
        const args = { selection: { labels: ['app=a'] }, max_matches: COUNT, set: ['role=c'], add: ['env=a'] }
        bench.simulator.faults.add({ path: '/orgs/1/workloads/bulk_update', skip: chunk, times: 20, ...fault })
        let error: Json
        try {
          await bench.ok('label-workloads', args)
        } catch (thrown) {
          const text = (thrown as Error).message
          error = JSON.parse(text.slice(text.indexOf('{')))
        }
        bench.simulator.faults.clear()
        t.ok(error, 'it fails')
        const sent = bench.simulator.requests.filter(({ path }) => path.endsWith('/bulk_update'))
        // A request that was cut off may be on record without its body.
        const begun = new Set(sent.map(({ body }) => (body as Json)?.[0]?.href))
        t.equal(begun.size, chunk + 1, 'and begins nothing after that')
        const now = await stored(bench)
        const isDone = (one: Labels) => isSame(one, { app: 'a', role: 'c', env: 'a' })
        const done = now.filter(isDone).length
        const touched = now.filter((one, at) => !isDone(one) && !isSame(one, hosts[at]!))
        t.same(touched, [], 'the others are as they were')
        if (error.outcomes === undefined) t.equal(done, 0, 'an error that tells of nothing has done nothing')
        else {
          t.same(error.outcomes, { updated: done, refused: 0, not_done: COUNT - done, unknown: 0, differs: 0 })
          t.match(
            error.hint,
            new RegExp(`^Read back, ${done} of ${COUNT} workloads are changed, ${COUNT - done} are as they were`),
          )
          const rows: [string, ...unknown[]][] = error.changes.data
          const wrong = rows.filter(([name, , , , out]) => (out === 'updated') !== isDone(now[Number(name.slice(1))]!))
          t.same(wrong, [], 'each row says what became of its workload')
        }
        bench.writes()
        const again = await bench.ok('label-workloads', args)
        t.same([again.already, again.changed], [done, COUNT - done], 'what is done is not written again')
        t.equal(bench.writes().length, Math.ceil((COUNT - done) / 1000))
        t.ok((await stored(bench)).every(isDone))
      })
})

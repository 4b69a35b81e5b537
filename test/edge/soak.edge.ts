/** Ten thousand calls of every sort, light and heavy, good and bad, some broken off: the process stays as large as it was. */
import t from 'tap'
import { createWorld } from './support/authenticated-world.js'
import { callTool, type Json } from './support/call-tool.js'
import { memoryOf } from './support/raw-connection.js'

const CALLS = 10_000
const PHASES = 10
const AT_ONCE = 16
const CALLERS = 8
/** Heap of the main thread in MiB: what leaks a few kilobytes for each call does not get far. */
const HEAP_MIB = 80
/** What a process may grow by in seven thousand calls once it is warm: MiB. Its pages are given back when the allocator likes. */
const MOST_GROWTH = 80

type Call = readonly [name: string, args: object, outcome: string]
const WINDOW = { start_date: '2026-06-08', end_date: '2026-06-14' }

/** In turn; what each ends with. */
const LIGHT: readonly Call[] = [
  ['get-labels', { key: 'env' }, 'ok'],
  ['get-workloads', { max_results: 5 }, 'ok'],
  ['get-rulesets', {}, 'ok'],
  ['check-pce-connection', {}, 'ok'],
  ['get-labels', { key: '' }, 'invalid_argument'],
  ['get-workloads', { labels: ['app=none-of-this-name'] }, 'unresolved_label_filter'],
  ['no-such-tool', {}, 'no result'],
  ['update-label', { href: '/orgs/1/labels/0', new_value: 'x' }, 'not_found'],
  ['provision-policy', { change_description: 'soak' }, 'confirm_required'],
  ['get-server-changelog', {}, 'ok'],
]
const HEAVY: readonly Call[] = [
  ['get-traffic-flows-summary', WINDOW, 'ok'],
  ['compare-draft-active', {}, 'ok'],
  ['create-ringfence', { app_name: 'none', env_name: 'prod' }, 'not_found'],
]
/** One call in so many is heavy, and one in so many is broken off. */
const HEAVY_EVERY = 50
const LEAVES_EVERY = 37

t.test('ten thousand calls leave nothing behind', { timeout: 600_000 }, async (t) => {
  const world = await createWorld(t, { pce: { workloads: 40, flows: 300, pollsUntilDone: 1, retryAfter: 0 } })
  const { target, pid, output } = await world.serve({
    env: {
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`,
      MCP_HEAVY_CALLS: '2',
      MCP_HEAVY_QUEUE: '100',
      MCP_HEAVY_MEMORY_MIB: '64',
      MCP_RESPONSE_BUDGET_BYTES: '20000',
    },
  })
  const tokens = await Promise.all(Array.from({ length: CALLERS }, (_, at) => world.tokenOf(`caller-${at}`)))
  for (const token of tokens) await callTool(target, token, 'register-pce-credentials', world.pce.registration)

  const outcomes = new Map<string, number>()
  const unexpected = new Map<string, string>()
  const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  let next = 0
  const callOne = async (at: number) => {
    const isHeavy = at % HEAVY_EVERY === 0
    const list = isHeavy ? HEAVY : LIGHT
    const [name, args, expected] = list[Math.floor(isHeavy ? at / HEAVY_EVERY : at) % list.length]!
    const leaving = at % LEAVES_EVERY === 0 ? new AbortController() : null
    const calling = callTool(target, tokens[at % CALLERS]!, name, args, { signal: leaving?.signal })
    if (leaving !== null) setImmediate(() => leaving.abort())
    // An unknown tool is an error of the protocol, and a call that was broken off has no answer.
    const answer: Json = await calling.catch(({ message }: Error) =>
      leaving === null ? { error: message.split(':', 1)[0], message } : { error: 'left' },
    )
    const outcome: string = answer.error ?? 'ok'
    count(outcome)
    if (leaving === null && outcome !== expected) unexpected.set(name, JSON.stringify(answer).slice(0, 300))
  }

  const sizes: number[] = []
  for (let phase = 1; phase <= PHASES; phase++) {
    const end = (CALLS * phase) / PHASES
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < end) await callOne(next++)
      }),
    )
    sizes.push(memoryOf(pid).now)
  }
  t.same([...unexpected], [])
  t.equal(
    [...outcomes.values()].reduce((sum, many) => sum + many),
    CALLS,
  )
  t.equal(output.stderr.match(/out of memory/i), null)
  const [early, late] = [sizes.slice(1, 3), sizes.slice(-2)].map((some) => Math.max(...some)) as [number, number]
  const told = sizes.map((size) => size.toFixed(0)).join(' ')
  t.ok(late - early < MOST_GROWTH, `${(late - early).toFixed(0)} MiB more at the end than when it was warm: ${told}`)
})

/** Who may call what by the contract: every tool, with every role and without one, through the dispatcher and its role gate. */
import t from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { roleGate } from '../../plugins/dispatcher/admit-call.js'
import { renderError } from '../../plugins/errors/render-errors.js'
import { ToolError } from '../../schemas/errors.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { CONTRACT } from '../surface/contract.js'
import { noCredentials } from '../tools/harness.js'

const NOW = Date.parse('2026-06-15T12:00:00Z')

/** The tools of the contract; surface.test.ts says which tool has no entry there. */
const known = tools.filter(({ name }) => name in CONTRACT)

/** Questions about traffic, and about rules, are asked with a POST. */
const ASKS = /\/traffic_flows\/async_queries(?:\/|$)|\/rule_search$/

/** Looking whether a query is done. */
const POLLS = /\/traffic_flows\/async_queries\/[^/]+$|\/jobs\/[^/]+$/

t.test('the matrix of roles', async (t) => {
  const simulator = await createPceSimulator({ seed: 3, workloads: 60, flows: 500, now: () => NOW, pollsUntilDone: 1 })
  const { protocol, hostname, port } = new URL(await simulator.listen())
  const timers = { now: Date.now, random: () => 0.5, sleep: () => new Promise<void>(setImmediate) }
  const pce = createPceClient({ url: `${protocol}//${hostname}`, port, orgId: simulator.orgId, timers })
  pce.setCredentials(simulator.credentials.key, simulator.credentials.secret)
  t.teardown(async () => {
    pce.close()
    await simulator.close()
  })

  const reached: string[] = []
  let runs = true
  const watch = (tool: AnyTool): AnyTool => ({
    ...tool,
    handler: (...args) => {
      reached.push(tool.name)
      if (!runs) throw new ToolError('not_found', 'The call reached its tool.')
      return tool.handler(...args)
    },
  })
  const silent = () => undefined
  const dispatcher = createDispatcher({
    tools: catalogueOf(tools.map(watch)),
    gates: [roleGate],
    audit: null,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
    callTracker: createCallTracker(),
    server: { name: 'svc-mcp', version: '0.1.0', changelog: async () => '# Changelog\n' },
    now: () => NOW,
  })
  const call = async (tool: AnyTool, role: 'reader' | 'operator' | 'admin' | null, args: object = tool.example) => {
    simulator.clearRequests()
    reached.length = 0
    const signal = new AbortController().signal
    const result = await dispatcher.dispatch(
      { name: tool.name, arguments: { ...args }, requestId: 'r1', sender: { signal }, progress: silent },
      {
        caller: { mode: 'shared', role, iss: 'https://id', sub: 'somebody' },
        transport: 'http',
        credentials: noCredentials,
        pce,
      },
    )
    return result.ok ? { error: null } : renderError(result.error, 'r1')
  }
  const isUntouched = () => reached.length === 0 && simulator.requests.length === 0

  for (const tool of known) {
    await t.test(tool.name, async (t) => {
      const { roles: allowed, mutating } = CONTRACT[tool.name]!
      t.equal(tool.effect === 'read', !mutating, 'says what it does')
      for (const role of ['reader', 'operator', 'admin'] as const) {
        // A tool that runs for the least of its roles refuses no other. What a change would then do is the business of its own tests.
        runs = role === allowed[0]
        const args = 'dry_run' in tool.input.properties ? { ...tool.example, dry_run: true } : tool.example
        const { error, ...details } = await call(tool, role, args)
        if (allowed.includes(role)) {
          t.same(reached, [tool.name], `${role}: reaches the tool`)
          if (!runs) t.equal(error, 'not_found', `${role}: is not refused`)
          else if (mutating) t.notMatch(String(error), /^(?:forbidden|invalid_argument$)/, `${role}: is not refused`)
          else {
            t.equal(error, null, 'its example works')
            const sent = simulator.requests.filter(({ path }) => !POLLS.test(path)).length
            t.ok(sent <= (tool.pceRequests?.atMost ?? Infinity), `sends ${sent} requests`)
            const writes = simulator.requests.filter(({ method, path }) => method !== 'GET' && !ASKS.test(path))
            t.same(writes, [], 'a tool that only reads writes nothing')
          }
        } else {
          partial(t, { error, ...details }, { error: 'forbidden', message: new RegExp(`is ${role}`) })
          t.same((details as { allowed_roles?: string[] }).allowed_roles, allowed, `${role}: is told who may`)
          t.ok(isUntouched(), `${role}: nothing reaches the tool or the PCE`)
        }
      }
      partial(t, await call(tool, null), { error: 'forbidden_no_role' })
      t.ok(isUntouched(), 'no role: nothing reaches the tool or the PCE')
      partial(
        t,
        await call(tool, null, { no_such_argument: 1 }),
        { error: 'forbidden_no_role' },
        'asked before anything else',
      )
    })
  }

  await t.test('every tool beyond the contract says how many requests it sends', async (t) => {
    const silent = known.filter((tool) => CONTRACT[tool.name]!.beyond === true && tool.pceRequests === undefined)
    t.same(silent, [])
  })
})

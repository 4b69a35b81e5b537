/** Who may call what: every tool there is, with every role and without one, through the dispatcher and its role gate. */
import t from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { roleGate } from '../../plugins/dispatcher/admit-call.js'
import { renderError } from '../../plugins/errors/render-errors.js'
import { isInDefault, type AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { noCredentials } from '../tools/harness.js'

const NOW = Date.parse('2026-06-15T12:00:00Z')

/** Beyond the contract, by the same rules. */
const BEYOND_READS: string[] = [
  'compare-policy-versions',
  'explain-flow',
  'find-redundant-rules',
  'find-rules',
  'find-unlabelled-workloads',
  'find-unused',
  'get-ip-list-matches',
  'get-label-groups',
  'get-vens',
  'list-policy-versions',
  'preview-enforcement-change',
  'suggest-rule',
  'ven-health-report',
  'who-changed',
]
const BEYOND_CHANGES: string[] = ['create-rule', 'edit-ip-list-ranges', 'label-workloads']
const BEYOND_ADMIN: string[] = ['discard-draft-changes', 'restore-policy-version', 'set-enforcement-mode']

/** The contract of the 50 tools and of those beyond it: those that only read, or concern the caller's own credentials, are for everyone. */
const READER_OPERATOR_ADMIN = [
  'check-pce-connection',
  'check-pce-credentials-status',
  'compare-draft-active',
  'compliance-check',
  'delete-pce-credentials',
  'detect-lateral-movement-paths',
  'discover-process-egress',
  'enforcement-readiness',
  'find-unmanaged-traffic',
  'get-container-clusters',
  'get-container-workload-profiles',
  'get-events',
  'get-iplists',
  'get-kubernetes-workloads',
  'get-labels',
  'get-pairing-profiles',
  'get-policy-coverage-report',
  'get-rulesets',
  'get-server-changelog',
  'get-services',
  'get-traffic-flows',
  'get-traffic-flows-summary',
  'get-workload-enforcement-status',
  'get-workloads',
  'identify-infrastructure-services',
  'register-pce-credentials',
  ...BEYOND_READS,
]
const OPERATOR_ADMIN = [
  'create-deny-rule',
  'create-iplist',
  'create-label',
  'create-ringfence',
  'create-ruleset',
  'create-service',
  'create-workload',
  'delete-deny-rule',
  'delete-iplist',
  'delete-label',
  'delete-ruleset',
  'delete-sec-rule',
  'delete-service',
  'delete-workload',
  'update-container-workload-profile',
  'update-deny-rule',
  'update-iplist',
  'update-label',
  'update-ruleset',
  'update-sec-rule',
  'update-service',
  'update-workload',
  ...BEYOND_CHANGES,
]
const ADMIN = ['provision-policy', 'ringfence-batch', ...BEYOND_ADMIN]

/** Of those that everyone may call, the ones that change something nevertheless. */
const OWN_CREDENTIALS = ['delete-pce-credentials', 'register-pce-credentials']

const ALLOWED: Record<string, string[]> = Object.fromEntries([
  ...READER_OPERATOR_ADMIN.map((name) => [name, ['reader', 'operator', 'admin']]),
  ...OPERATOR_ADMIN.map((name) => [name, ['operator', 'admin']]),
  ...ADMIN.map((name) => [name, ['admin']]),
])

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
  const watch = (tool: AnyTool): AnyTool => ({
    ...tool,
    handler: (...args) => {
      reached.push(tool.name)
      return tool.handler(...args)
    },
  })
  const silent = () => undefined
  const dispatcher = createDispatcher({
    tools: tools.map(watch),
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

  t.same(
    tools.filter(({ name }) => ALLOWED[name] === undefined).map(({ name }) => name),
    [],
    'the contract knows every tool there is',
  )
  t.equal(Object.keys(ALLOWED).length, tools.length, 'and no other')

  for (const tool of tools) {
    await t.test(tool.name, async (t) => {
      const allowed = ALLOWED[tool.name] ?? []
      for (const role of ['reader', 'operator', 'admin'] as const) {
        // Whoever may call it tries it out; what it would then do is the business of its own tests.
        const args = 'dry_run' in tool.input.properties ? { ...tool.example, dry_run: true } : tool.example
        const { error, ...details } = await call(tool, role, args)
        if (allowed.includes(role)) {
          t.same(reached, [tool.name], `${role}: reaches the tool`)
          t.notMatch(String(error), /^(?:forbidden|invalid_argument$)/, `${role}: is not refused`)
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
    const silent = tools.filter((tool) => !isInDefault(tool) && tool.pceRequests === undefined)
    t.same(silent, [])
  })

  await t.test('a read-only tool sends no write', async (t) => {
    for (const tool of tools) {
      const reads = READER_OPERATOR_ADMIN.includes(tool.name) && !OWN_CREDENTIALS.includes(tool.name)
      t.equal(tool.effect === 'read', reads, `${tool.name}: says what it does`)
      if (!reads) continue
      const { error } = await call(tool, 'reader')
      t.equal(error, null, `${tool.name}: its example works`)
      if (tool.pceRequests !== undefined) {
        const sent = simulator.requests.filter(({ path }) => !POLLS.test(path)).length
        t.ok(sent <= tool.pceRequests.atMost, `${tool.name}: sends ${sent} requests`)
      }
      const writes = simulator.requests.filter(({ method, path }) => method !== 'GET' && !ASKS.test(path))
      t.same(writes, [], `${tool.name}: writes nothing`)
    }
  })
})

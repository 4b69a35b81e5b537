import type { AddressInfo } from 'node:net'
import type { TrafficQuery } from '../schemas/pce/traffic.js'
import { MAX_TRAFFIC_ROWS } from '../schemas/pce/words.js'
import { accessRoutes } from './access/index.js'
import { createWorld } from './create-world.js'
import { generateEstate } from './estate/generate.js'
import { buildApp } from './http/build-app.js'
import { createFindRoute } from './http/find-route.js'
import type { RecordedRequest } from './http/record-requests.js'
import { inventoryRoutes } from './inventory/index.js'
import { kindRoutes } from './kinds/index.js'
import type { PceSimulator, PceSimulatorOptions } from './options.js'
import { runTrafficQuery } from './policy/run-traffic-query.js'
import { policyVersionRoutes } from './policy-versions/routes.js'
import { Refusal } from './refusal.js'
import { statusRoutes } from './status/routes.js'
import { talkOfPods } from './inventory/pod-traffic.js'
import { readTrafficState } from './traffic/query-run.js'
import { trafficRoutes } from './traffic/routes.js'
import type { World } from './world.js'

export type { Fault, FaultControl } from './http/inject-faults.js'
export type { RecordedRequest } from './http/record-requests.js'
export { ROLES } from './access/role.js'
export { DEFAULT_REALITY, REALITIES } from './options.js'
export type { GivenRole, PceSimulator, PceSimulatorOptions, Reality, RoleKey } from './options.js'
export type { Conversation, Estate } from './model.js'

const findRoute = createFindRoute([
  ...statusRoutes,
  ...kindRoutes,
  ...policyVersionRoutes,
  ...trafficRoutes,
  ...accessRoutes,
  ...inventoryRoutes,
])

const EVERY_FLOW: TrafficQuery = {
  start_date: '1970-01-01T00:00:00Z',
  end_date: '9999-12-31T23:59:59Z',
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [] },
  services: { include: [], exclude: [] },
  policy_decisions: [],
  max_results: MAX_TRAFFIC_ROWS,
}

const HEARD_AGO_MS = 2 * 60_000

/**
 * Sets the last heartbeat of online VENs to the recent past, since generated heartbeats have a fixed date. An estate
 * that was passed in keeps its own heartbeats.
 */
function hearOnline(world: World): void {
  const heard = new Date(world.clock() - HEARD_AGO_MS).toISOString()
  for (const workload of world.workloads.all()) {
    const { online, managed } = workload
    const agent = workload.agent as { status?: object } | undefined
    if (managed !== true || online !== true || agent?.status === undefined) continue
    world.workloads.set({ ...workload, agent: { ...agent, status: { ...agent.status, last_heartbeat_on: heard } } })
  }
}

/**
 * Creates a simulated policy compute engine, which serves the REST API v2 over real HTTP and keeps a believable estate
 * in memory. It shares no code with the client that it tests. Rejects if the options are unusable: invalid TLS
 * material, an unknown role or label in `users`, or an unknown `reality`.
 */
export async function createPceSimulator(options: PceSimulatorOptions = {}): Promise<PceSimulator> {
  const { seed = 1, workloads = 400, flows = 20_000, orgId = 1 } = options
  const world = createWorld(options.estate ?? generateEstate({ seed, workloads, flows, orgId }), options)
  if (options.estate === undefined) hearOnline(world)
  if (options.pods === true) world.conversations = [...world.conversations, ...talkOfPods(world)]
  const requests: RecordedRequest[] = []
  const { app, faults } = buildApp(world, findRoute, requests)
  await app.ready()
  let url: string | null = null

  return {
    async listen({ port = options.port ?? 0, host = options.host ?? '127.0.0.1' } = {}) {
      await app.listen({ port, host })
      const address = app.server.address() as AddressInfo
      const name = address.family === 'IPv6' ? `[${address.address}]` : address.address
      url = `${options.tls ? 'https' : 'http'}://${name}:${address.port}`
      return url
    },
    get url() {
      if (url === null) throw new Error('The simulator does not listen yet')
      return url
    },
    orgId: world.orgId,
    credentials: world.credentials,
    keys: world.keys,
    login: world.login,
    requests,
    clearRequests: () => void (requests.length = 0),
    faults,
    state: {
      find: (href) => findObject(href),
      pendingHrefs: () => world.policy.pending().map(({ draft }) => draft.href),
      get policyVersion() {
        return world.versions.at(-1)!.version.version
      },
      flows: () => runTrafficQuery(EVERY_FLOW, readTrafficState(world)).flows,
    },
    close: () => app.close(),
  }

  /** Answers a GET of the href by calling the handler of its route directly, so that no request is recorded. */
  function findObject(href: string): Record<string, unknown> | undefined {
    const found = findRoute(href)
    if (!found?.route.verbs.GET) return undefined
    const call = {
      world,
      path: href,
      params: found.params,
      query: new URLSearchParams(),
      headers: {},
      body: undefined,
      sourceIp: '',
    }
    try {
      return found.route.verbs.GET.handle({ ...call, verb: 'GET' }).json as Record<string, unknown>
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return undefined
    }
  }
}

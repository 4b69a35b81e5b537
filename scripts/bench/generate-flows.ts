import { ANY_IP_LIST_NAME } from '../../schemas/pce/words.js'
import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'
import { PROCESSES, type Process } from '../../pce-simulator/estate/data/processes.js'
import { createRandom } from '../../pce-simulator/estate/random.js'

/**
 * The size of the largest estate that the server promises to support. An application is a pair of an app label and an
 * env label.
 */
const APPLICATIONS = 5000
const WORKLOADS = 50_000
/**
 * The number of applications with which each application communicates. 200,000 rows contain about 50,000 such pairs.
 */
const PEERS = 12
/**
 * The number of infrastructure applications (directory, names, logs, backups), which all other applications use. They
 * have the lowest numbers.
 */
const INFRASTRUCTURE = 100
const NAMES_OUTSIDE = 4000
const IP_LISTS = 200

const AREAS = ['billing', 'ordering', 'payments', 'catalogue', 'claims', 'ledger', 'search', 'mail', 'identity', 'logs']
const ENVS = ['prod', 'stage', 'test', 'dev']
const LOCS = ['ams-1', 'ams-2', 'fra-1', 'lon-1', 'nyc-1', 'nyc-2', 'sin-1', 'sao-1']
const PORTS = [
  443, 443, 443, 80, 8080, 8443, 22, 53, 389, 636, 88, 445, 3389, 1433, 1521, 3306, 5432, 6379, 9092, 27017,
]
const OUTSIDE = ['shop', 'cdn', 'telemetry', 'partner', 'mirror', 'bank', 'parcels', 'maps']

const random = createRandom(20_260_615)
const label = (id: number, key: string, value: string) => ({ href: `/orgs/1/labels/${id}`, key, value })
const apps = Array.from({ length: APPLICATIONS / ENVS.length }, (_, at) =>
  label(at + 100, 'app', `${AREAS[at % AREAS.length]}-${String(at).padStart(4, '0')}`),
)
const envs = ENVS.map((value, at) => label(at + 1, 'env', value))
const locs = LOCS.map((value, at) => label(at + 20, 'loc', value))

/** All labels of the estate. */
export const estateLabels = [...envs, ...locs, ...apps]

const lists = Array.from({ length: IP_LISTS }, (_, at) => ({
  href: `/orgs/1/sec_policy/active/ip_lists/${at + 1}`,
  name: at === 0 ? ANY_IP_LIST_NAME : `${AREAS[at % AREAS.length]} partners ${at}`,
}))
const processes: Process[] = Object.values(PROCESSES)
const peers = Uint16Array.from({ length: APPLICATIONS * PEERS }, (_, at) => {
  const peer = random.integer(0, (random.chance(0.4) ? INFRASTRUCTURE : APPLICATIONS) - 1)
  return peer === Math.floor(at / PEERS) ? (peer + 1) % APPLICATIONS : peer
})
const workloads: FlowNode[] = Array.from({ length: WORKLOADS }, (_, at) => shapeWorkload(at))

/**
 * Generates different rows, as a PCE aggregates them: traffic between applications and within one, to and from the
 * outside, and of hosts without labels. Every run generates the same rows, and the first rows do not depend on `count`.
 * The first rows together contain all applications.
 */
export function* generateFlows(count: number): Generator<TrafficFlow> {
  for (let row = 0; row < count; row++) {
    const isFirst = row < APPLICATIONS
    const kind = isFirst ? 0 : random.next()
    const application = isFirst ? row : random.integer(0, APPLICATIONS - 1)
    const peer = kind < 0.65 ? peers[application * PEERS + random.integer(0, PEERS - 1)]! : application
    const here = isFirst ? workloads[application]! : hostOf(application)
    const there = isFirst ? workloads[peer]! : hostOf(peer)
    if (kind < 0.75) yield shapeFlow(here, there, application, peer)
    else if (kind < 0.92) yield shapeFlow(here, drawOutside(), application, -1)
    else yield shapeFlow(drawOutside(), here, -1, application)
  }
}

/**
 * Picks a host of an application. A host belongs to an application if its number, modulo the number of applications, is
 * the number of the application.
 */
const hostOf = (application: number): FlowNode =>
  workloads[application + APPLICATIONS * random.integer(0, WORKLOADS / APPLICATIONS - 1)]!

function shapeWorkload(at: number): FlowNode {
  const application = at % APPLICATIONS
  const [app, env] = [apps[application >> 2]!, envs[application & 3]!]
  // The first host of every application has all labels of the application. Some other hosts have no labels or only some
  // of them, as in any estate.
  const labels =
    at < APPLICATIONS || random.chance(0.93) ? [app, env, locs[at % locs.length]!] : random.pick([[], [app], [env]])
  const name = `${app.value}-${env.value}-${String(at).padStart(5, '0')}`
  return {
    ip: `10.${40 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`,
    workload: {
      href: `/orgs/1/workloads/${random.uuid()}`,
      hostname: `${name}.${locs[at % locs.length]!.value}.corp.example`,
      name,
      os_type: random.chance(0.3) ? 'windows' : 'linux',
      managed: at < APPLICATIONS || random.chance(0.97),
      enforcement_mode: random.pick(['visibility_only', 'selective', 'full']),
      labels,
    },
  }
}

function drawOutside(): FlowNode {
  const at = random.integer(0, NAMES_OUTSIDE - 1)
  const ip = `${[203, 198, 91, 34][at & 3]}.${at % 200}.${at >> 5}.${random.integer(1, 8)}`
  const ipLists = at % 3 === 0 ? [lists[0]!, lists[1 + (at % (IP_LISTS - 1))]!] : [lists[0]!]
  const fqdn = at % 5 === 0 ? null : `${OUTSIDE[at % OUTSIDE.length]}-${at}.region-${at % 9}.example.net`
  return { ip, ...(fqdn !== null && { fqdn }), ip_lists: ipLists }
}

/**
 * Builds a flow. `from` and `to` are numbers of hosts; -1 means an end outside the estate. The process is that of the
 * end that reports the flow.
 */
function shapeFlow(src: FlowNode, dst: FlowNode, from: number, to: number): TrafficFlow {
  const isInbound = from === -1 || (to !== -1 && random.chance(0.5))
  const app = apps[(isInbound ? to : from) >> 2]!.value
  const own = { path: `/opt/${app}/bin/${app}-${random.pick(['web', 'api', 'worker'])}`, user: `svc-${app}` }
  const { path, user, service }: Process = random.chance(0.4) ? own : random.pick(processes)
  const first = Date.UTC(2026, 5, 8) + random.integer(0, 6 * 86_400) * 1000
  const hasProcess = random.chance(0.92)
  return {
    src,
    dst,
    service: {
      port: to === -1 || random.chance(0.2) ? random.pick(PORTS) : PORTS[(to * 7) % PORTS.length]!,
      proto: random.chance(0.9) ? 6 : 17,
      process_name: hasProcess ? path : null,
      windows_service_name: service ?? null,
      user_name: hasProcess ? user : null,
    },
    num_connections: 1 + Math.floor(random.next() ** 6 * 100_000),
    state: random.pick(['active', 'closed', 'timed out', 'snapshot']),
    policy_decision: random.pick(['allowed', 'allowed', 'allowed', 'potentially_blocked', 'blocked']),
    flow_direction: isInbound ? 'inbound' : 'outbound',
    timestamp_range: { first_detected: toTime(first), last_detected: toTime(first + random.integer(0, 86_400) * 1000) },
    dst_bi: random.integer(0, 1_000_000),
    dst_bo: random.integer(0, 10_000_000),
    caps: [],
  }
}

const toTime = (milliseconds: number) => new Date(milliseconds).toISOString().replace('.000Z', 'Z')

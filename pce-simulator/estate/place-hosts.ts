import type { Label } from '../../schemas/pce/label.js'
import type { EnforcementMode, Workload } from '../../schemas/pce/workload.js'
import type { Endpoint } from '../model.js'
import { APPLICATIONS, ENFORCEMENT, ENVIRONMENTS, type Application, type Environment } from './data/applications.js'
import { SHARED_SERVICES } from './data/infrastructure.js'
import { STACKS, type Os, type Stack } from './data/stacks.js'
import type { Process } from './data/processes.js'
import { LOCATIONS, type LabelBook, type Location } from './number-labels.js'
import { createWeightedDraw, type Random } from './random.js'
import { shapeManaged } from './shape-workload.js'

/** A workload together with the facts that the traffic generator needs. */
export interface Host {
  workload: Workload
  /** The host in its role as source or destination. All conversations of the host share this object. */
  endpoint: Endpoint
  os: Os
  managed: boolean
  /** The employee who uses the host; null for servers. */
  user: string | null
}

/** A group of similar hosts that the estate fills: an application's tier in one environment, or a shared service. */
export interface Slot {
  app: string
  env: Environment
  role: string
  os: Os
  locations: readonly Location[]
  listener: Process
  port: number | null
  weight: number
  hosts: Host[]
}

/**
 * Lists all slots for servers: the tiers of every application in each environment, and the shared services. They are in
 * the order in which a growing estate fills them: production first, beginning with payments.
 */
export function listSlots(): Slot[] {
  const applicationSlots = (application: Application, env: Environment, index: number): Slot[] => {
    const stack: Stack = STACKS[application.stack]
    const home = LOCATIONS[index % LOCATIONS.length]!
    const second = LOCATIONS[(index + 1) % LOCATIONS.length]!
    return stack.tiers.map((tier) => ({
      app: application.name,
      env,
      role: tier.role,
      os: tier.os,
      locations: env === 'prod' ? [home, home, second] : [home],
      listener: tier.listener,
      port: tier.port,
      weight: application.size * tier.share * (env === 'prod' ? 3 : 1),
      hosts: [],
    }))
  }
  const shared = SHARED_SERVICES.map(({ app, role, os, size, listener }): Slot => {
    return { app, env: 'prod', role, os, locations: LOCATIONS, listener, port: null, weight: size * 3, hosts: [] }
  })
  const byEnvironment = ENVIRONMENTS.map((env) =>
    APPLICATIONS.flatMap((application, index) =>
      application.envs.includes(env) ? applicationSlots(application, env, index) : [],
    ),
  )
  const [production = [], ...others] = byEnvironment
  const [first, rest] = [production.slice(0, STARTERS), production.slice(STARTERS)]
  return [
    ...first,
    ...shared.slice(0, STARTING_SERVICES),
    ...rest.slice(0, STARTERS),
    ...shared.slice(STARTING_SERVICES),
    ...rest.slice(STARTERS),
    ...others.flat(),
  ]
}

/**
 * The number of application slots and the number of service slots that even the smallest estates fill. The application
 * slots are those of payments and its callers; the services are DNS, Active Directory, NTP and monitoring.
 */
const STARTERS = 9
const STARTING_SERVICES = 4

/**
 * Distributes `count` servers over the slots. Each slot first gets one server, in order; the remaining servers are
 * distributed by the weights of the slots. All servers are added to `slot.hosts`.
 */
export function placeServers(
  random: Random,
  labels: LabelBook,
  orgId: number,
  slots: readonly Slot[],
  count: number,
): void {
  const draw = createWeightedDraw(slots.map(({ weight }) => weight))
  const counts = slots.map((_, index) => (index < count ? 1 : 0))
  for (let placed = slots.length; placed < count; placed += 1) counts[draw.draw(random) ?? 0]! += 1
  let number = 0
  slots.forEach((slot, index) => {
    for (let ordinal = 1; ordinal <= counts[index]!; ordinal += 1) {
      slot.hosts.push(placeServer(random, labels, orgId, slot, ordinal, (number += 1)))
    }
  })
}

function placeServer(
  random: Random,
  labels: LabelBook,
  orgId: number,
  slot: Slot,
  ordinal: number,
  number: number,
): Host {
  const location = slot.locations[(ordinal - 1) % slot.locations.length]!
  const ip = serverAddress(location, number)
  const workload = shapeManaged(random, {
    orgId,
    hostname: `${slot.app}-${slot.env}-${slot.role}-${String(ordinal).padStart(2, '0')}`,
    ip,
    ...(random.chance(0.1) ? { ipv6: `fd00:10:${LOCATIONS.indexOf(location)}::${number.toString(16)}` } : {}),
    os: slot.os,
    kind: 'server',
    labels: labelsOf(labels, slot, location),
    mode: modeOf(random, slot),
    online: !random.chance(0.02),
    location,
    listeners: [...(slot.port === null ? [] : [{ port: slot.port, process: slot.listener }])],
    agentId: 100 + number,
  })
  return { workload, endpoint: { workload: workload.href, ip }, os: slot.os, managed: true, user: null }
}

const labelsOf = (labels: LabelBook, { app, env, role }: Slot, location: Location): Label[] => [
  labels.find('role', role),
  labels.find('app', app),
  labels.find('env', env),
  labels.find('loc', location),
]

/**
 * Chooses an enforcement mode for a host. One host in thirty deviates from its application, as during a roll-out; all
 * hosts of payments have the same mode.
 */
function modeOf(random: Random, { app, env }: Slot): EnforcementMode {
  const mode = ENFORCEMENT[`${app}|${env}`] ?? 'visibility_only'
  const deviates = random.chance(1 / 30) && app !== 'payments'
  return deviates ? random.pick(['idle', 'visibility_only', 'selective', 'selective'] as const) : mode
}

/** Returns the address of a server. Each location has a /16 network (10.10, 10.20, …) with room for 65,000 hosts. */
const serverAddress = (location: Location, number: number) =>
  hostAddress(`10.${(LOCATIONS.indexOf(location) + 1) * 10}`, number)

/**
 * Returns the `number`th address of a /16 network, leaving out the network and broadcast addresses of its /24 networks.
 * Throws RangeError if the network has fewer addresses.
 */
export function hostAddress(network: string, number: number): string {
  const third = Math.floor((number - 1) / 254)
  if (third > 255) throw new RangeError(`${network}.0.0/16 has no room for ${number} hosts`)
  return `${network}.${third}.${((number - 1) % 254) + 1}`
}

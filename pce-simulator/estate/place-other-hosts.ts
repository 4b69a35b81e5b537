import { ENVIRONMENTS } from './data/applications.js'
import { PROCESSES } from './data/processes.js'
import { APPLIANCES, FAMILY_NAMES, GIVEN_NAMES, STRAY_HOSTS, type Appliance } from './data/other-hosts.js'
import { ENDPOINT_ROLE, LOCATIONS, type LabelBook } from './number-labels.js'
import { hostAddress, type Host } from './place-hosts.js'
import type { Random } from './random.js'
import { shapeManaged, shapeUnmanaged } from './shape-workload.js'

export interface OtherHosts {
  laptops: Host[]
  appliances: (Host & { appliance: Appliance })[]
  strays: Host[]
}

/** The first agent id for hosts that belong to no application. */
const FIRST_AGENT = 500_000

const LAPTOP_NETWORK = '10.200'
const APPLIANCE_NETWORK = '10.50'
const STRAY_NETWORK = '10.70'

/** Decides how many of an estate's workloads do not belong to an application. */
export function shareOut(workloads: number): { laptops: number; appliances: number; strays: number } {
  const share = (part: number) => (workloads < 20 ? 0 : Math.max(1, Math.floor(workloads * part)))
  return { laptops: share(0.12), appliances: share(0.06), strays: share(0.04) }
}

/**
 * Creates the hosts that belong to no application. Laptops have a role and a location; appliances have no VEN; stray
 * servers have at most one label.
 */
export function placeOtherHosts(
  random: Random,
  labels: LabelBook,
  orgId: number,
  counts: ReturnType<typeof shareOut>,
): OtherHosts {
  let agentId = FIRST_AGENT
  const range = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

  const laptops = range(counts.laptops).map((number): Host => {
    const family = FAMILY_NAMES[number % FAMILY_NAMES.length]!
    const given = GIVEN_NAMES[Math.floor(number / FAMILY_NAMES.length) % GIVEN_NAMES.length]!
    const round = Math.floor(number / (FAMILY_NAMES.length * GIVEN_NAMES.length))
    const user = `${given[0]!}${family}${round === 0 ? '' : round + 1}`.toLowerCase()
    const ip = hostAddress(LAPTOP_NETWORK, number)
    const location = random.pick(LOCATIONS)
    const workload = shapeManaged(random, {
      orgId,
      hostname: `LT-${user.toUpperCase()}`,
      ip,
      os: 'windows',
      kind: 'endpoint',
      labels: [labels.find('role', ENDPOINT_ROLE), labels.find('loc', location)],
      mode: random.chance(0.2) ? 'selective' : 'visibility_only',
      online: random.chance(0.7),
      location,
      listeners: [],
      agentId: (agentId += 1),
    })
    return { workload, endpoint: { workload: workload.href, ip }, os: 'windows', managed: true, user: `CORP\\${user}` }
  })

  const appliances = range(counts.appliances).map((number) => {
    const appliance = APPLIANCES[(number - 1) % APPLIANCES.length]!
    const ip = hostAddress(APPLIANCE_NETWORK, number)
    const ordinal = String(Math.ceil(number / APPLIANCES.length)).padStart(2, '0')
    const workload = shapeUnmanaged(random, {
      orgId,
      name: `${appliance.host}-${ordinal}`,
      ip,
      osId: appliance.osId,
      labels: [
        labels.find('role', appliance.role),
        ...(number % 3 === 0 ? [] : [labels.find('loc', random.pick(LOCATIONS))]),
      ],
    })
    return {
      workload,
      endpoint: { workload: workload.href, ip },
      os: 'linux' as const,
      managed: false,
      user: null,
      appliance,
    }
  })

  const strays = range(counts.strays).map((number): Host => {
    const name = STRAY_HOSTS[(number - 1) % STRAY_HOSTS.length]!
    const os = /win/i.test(name) ? 'windows' : 'linux'
    const ip = hostAddress(STRAY_NETWORK, number)
    const halves = [
      [],
      [labels.find('env', random.pick(ENVIRONMENTS))],
      [labels.find('app', random.pick(['payments', 'crm', 'erp', 'ordering']))],
    ]
    const workload = shapeManaged(random, {
      orgId,
      hostname: `${name}-${String(number).padStart(3, '0')}`,
      ip,
      os,
      kind: 'server',
      labels: halves[(number - 1) % halves.length]!,
      mode: random.chance(0.15) ? 'idle' : 'visibility_only',
      online: true,
      location: random.pick(LOCATIONS),
      listeners: [{ port: 22, process: PROCESSES.sshd }],
      agentId: (agentId += 1),
    })
    return { workload, endpoint: { workload: workload.href, ip }, os, managed: true, user: null }
  })

  return { laptops, appliances, strays }
}

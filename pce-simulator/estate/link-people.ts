import { BRANCH_APPLICATIONS, EMPLOYEE_APPLICATIONS, PUBLIC_APPLICATIONS } from './data/callers.js'
import { LAPTOP_DESTINATIONS, VISITOR_NETWORKS } from './data/destinations.js'
import { BRANCH_NETWORK } from './data/ip-lists.js'
import { LAPTOP_PROGRAMS } from './data/processes.js'
import { applicationNamed, entryTier, type HostsOf } from './link-applications.js'
import type { Host } from './place-hosts.js'
import type { Random } from './random.js'
import { anyAddress, anyOf, join, type Party, type Relation } from './relation.js'

const TCP = 6

const visitor = anyAddress((random) => ({
  ip: random.chance(0.05)
    ? `2a02:${random.integer(0x100, 0xfff).toString(16)}:${random.integer(1, 0xffff).toString(16)}::${random.integer(1, 0xffff).toString(16)}`
    : `${random.pick(VISITOR_NETWORKS)}.${random.integer(0, 255)}.${random.integer(0, 255)}.${random.integer(1, 254)}`,
}))

const branchMachine = anyAddress((random) => ({
  ip: `${BRANCH_NETWORK}.${random.integer(0, 63)}.${random.integer(1, 254)}`,
}))

/**
 * Creates the traffic to the named applications, at their entry tier in production, from addresses that the PCE does
 * not know.
 */
function linkAddresses(hosts: HostsOf, names: readonly string[], from: Party): Relation[] {
  return names.flatMap((name): Relation[] => {
    const { role, port, listener } = entryTier(applicationNamed(name))
    const to = hosts(name, 'prod', role)
    if (to.length === 0) return []
    return [
      {
        about: [`${name}|prod`],
        weight: to.length,
        from,
        to: anyOf(to),
        proto: TCP,
        port,
        listener,
        client: null,
        busy: 2,
      },
    ]
  })
}

/** Creates the traffic of visitors from the internet. The number of possible visitors is unlimited. */
export const linkVisitors = (hosts: HostsOf) => linkAddresses(hosts, PUBLIC_APPLICATIONS, visitor)

export const linkBranches = (hosts: HostsOf) => linkAddresses(hosts, BRANCH_APPLICATIONS, branchMachine)

/** Creates the traffic of employees' laptops to the company's own applications. */
export const linkEmployees = (hosts: HostsOf, laptops: readonly Host[]): Relation[] =>
  EMPLOYEE_APPLICATIONS.flatMap((name) => {
    const { role, port, listener } = entryTier(applicationNamed(name))
    return join(laptops, hosts(name, 'prod', role), {
      about: [`${name}|prod`],
      weight: 1,
      proto: TCP,
      port,
      listener,
      client: LAPTOP_PROGRAMS,
      busy: 2,
    })
  })

/** Creates the traffic of employees' laptops to the internet. */
export const linkBrowsing = (laptops: readonly Host[]): Relation[] =>
  laptops.length === 0
    ? []
    : LAPTOP_DESTINATIONS.map(([fqdn, network]) => ({
        about: [],
        weight: 1,
        from: anyOf(laptops),
        to: anyAddress((random: Random) => ({ ip: `${network}.${random.integer(1, 254)}`, fqdn })),
        proto: TCP,
        port: 443,
        listener: null,
        client: LAPTOP_PROGRAMS,
        busy: 2.5,
      }))

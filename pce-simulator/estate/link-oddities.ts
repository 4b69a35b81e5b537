import { GROUP_DESTINATIONS } from './data/destinations.js'
import { PROCESSES } from './data/processes.js'
import { applicationNamed, entryTier, type HostsOf } from './link-applications.js'
import type { Host, Slot } from './place-hosts.js'
import type { OtherHosts } from './place-other-hosts.js'
import { anyAddress, anyOf, join, type Relation } from './relation.js'

const TCP = 6

/**
 * Creates the traffic that nobody planned but every estate has: applications that depend on unlabelled servers, people
 * who query databases directly, development hosts on production data, appliances, a scanner, and broadcasts.
 */
export function linkOddities(
  hosts: HostsOf,
  slots: readonly Slot[],
  { laptops, appliances, strays }: OtherHosts,
): Relation[] {
  const payments = { web: hosts('payments', 'prod', 'web'), db: hosts('payments', 'prod', 'db') }
  const reporting = hosts('reporting', 'dev', 'app')
  const everyone = [...slots.flatMap((slot) => slot.hosts), ...strays]
  return [
    ...join(strays, payments.web, odd(['payments|prod'], 443, PROCESSES.nginx, PROCESSES.curl)),
    ...join(laptops, payments.db, odd(['payments|prod'], 5432, PROCESSES.postgres, QUERY_TOOLS)),
    ...join(reporting, payments.db, odd(['payments|prod'], 5432, PROCESSES.postgres, PROCESSES.java)),
    ...join(
      hosts('erp', 'test', 'worker'),
      hosts('erp', 'prod', 'db'),
      odd([], 1521, PROCESSES.oracle, PROCESSES.java),
    ),
    ...join(strays, hosts('web-shop', 'prod', 'web'), odd([], 22, PROCESSES.sshd, PROCESSES.ssh)),
    ...join(strays, hosts('billing', 'prod', 'db'), odd([], 1433, PROCESSES.mssql, PROCESSES.python)),
    ...join(strays.slice(0, 1), everyone, odd([], 22, PROCESSES.sshd, PROCESSES.scanner)),
    ...join(laptops, laptops, odd([], 445, PROCESSES.fileServer, PROCESSES.fileClient)),
    ...linkAppliances(hosts, slots, appliances),
    ...join(appliances, hosts('log-collection', 'prod', 'log-collector'), odd([], 6514, PROCESSES.logCollector, null)),
    ...join(appliances, appliances, odd([], 443, null, null)),
    ...linkGroups([...everyone, ...laptops]),
  ]
}

const QUERY_TOOLS = ['C:\\Program Files\\DBeaver\\dbeaver.exe', 'C:\\Program Files\\pgAdmin 4\\runtime\\pgAdmin4.exe']

const odd = (about: readonly string[], port: number, listener: Relation['listener'], client: Relation['client']) => ({
  about,
  weight: 2,
  proto: TCP,
  port,
  listener,
  client,
  busy: 1.5,
})

const linkAppliances = (hosts: HostsOf, slots: readonly Slot[], appliances: OtherHosts['appliances']): Relation[] =>
  appliances.flatMap((host) => {
    const { port, callers, calls } = host.appliance
    const production = slots
      .filter(({ app, env }) => env === 'prod' && callers.includes(app))
      .flatMap((slot) => slot.hosts)
    const outward = calls.flatMap((name) => {
      const tier = entryTier(applicationNamed(name))
      return join([host], hosts(name, 'prod', tier.role), odd([`${name}|prod`], tier.port, tier.listener, null))
    })
    return [...join(production, [host], odd([], port, null, PROCESSES.java)), ...outward]
  })

/** Creates the traffic to broadcast and multicast addresses. */
const linkGroups = (hosts: readonly Host[]): Relation[] =>
  GROUP_DESTINATIONS.map(({ ip, transmission, proto, port }) => ({
    about: [],
    weight: 1,
    from: anyOf(hosts),
    to: anyAddress(() => ({ ip })),
    proto,
    ...(port === undefined ? {} : { port }),
    listener: null,
    client: null,
    transmission,
    busy: 2,
  }))

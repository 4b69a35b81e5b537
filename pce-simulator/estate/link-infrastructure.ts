import { DEPENDENCIES, SERVING_CLIENTS, SHARED_SERVICES } from './data/infrastructure.js'
import type { HostsOf } from './link-applications.js'
import type { Host } from './place-hosts.js'
import { join, type Relation } from './relation.js'

/** Creates the traffic between every host and the shared services, in both directions. */
export function linkInfrastructure(hosts: HostsOf, everyHost: readonly Host[]): Relation[] {
  return DEPENDENCIES.flatMap(({ app, direction, os, host, proto, port, toPort, icmp, weekly }) => {
    const service = SHARED_SERVICES.find((candidate) => candidate.app === app)
    const servers = hosts(app, 'prod', service?.role ?? '')
    const participants = everyHost.filter((candidate) => os === 'any' || candidate.os === os)
    const about = {
      about: [`${app}|prod`],
      weight: weekly === true ? 1 : 3,
      proto,
      port,
      toPort,
      icmp,
      weekly,
      busy: 3,
    }
    return direction === 'uses'
      ? join(participants, servers, { ...about, listener: service?.listener ?? null, client: host })
      : join(servers, participants, {
          ...about,
          listener: icmp === undefined ? host : null,
          client: SERVING_CLIENTS[app] ?? null,
        })
  })
}

import { APPLICATIONS, type Application, type Environment } from './data/applications.js'
import { CALLS, INTERNET_CALLS } from './data/callers.js'
import { DESTINATIONS } from './data/destinations.js'
import { STACKS, type Stack, type Tier } from './data/stacks.js'
import type { Host, Slot } from './place-hosts.js'
import { anyAddress, anyOf, join, type Relation } from './relation.js'

const TCP = 6

/**
 * Finds the hosts of one tier of an application in one environment. Returns an empty list if the application or tier
 * does not exist there.
 */
export type HostsOf = (app: string, env: string, role: string) => readonly Host[]

export function indexHosts(slots: readonly Slot[]): HostsOf {
  const hosts = new Map(slots.map((slot) => [`${slot.app}|${slot.env}|${slot.role}`, slot.hosts]))
  return (app, env, role) => hosts.get(`${app}|${env}|${role}`) ?? []
}

const stackOf = ({ stack }: Application): Stack => STACKS[stack]

/** Finds the tier of an application by its role. Throws RangeError if the application has no such tier. */
function tierOf(application: Application, role: string): Tier {
  const tier = stackOf(application).tiers.find((candidate) => candidate.role === role)
  if (tier === undefined) throw new RangeError(`${application.name} has no ${role} tier`)
  return tier
}

export function applicationNamed(name: string): Application {
  const application = APPLICATIONS.find((candidate) => candidate.name === name)
  if (application === undefined) throw new RangeError(`there is no application ${name}`)
  return application
}

/** Finds the tier of an application that other applications call. */
export const entryTier = (application: Application) => tierOf(application, stackOf(application).entry)

const everyPlace = <T>(make: (application: Application, env: Environment) => readonly T[]): T[] =>
  APPLICATIONS.flatMap((application) => application.envs.flatMap((env) => make(application, env)))

const placeWeight = (application: Application, env: Environment) => application.size * (env === 'prod' ? 4 : 1)

/** Creates the traffic between the tiers within each application and environment. */
export const linkTiers = (hosts: HostsOf): Relation[] =>
  everyPlace((application, env) =>
    stackOf(application).edges.flatMap(([fromRole, toRole]) => {
      const [from, to] = [tierOf(application, fromRole), tierOf(application, toRole)]
      return join(hosts(application.name, env, fromRole), hosts(application.name, env, toRole), {
        about: [`${application.name}|${env}`],
        weight: placeWeight(application, env),
        proto: TCP,
        port: to.port,
        listener: to.listener,
        client: from.client,
        busy: 4,
      })
    }),
  )

/**
 * Creates the traffic between applications. If the called application does not exist in the caller's environment, the
 * one in prod is called, as in real estates.
 */
export const linkCallers = (hosts: HostsOf): Relation[] =>
  everyPlace((application, env) =>
    (CALLS[application.name] ?? []).flatMap((name) => {
      const callee = applicationNamed(name)
      const calleeEnv = callee.envs.includes(env) ? env : 'prod'
      const [from, to] = [tierOf(application, stackOf(application).caller), entryTier(callee)]
      return join(hosts(application.name, env, from.role), hosts(name, calleeEnv, to.role), {
        about: [`${application.name}|${env}`, `${name}|${calleeEnv}`],
        weight: placeWeight(application, env),
        proto: TCP,
        port: to.port,
        listener: to.listener,
        client: from.client,
        busy: 3.5,
      })
    }),
  )

/** Creates the traffic of applications to internet host names, over HTTPS. */
export const linkInternet = (hosts: HostsOf): Relation[] =>
  everyPlace((application, env) =>
    (INTERNET_CALLS[application.name] ?? []).flatMap((fqdn): Relation[] => {
      const from = tierOf(application, stackOf(application).caller)
      const callers = hosts(application.name, env, from.role)
      const addresses = DESTINATIONS[fqdn] ?? []
      if (callers.length === 0 || addresses.length === 0) return []
      return [
        {
          about: [`${application.name}|${env}`],
          weight: placeWeight(application, env),
          from: anyOf(callers),
          to: anyAddress((random) => ({ ip: random.pick(addresses), fqdn })),
          proto: TCP,
          port: 443,
          listener: null,
          client: from.client,
          busy: 3,
        },
      ]
    }),
  )

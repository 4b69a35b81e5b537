import type { Rule } from '../../../schemas/pce/rule-set.js'
import type { Box } from '../boxes.js'
import type { RuleInForce } from '../rule-in-force.js'
import { type Bit, NONE } from './bits.js'
import { specialOf } from './opaque-parts.js'
import type { Ambiguity, Reading } from './readings.js'
import type { Services } from './service-boxes.js'

const NETWORKS: Record<string, bigint | undefined> = { brn: 1n, non_brn: 2n }

/** The mask with both values of `network`: the corporate network and other networks. */
export const ALL_NETWORKS = 3n

/**
 * The conditions that a rule sets for connections, apart from their ends. A connection meets them if it is in at least
 * one of the boxes.
 */
export interface Conditions {
  plain: readonly Box[]
  /**
   * The conditions if the destination is a virtual service or server. These have their own ports, so the services of
   * the rule are then not a condition.
   */
  virtual: readonly Box[]
}

/**
 * Returns the conditions of a rule apart from its ends: network, services, programs, users, and the fields that can
 * only be compared for equality (`special`).
 */
export function conditionsOf(
  { rule, contents }: RuleInForce,
  services: Services,
  bit: Bit,
  reading: Reading,
): Conditions {
  const asked = rule.network_type ?? 'brn'
  const network = asked === 'brn' && reading.has('network') ? undefined : NETWORKS[asked]
  const special = specialOf(rule)
  const always = new Map<string, bigint>([
    ...(network === undefined ? [] : [['network', network] as const]),
    ['special', special === '' ? NONE : bit('special', special)],
  ])
  const groups = ((rule as Partial<Rule>).consuming_security_principals ?? []).map(
    ({ href }) => new Map([[`user ${href}`, 2n]]),
  )
  const users: Box[] = groups.length === 0 ? [new Map()] : groups
  const clients = users.flatMap((user) =>
    services.clientsOf(rule.egress_services ?? [], contents).map((client) => new Map([...always, ...user, ...client])),
  )
  const served = services.boxesOf(rule.ingress_services, contents)
  return { virtual: clients, plain: clients.flatMap((one) => served.map((box) => new Map([...one, ...box]))) }
}

/** Lists the ambiguities that arise when a rule for other networks is compared with rules for the corporate network. */
export const ambiguitiesOfNetwork = ({ rule }: RuleInForce): Ambiguity[] =>
  (rule.network_type ?? 'brn') === 'brn' ? [] : ['network']

import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'

/** A deny rule that closes services on all workloads, in the form in which callers describe a rule. */
export interface ClosingRule {
  providers: Actor[]
  consumers: Actor[]
  ingress_services: IngressService[]
  unscoped_consumers: true
}

/**
 * Returns the deny rule that closes services on all workloads, whoever asks for them. It is meant for a rule set
 * without a scope. Its consumers are the Any IP list, so that each destination enforces the rule itself and nothing
 * hangs on what sources in selective mode do (P51). Without such a list its consumers are all workloads, and addresses
 * without a workload are not denied.
 */
export const closingRule = (services: readonly IngressService[], anyList: IpList | undefined): ClosingRule => ({
  providers: [{ actors: 'ams' }],
  consumers: [anyList === undefined ? { actors: 'ams' } : { ip_list: { href: toDraftHref(anyList.href) } }],
  ingress_services: [...services],
  unscoped_consumers: true,
})

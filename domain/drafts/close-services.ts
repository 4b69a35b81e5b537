import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'

/** A deny rule that closes services on all workloads, written as callers describe rules. */
export interface ClosingRule {
  providers: Actor[]
  consumers: Actor[]
  ingress_services: IngressService[]
  unscoped_consumers: true
}

/**
 * Returns the deny rule that closes services on all workloads for every source. It is meant for a rule set without a
 * scope. Its consumers are the Any IP list, so each destination enforces the rule itself and nothing depends on what
 * sources in selective mode do (P51). If there is no such list, its consumers are all workloads, and addresses without
 * a workload are not denied.
 */
export const closingRule = (services: readonly IngressService[], anyList: IpList | undefined): ClosingRule => ({
  providers: [{ actors: 'ams' }],
  consumers: [anyList === undefined ? { actors: 'ams' } : { ip_list: { href: toDraftHref(anyList.href) } }],
  ingress_services: [...services],
  unscoped_consumers: true,
})

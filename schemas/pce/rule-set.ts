import type { Reference, VersionedObject } from './reference.js'

export interface ScopeEntry {
  label?: { href: string; key?: string; value?: string }
  label_group?: { href: string; key?: string; name?: string }
  exclusion?: boolean
}

/** Exactly one selector. Which ones a rule accepts differs by side and by kind of rule (pce-api e.7, e.8). */
export interface Actor {
  actors?: 'ams' | 'container_host'
  label?: { href: string; key?: string; value?: string }
  label_group?: { href: string; key?: string; name?: string }
  ip_list?: { href: string; name?: string }
  workload?: { href: string; name?: string | null; hostname?: string | null }
  virtual_service?: { href: string; name?: string | null }
  virtual_server?: { href: string }
  exclusion?: boolean
}

export type IngressService = Reference | { port: number; to_port?: number; proto: number }

interface RuleCore extends VersionedObject {
  enabled: boolean
  description?: string | null
  providers: Actor[]
  consumers: Actor[]
  ingress_services: IngressService[]
  egress_services?: Reference[] | null
  unscoped_consumers?: boolean
  network_type?: 'brn' | 'non_brn' | 'all'
}

/** An allow rule (`sec_rules`). */
export interface Rule extends RuleCore {
  resolve_labels_as: { providers: string[]; consumers: string[] }
  sec_connect?: boolean
  stateless?: boolean
  machine_auth?: boolean
  consuming_security_principals?: Reference[] | null
}

/** A deny rule; `override: true` makes it an override deny, which beats every allow rule. */
export interface DenyRule extends RuleCore {
  override?: boolean
}

export interface RuleSet extends VersionedObject {
  name: string
  description?: string | null
  enabled: boolean
  /** Inner lists AND, outer list OR; `[[]]` is everything. */
  scopes: ScopeEntry[][]
  rules?: Rule[] | null
  /** Absent on releases without the feature. */
  deny_rules?: DenyRule[] | null
}

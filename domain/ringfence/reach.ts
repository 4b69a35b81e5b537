import type { Label } from '../../schemas/pce/label.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Answer } from '../policy/answers.js'
import type { Families } from '../policy/cover-addresses.js'
import type { ServiceMatch } from '../policy/match-service.js'

/** What the rules of an existing ringfence are compared with. */
export interface Known {
  allServices: string
  /** Hrefs of the lists that are every address, with the families that they hold. */
  anyLists: ReadonlyMap<string, Families>
  /** Rules name labels by href alone (P20). */
  readonly keyOf: (href: string) => string | undefined
  readonly labelOf: (href: string) => Label | undefined
  readonly findService: (href: string) => Service | undefined
}

/** A remote application with its labels. */
export interface Remote {
  app: Label
  env: Label
}

/** The part of a ringfence that a rule stands for; null is the rule inside the application. */
export type Need = Remote | null

/** Enforcement mode of an end; `none` has no agent of this PCE, so nothing is enforced there. */
export type EndMode = 'none' | 'idle' | 'visibility_only' | 'selective' | 'full' | 'unknown'

/** A deny rule of the ringfence, new or existing, from outside its scope to all of its workloads. */
export interface DenyReach {
  ams: boolean
  ipv4: Answer
  ipv6: Answer
  /** It has consumers, providers or conditions that are not judged here. */
  isUnclear: boolean
  services: ServiceMatch
}

export interface RingfenceReach {
  selective: boolean
  denies: readonly DenyReach[]
  elsewhere: AddressRules
  /** Others have changes that are not provisioned. */
  hasPending: boolean
}

/**
 * Allow rules anywhere that name one side by its address. Only these can let a flow through at one end and not at the other: a
 * rule that names both ends as workloads is written to both. `from`: at the application's workloads; `to`: at the source.
 */
export interface AddressRules {
  from: ServiceMatch
  to: ServiceMatch
}
export type Kind = 'allow' | 'deny' | 'override'

/** What rules beside those of the ringfence say of a flow: its own that stand already, others' in force, others' in draft. */
export type OtherAnswers = Record<Kind, { own: Answer; active: Answer; draft: Answer }>

import { Type } from '@sinclair/typebox'
import { MaybeFlag, VERSIONED_FIELDS, type Read } from './reference.js'
import { NetworkType, RULE_SIDES } from './rule-set.js'

/** What is blocked wherever nothing allows it; deny rules have superseded these (P22). */
export const EnforcementBoundary = Type.Object({
  ...VERSIONED_FIELDS,
  ...RULE_SIDES,
  name: Type.String(),
  enabled: MaybeFlag,
  network_type: Type.Optional(NetworkType),
})
export type EnforcementBoundary = Read<typeof EnforcementBoundary>

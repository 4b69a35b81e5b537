import { allowsByRule, isMode, type EndMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { RuleType } from './rule-type.js'
import { unknown, type Answer } from './three-valued.js'

/** The direction of a connection as seen from one end: outbound at the source, inbound at the destination. */
export type Direction = 'inbound' | 'outbound'

/** What decided about a connection at one end: a rule of this type, or the default of the mode if no rule matches. */
export type Deciding = RuleType | 'default'

/**
 * What an end does with a connection: let it pass, drop it, or let it pass and report that full enforcement would drop
 * it. `unsettled` means that the documents about the PCE contradict each other.
 */
type Effect = 'passes' | 'reports' | 'drops' | 'unsettled'
type Effects = Readonly<Record<Deciding, Effect>>

const NOTHING: Effects = { override_deny: 'passes', allow: 'passes', deny: 'passes', default: 'passes' }
const REPORTS: Effects = { override_deny: 'reports', allow: 'passes', deny: 'reports', default: 'reports' }
const ALL: Effects = { override_deny: 'drops', allow: 'passes', deny: 'drops', default: 'drops' }

/**
 * The effects of each enforcement mode in each direction (P50). This table is the only place that knows them. In
 * selective mode, a deny rule drops inbound connections; whether it also has an effect at the source is not settled
 * (P51).
 */
const TABLE: Readonly<Record<EnforcementMode, Readonly<Record<Direction, Effects>>>> = {
  idle: { inbound: NOTHING, outbound: NOTHING },
  visibility_only: { inbound: REPORTS, outbound: REPORTS },
  selective: {
    inbound: { override_deny: 'drops', allow: 'passes', deny: 'drops', default: 'passes' },
    outbound: { override_deny: 'unsettled', allow: 'passes', deny: 'unsettled', default: 'passes' },
  },
  full: { inbound: ALL, outbound: ALL },
}

const STOPS: Readonly<Record<Effect, Answer>> = {
  passes: 'no',
  reports: 'yes',
  drops: 'yes',
  unsettled: unknown('selective_outbound'),
}

/**
 * Returns whether an end in the given mode stops a connection that is decided by a rule of the given type, or by the
 * mode's default. To stop means to drop the connection, or to report that full enforcement would drop it. An end
 * without a VEN (`none`) never stops anything.
 */
export function stops(mode: EndMode, direction: Direction, by: Deciding): Answer {
  if (mode === 'none') return 'no'
  return mode === 'unknown' ? unknown('enforcement') : STOPS[TABLE[mode][direction][by]]
}

/** Returns true if a workload in this mode drops nothing and only reports what full enforcement would drop. */
export const onlyReports = (mode: EnforcementMode, direction: Direction): boolean =>
  TABLE[mode][direction].default === 'reports'

/** Returns true if a workload in this mode reports a connection that no rule allows as `potentially_blocked` (P52). */
export const reportsWithoutRule = (mode: string | null): boolean => mode === 'visibility_only' || mode === 'selective'

/** Returns true if a workload in this mode enforces deny rules, but lets a connection pass if no rule matches it. */
export const passesByDefault = (mode: string | null): boolean =>
  isMode(mode) && TABLE[mode].inbound.default === 'passes' && TABLE[mode].inbound.deny === 'drops'

/** Returns true if an end has a VEN but its mode is not known. */
export const isModeUntold = (mode: string | null): boolean => mode !== null && !isMode(mode)

/**
 * Returns true if the decision "allowed", recorded between hosts in these modes, may mean only that no deny rule
 * matched (P52). It may if no host requires an allow rule, and at least one host is in an unknown mode or lets
 * connections pass by default. A host that is idle or has no VEN (null) requires no allow rule.
 */
export const mayPassByDefault = (...modes: readonly (string | null)[]): boolean =>
  modes.some((mode) => passesByDefault(mode) || isModeUntold(mode)) && !modes.some(allowsByRule)

import { allowsByRule, isMode, type EndMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { RuleType } from './rule-type.js'
import { unknown, type Answer } from './three-valued.js'

/** The direction of a connection as seen from one end: outbound at the source, inbound at the destination. */
export type Direction = 'inbound' | 'outbound'

/**
 * The cause of a decision about a connection at one end: the type of the rule that decided, or the mode's default if no
 * rule matches.
 */
export type Deciding = RuleType | 'default'

/**
 * The effect of a source or destination on a connection: it lets the connection pass, drops it, or lets it pass and
 * reports that full enforcement would drop it. `unsettled` means that documents about the PCE contradict each other.
 */
type Effect = 'passes' | 'reports' | 'drops' | 'unsettled'
type Effects = Readonly<Record<Deciding, Effect>>

const NOTHING: Effects = { override_deny: 'passes', allow: 'passes', deny: 'passes', default: 'passes' }
const REPORTS: Effects = { override_deny: 'reports', allow: 'passes', deny: 'reports', default: 'reports' }
const ALL: Effects = { override_deny: 'drops', allow: 'passes', deny: 'drops', default: 'drops' }

/**
 * The effects of each enforcement mode in each direction (P50). All decisions use this table, and no other code knows
 * these effects. A deny rule in selective mode drops inbound connections. Whether it also has an effect at the source
 * is not settled (P51).
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
 * Returns whether a source or destination in the given mode stops a connection about which a rule of the given type, or
 * the mode's default, decides. To stop means to drop the connection, or to report that full enforcement would drop it.
 * Without a VEN (`none`), nothing is ever stopped.
 */
export function stops(mode: EndMode, direction: Direction, by: Deciding): Answer {
  if (mode === 'none') return 'no'
  return mode === 'unknown' ? unknown('enforcement') : STOPS[TABLE[mode][direction][by]]
}

/**
 * Returns true if a workload in this mode drops nothing and only reports the connections that full enforcement would
 * drop.
 */
export const onlyReports = (mode: EnforcementMode, direction: Direction): boolean =>
  TABLE[mode][direction].default === 'reports'

/** Returns true if a workload in this mode reports a connection that no rule allows as `potentially_blocked` (P52). */
export const reportsWithoutRule = (mode: string | null): boolean => mode === 'visibility_only' || mode === 'selective'

/** Returns true if a workload in this mode enforces deny rules, but lets a connection pass if no rule matches it. */
export const passesByDefault = (mode: string | null): boolean =>
  isMode(mode) && TABLE[mode].inbound.default === 'passes' && TABLE[mode].inbound.deny === 'drops'

/** Returns true if a source or destination has a VEN, but its mode is not known. */
export const isModeUntold = (mode: string | null): boolean => mode !== null && !isMode(mode)

/**
 * Returns true if the recorded decision "allowed" on a connection between hosts in these modes may mean only that no
 * deny rule matched (P52). This is so if no host requires an allow rule, and at least one host is in an unknown mode or
 * lets connections pass by default. A host that is idle or has no VEN (null) requires no allow rule.
 */
export const mayPassByDefault = (...modes: readonly (string | null)[]): boolean =>
  modes.some((mode) => passesByDefault(mode) || isModeUntold(mode)) && !modes.some(allowsByRule)

/**
 * The facts about an enforcement mode of a workload (P50, P52). All types, lists and functions for modes are derived
 * from one table of these facts, so that the compiler finds every place that has to deal with a new mode.
 */
interface ModeFacts {
  /**
   * The rank of the mode by how much traffic it drops. A mode drops everything that the modes with lower ranks drop.
   */
  drops: number
  /** True if, in this mode, the PCE reports only those flows as allowed that an allow rule permits. */
  allowsByRule: boolean
  /** An explanation of the mode for people. */
  meaning: string
}

const TABLE = {
  idle: {
    drops: 0,
    allowsByRule: false,
    meaning: 'idle enforces nothing, and VENs report little of the traffic.',
  },
  visibility_only: {
    drops: 0,
    allowsByRule: true,
    meaning: 'visibility_only enforces nothing: what policy would block is only reported.',
  },
  selective: {
    drops: 1,
    allowsByRule: false,
    meaning: 'selective blocks only what a deny rule names; what no rule allows still passes.',
  },
  full: { drops: 2, allowsByRule: true, meaning: 'full blocks whatever no rule allows, in and out.' },
} as const satisfies Record<string, ModeFacts>

/** The enforcement mode of a workload: what its VEN does with traffic. */
export type EnforcementMode = keyof typeof TABLE

/**
 * The enforcement mode of the source or destination of a connection: `none` if it has no VEN of this PCE, `unknown` if
 * the PCE does not report its mode.
 */
export type EndMode = EnforcementMode | 'none' | 'unknown'

const FACTS: Readonly<Record<EnforcementMode, ModeFacts>> = TABLE

/** All modes, in the order in which a workload goes through them during a roll-out. */
export const ENFORCEMENT_MODES = Object.keys(TABLE) as EnforcementMode[] as [EnforcementMode, ...EnforcementMode[]]

/** Returns true if the string is an enforcement mode of the PCE. */
export function isMode(word: string | null | undefined): word is EnforcementMode {
  return word != null && Object.hasOwn(TABLE, word)
}

/** Explains what a mode enforces, in a sentence. */
export function meaningOf(mode: EnforcementMode): string {
  return FACTS[mode].meaning
}

/** Returns the rank of a mode by how much traffic it drops. */
export function dropsOf(mode: EnforcementMode): number {
  return FACTS[mode].drops
}

/** Returns true if a workload in this mode drops any traffic. */
export function isEnforcing(mode: string | null | undefined): boolean {
  return isMode(mode) && FACTS[mode].drops > 0
}

/** Returns true if, in this mode, the PCE reports only those flows as allowed that an allow rule permits. */
export function allowsByRule(mode: string | null | undefined): boolean {
  return isMode(mode) && FACTS[mode].allowsByRule
}

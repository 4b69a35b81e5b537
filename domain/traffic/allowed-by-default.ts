/** Modes in which a workload lets nothing pass as allowed that no allow rule permits. */
const JUDGED_BY_RULES: readonly (string | null)[] = ['visibility_only', 'full']

/**
 * Whether "allowed" between ends in these modes may only mean that no deny rule matched: an end is in selective mode and the
 * other, idle or without an agent (null) as it may be, asks for no allow rule either.
 */
export const mayBeAllowedByDefault = (...modes: readonly (string | null)[]): boolean =>
  modes.includes('selective') && !modes.some((mode) => JUDGED_BY_RULES.includes(mode))

import type { TouchedGuardrail } from './guardrails.js'

/**
 * Returns true if the approval of two persons covers a guardrail that a call, or one of its requests, touches. A freeze
 * must be the same one: it has the same end or, if no end is known, the same window. The number of workloads must not
 * exceed the number that the persons were shown; if that number was not known, their approval covers any number.
 */
export const isOverridden = (overrides: readonly TouchedGuardrail[], touched: TouchedGuardrail): boolean =>
  overrides.some((one) => {
    if (one.guardrail !== touched.guardrail) return false
    if (one.guardrail === 'frozen')
      return one.frozen_until === touched.frozen_until && (one.frozen_until !== null || one.window === touched.window)
    const { workloads_affected: most = null } = one
    const { workloads_affected: affected = null } = touched
    return most === null || (affected !== null && affected <= most)
  })

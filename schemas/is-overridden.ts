import type { TouchedGuardrail } from './guardrails.js'

/**
 * Returns true if what two persons have approved covers a guardrail that a call, or one of its requests, touches: the same
 * freeze, which is the one with the same end, and no more workloads than they were shown. Who approved a number that is
 * not known has approved any.
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

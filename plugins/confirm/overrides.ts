import { isOverridden } from '../../schemas/is-overridden.js'
import type { ApprovalRequest } from '../../schemas/approvals.js'
import type { CallToConfirm } from '../../schemas/confirmations.js'
import type { TouchedGuardrail } from '../../schemas/guardrails.js'

/** Returns the guardrails that are overridden when people approve the request. */
export const overridesOf = ({ guardrails = [], persons }: Pick<ApprovalRequest, 'guardrails' | 'persons'>) =>
  persons === 2 ? guardrails.filter((one) => one.needs_two_persons) : []

/** Returns true if an approval of the request is enough for a call that touches these guardrails now. */
export const isEnough = (
  request: ApprovalRequest,
  { guardrails = [], persons }: Pick<CallToConfirm, 'guardrails' | 'persons'>,
): boolean => {
  const needed: readonly TouchedGuardrail[] = persons === 2 ? guardrails.filter((one) => one.needs_two_persons) : []
  return needed.every((one) => isOverridden(overridesOf(request), one))
}

import type { PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ToolError } from '../../schemas/errors.js'
import type { Gate } from './admit-call.js'
import { planCall } from './plan-call.js'

/**
 * Returns the refusal of requests that a guardrail forbids, with facts about it in its details; null if all are allowed.
 */
export type RefuseByGuardrails = (
  pce: PceClient,
  requests: readonly PlannedRequest[],
  signal: AbortSignal,
) => Promise<ToolError | null>

/**
 * Creates the gate that checks the guardrails of the operator, which hold for every caller: before the first write, for a
 * dry run as for the call that it stands for, and again when a confirmed call is repeated, because it comes before the
 * gate of the confirmation. The requests are checked once more when they are sent (D279). A tool that cannot list its
 * requests is only checked then.
 */
export const guardrailGate = (refuse: RefuseByGuardrails): Gate => ({
  name: 'guardrails',
  needs: 'arguments',
  onlyPce: true,
  async check(subject) {
    const { tool, context } = subject
    const { pce } = context
    if (tool.effect === 'read' || tool.scope === 'own' || pce === null) return
    const requests = await planCall(subject)
    const refusal = requests === undefined ? null : await refuse(pce, requests, context.signal)
    if (refusal === null) return
    const { object, rule, ...facts } = refusal.details as { object?: { kind: string; href?: string }; rule?: string }
    const { kind, href } = object ?? {}
    subject.note({
      guardrail: {
        ...(kind !== undefined && { kind }),
        ...(href !== undefined && { href }),
        ...(rule && { rule }),
        ...facts,
      },
    })
    throw refusal
  },
})

import type { PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ToolError } from '../../schemas/errors.js'
import type { TouchedGuardrail } from '../../schemas/guardrails.js'
import type { Gate } from './admit-call.js'
import { planCall } from './plan-call.js'

/** Judges requests by the guardrails. */
export type JudgeByGuardrails = (
  pce: PceClient,
  requests: readonly PlannedRequest[],
  signal: AbortSignal,
) => Promise<{
  /** The refusal that nobody may override, with facts about it in its details; null if there is none. */
  refusal: ToolError | null
  touched: readonly { fact: TouchedGuardrail }[]
}>

/**
 * Creates the gate that checks the guardrails of the operator, which hold for every caller: before the first write, for a
 * dry run as for the call that it stands for, and again when a confirmed call is repeated, because it comes before the
 * gate of the confirmation. The requests are checked once more when they are sent (D279). A tool that cannot list its
 * requests is only checked then.
 *
 * A call that two persons may approve in spite of a guardrail passes, and has to be confirmed by them (D293). A dry run
 * of it only shows that.
 */
export const guardrailGate = (judge: JudgeByGuardrails): Gate => ({
  name: 'guardrails',
  needs: 'arguments',
  onlyPce: true,
  async check(subject) {
    const { tool, context, args } = subject
    const { pce } = context
    if (tool.effect === 'read' || tool.scope === 'own' || pce === null) return
    const requests = await planCall(subject)
    if (requests === undefined) return
    const { refusal, touched } = await judge(pce, requests, context.signal)
    if (refusal === null) {
      const guardrails = touched.map(({ fact }) => fact)
      const needsTwo = args['dry_run'] !== true && guardrails.some((one) => one.needs_two_persons)
      subject.touch(guardrails, needsTwo)
      return
    }
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

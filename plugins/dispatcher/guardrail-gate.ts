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
  /** The refusal that nobody can override, with its facts in the details; null if there is none. */
  refusal: ToolError | null
  touched: readonly { fact: TouchedGuardrail }[]
}>

/**
 * Creates the gate that checks the guardrails of the operator, which apply to every caller. It checks a call before its
 * first write, a dry run in the same way as the real call, and a confirmed call again when it is repeated, because this
 * gate comes before the confirmation gate. Each request is checked once more when it is sent (D279); for a tool that
 * cannot list its requests, this is the only check.
 *
 * If two persons may override a guardrail, the call passes this gate but needs their confirmation (D293). A dry run
 * only reports that.
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

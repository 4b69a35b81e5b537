import type { PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { AuditFacts } from '../../schemas/audit.js'
import { refuseReading } from '../../schemas/refuse-reading.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import type { AnyTool } from '../../tools/define.js'
import type { Gate } from './admit-call.js'
import { planCall } from './plan-call.js'

/** The functions with which the gate checks scopes. */
export interface ScopeJudgement {
  /** Describes the scopes for people, with one string for each scope. */
  readonly say: (scopes: CallerScopes) => string[]
  /**
   * Returns an error for the first request that would change an object outside the scopes, or null if all requests are
   * inside. The error's details contain the object, the condition that it does not meet, and the scopes.
   */
  readonly refuse: (
    pce: PceClient,
    scopes: CallerScopes,
    requests: readonly PlannedRequest[],
    signal: AbortSignal,
  ) => Promise<ToolError | null>
  /**
   * Returns a refusal in a form that its caller may see. If the caller's reading is limited, it says nothing about
   * objects outside.
   */
  readonly hide: (refusal: ToolError, scopes: CallerScopes) => ToolError
}

/**
 * Creates the gate that checks a call against the caller's scopes before its first write: every request that the call
 * would send may change only objects inside the scopes. A dry run is refused in the same cases as the call that it
 * stands for. Each request is checked again when it is sent, by the caller's PCE client, so that a tool whose plan is
 * incomplete cannot write outside the scopes either (D278). A caller whose reading is limited may call only tools that
 * limit their answers (D290).
 */
export const scopeGate = ({ say, refuse, hide }: ScopeJudgement): Gate => ({
  name: 'scope',
  needs: 'arguments',
  onlyPce: true,
  async check(subject) {
    const { tool, context, callerContext } = subject
    const { scopes } = callerContext.caller
    const { pce } = context
    if (scopes?.readsOnly !== undefined) refuseUnlimited(tool, scopes.readsOnly, (facts) => subject.note(facts))
    if (scopes === undefined || scopes.everything || tool.effect === 'read' || tool.scope === 'own' || pce === null)
      return
    const said = say(scopes)
    const whole = (message: string) => new ToolError('out_of_scope', message, { rule: 'no_scope', scopes: said })
    const hasNone = scopes.grants.length === 0 && scopes.create.length === 0
    const refusal = hasNone
      ? whole('None of your groups has a scope on this server, so you may only read.')
      : tool.scope !== 'objects' || tool.plan === undefined
        ? whole(`${tool.name} writes to the whole organisation: it takes the scope "*".`)
        : await refuse(pce, scopes, await planCall(subject)!, context.signal)
    if (refusal === null) return
    const { object, rule } = refusal.details as { object?: { kind: string; href?: string }; rule?: string }
    subject.note({
      scopes: said,
      ...(object !== undefined && {
        outside: {
          kind: object.kind,
          ...(object.href !== undefined && { href: object.href }),
          ...(rule !== undefined && { rule }),
        },
      }),
    })
    throw hide(refusal, scopes)
  },
})

/**
 * Refuses a tool whose answers cannot be limited to the scopes of a caller whose reading is limited, and any tool that
 * does not say how its answers are limited.
 */
function refuseUnlimited(
  { name, effect, reads, limitsReads }: AnyTool,
  scopes: readonly string[],
  note: (facts: AuditFacts) => void,
): void {
  const isLimited = limitsReads === true && (effect !== 'read' || reads === 'shown' || reads === 'judged')
  if (isLimited) return
  note({ scopes: [...scopes] })
  throw refuseReading(`${name} answers about the whole organisation, and you read only inside of your scopes.`, scopes)
}

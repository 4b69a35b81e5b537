import type { PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import type { Gate } from './admit-call.js'
import { planCall } from './plan-call.js'

/** What the gate must know about scopes. */
export interface ScopeJudgement {
  /** Returns the scopes for people, one text for each. */
  readonly say: (scopes: CallerScopes) => string[]
  /**
   * Returns the error of the first request that would change an object outside of the scopes, with the object, the
   * condition it does not meet and the scopes in its details; null if all objects are inside.
   */
  readonly refuse: (
    pce: PceClient,
    scopes: CallerScopes,
    requests: readonly PlannedRequest[],
    signal: AbortSignal,
  ) => Promise<ToolError | null>
}

/**
 * Creates the gate that checks the scopes of the caller before the first write: every request that the call would send
 * has to change only objects inside. A dry run is refused like the call that it stands for. The requests are checked
 * once more when they are sent, by the client that the context of a limited caller has, so that a tool whose plan misses
 * a request cannot write outside (D278).
 */
export const scopeGate = ({ say, refuse }: ScopeJudgement): Gate => ({
  name: 'scope',
  needs: 'arguments',
  onlyPce: true,
  async check(subject) {
    const { tool, context, callerContext } = subject
    const { scopes } = callerContext.caller
    const { pce } = context
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
    throw refusal
  },
})

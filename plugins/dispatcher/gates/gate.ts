import type { AnyTool } from '../../../tools/define.js'
import type { ToolContext } from '../../../domain/call.js'
import type { AuditFacts } from '../../../schemas/audit.js'
import type { Approval } from '../../../schemas/confirmations.js'
import type { Session, ToolCall } from '../session.js'

export interface GateSubject {
  tool: AnyTool
  call: ToolCall
  session: Session
  /** Adds to the audit entries of this call, whether it is admitted or not. */
  note(facts: AuditFacts): void
}

/** A call whose arguments are known to be valid. */
export interface ValidSubject extends GateSubject {
  /** With the schema's defaults filled in. */
  args: Record<string, unknown>
  /** For what a gate has to look up; aborted as soon as the client is gone. */
  context: ToolContext
  /** Hands on to the handler what was approved (`ToolContext.approved`). */
  approve(approval: Approval): void
}

/** A condition that needs no more than the tool and who calls it. `check` throws ToolError. */
export interface CallerGate {
  readonly name: string
  readonly needs: 'call'
  check(subject: Pick<GateSubject, 'tool' | 'session'>): void
}

/** One condition of a call. The composition lists the gates of its mode in order. `check` throws ToolError to refuse the call. */
export type Gate =
  | { readonly name: string; readonly needs: 'call'; check(subject: GateSubject): void | Promise<void> }
  /** Asked once the arguments are known to be valid, so that a bad call spends nothing. */
  | {
      readonly name: string
      readonly needs: 'arguments'
      /** Which tools it is asked about; all of them where it does not say. */
      concerns?(tool: AnyTool): boolean
      check(subject: ValidSubject): void | Promise<void>
    }

import type { AnyTool } from '../../../tools/define.js'
import type { Session, ToolCall } from '../session.js'

export interface GateSubject {
  tool: AnyTool
  call: ToolCall
  session: Session
}

/** One condition of a call. The composition lists the gates of its mode in order. */
export interface Gate {
  readonly name: string
  /** `call`: asked first. `arguments`: asked once the arguments are known to be valid, so that a bad call spends nothing. */
  readonly needs: 'call' | 'arguments'
  /** Throws ToolError to refuse the call. */
  check(subject: GateSubject): void | Promise<void>
}

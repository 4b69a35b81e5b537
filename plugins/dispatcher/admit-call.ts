import levenshtein from 'fastest-levenshtein'
import { readEscapes } from '../../domain/text/escape-text.js'
import type { Approval } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'
import type { ToolContext } from '../../domain/call.js'
import type { Gate, GateSubject } from './gates/gate.js'

/** Why a call may not run, with the name of the gate that said so. */
export class RefusedCall extends Error {
  override readonly name = 'RefusedCall'
  constructor(
    readonly gate: string,
    readonly thrown: unknown,
  ) {
    super('refused')
  }
}

/** What an admitted call runs with. */
export interface Admitted {
  args: Record<string, unknown>
  context: ToolContext
}

/**
 * Asks the gates in their order, with the check of the arguments between those that need none and those that do. An escape
 * in them stands for its character from here on; gates that compare calls look at what the client sent.
 * Returns the arguments with their defaults and the context of the handler; throws RefusedCall.
 */
export async function admitCall(
  subject: GateSubject,
  context: ToolContext,
  gates: readonly Gate[],
  validateArguments: (tool: AnyTool, args: Record<string, unknown>) => Record<string, unknown>,
): Promise<Admitted> {
  let asked = ''
  let approved: Approval | undefined
  try {
    for (const gate of gates) {
      if (gate.needs !== 'call') continue
      asked = gate.name
      const checking = gate.check(subject)
      // Most have nothing to wait for, and every call passes all of them.
      if (checking !== undefined) await checking
    }
    asked = 'arguments'
    const args = validateArguments(subject.tool, readEscapes(subject.call.arguments))
    const approve = (approval: Approval) => (approved = approval)
    for (const gate of gates) {
      if (gate.needs !== 'arguments' || gate.concerns?.(subject.tool) === false) continue
      asked = gate.name
      await gate.check({ ...subject, args, context: { ...context, signal: context.beforeWriting }, approve })
    }
    return { args, context: approved === undefined ? context : { ...context, approved } }
  } catch (thrown) {
    throw new RefusedCall(asked, thrown)
  }
}

/** The refusal of a name that is no tool's, with the nearest one that is. */
export function refuseUnknown(name: string, known: readonly string[]): RefusedCall {
  const shown = name.slice(0, 128)
  const nearest = known.length === 0 ? undefined : levenshtein.closest(shown, known)
  const meant = nearest === undefined ? '' : ` Did you mean '${nearest}'?`
  return new RefusedCall('lookup', new ToolError('unknown_tool', `There is no tool '${shown}'.${meant}`))
}

import type { AuditFacts } from '../../schemas/audit.js'
import type { Approval } from '../../schemas/confirmations.js'
import { type ErrorDetails, ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../../domain/call.js'
import { nearNames } from '../../domain/text/compare-texts.js'
import type { AnyTool } from '../../tools/define.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { AuditLog } from './audit-log.js'
import type { CallerContext, ToolCall } from './call.js'

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
 * Asks the gates in their order (T2), with the check of the arguments between those that need none and those that do. Gates that
 * compare calls look at what the client sent.
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
    const args = validateArguments(subject.tool, subject.call.arguments)
    const approve = (approval: Approval) => (approved = approval)
    for (const gate of gates) {
      if (gate.needs !== 'arguments' || !concerns(gate, subject.tool)) continue
      asked = gate.name
      await gate.check({ ...subject, args, context: { ...context, signal: context.beforeWriting }, approve })
    }
    return { args, context: approved === undefined ? context : { ...context, approved } }
  } catch (thrown) {
    throw new RefusedCall(asked, thrown)
  }
}

const concerns = ({ onlyConfirmed, onlyPce }: Gate & { needs: 'arguments' }, tool: AnyTool): boolean =>
  (onlyConfirmed !== true || tool.requiresConfirm) && (onlyPce !== true || tool.requiresPce)

/** First words of tool names, and what else callers say for them. */
const VERBS: Record<string, readonly string[]> = {
  get: ['list', 'show', 'find', 'search', 'fetch', 'read', 'query', 'describe', 'view'],
  create: ['add', 'new', 'make'],
  update: ['change', 'edit', 'modify', 'set', 'patch'],
  delete: ['remove', 'drop'],
}

/** The tool that was meant, if a near one is known: the same thing is done with something of a similar name. */
export function nearestTool(name: string, known: readonly string[]): string | undefined {
  const words = name.replaceAll(/([a-z])(?=[A-Z])|_/g, '$1-').toLowerCase()
  const [first = '', ...rest] = words.split('-')
  const verb = first in VERBS ? first : Object.keys(VERBS).find((one) => VERBS[one]?.includes(first))
  if (verb === undefined) return nearNames(words, known, 1)[0]
  const nouns = known.flatMap((tool) => (tool.startsWith(`${verb}-`) ? tool.slice(verb.length + 1) : []))
  const [noun] = nearNames(rest.join('-'), nouns, 1)
  return noun === undefined ? undefined : `${verb}-${noun}`
}

/** The refusal of an unknown tool name, with a known one that is near. */
export function refuseUnknown(name: string, known: readonly string[]): RefusedCall {
  const shown = name.slice(0, 128)
  const nearest = nearestTool(shown, known)
  const meant = nearest === undefined ? '' : ` Did you mean '${nearest}'?`
  return new RefusedCall('lookup', new ToolError('unknown_tool', `There is no tool '${shown}'.${meant}`))
}

interface GateSubject {
  tool: AnyTool
  call: ToolCall
  callerContext: CallerContext
  /** Adds to the audit entries of this call, whether it is admitted or not. */
  note(facts: AuditFacts): void
}

/** A call whose arguments are known to be valid. */
export interface ValidSubject extends GateSubject {
  /** With the schema's defaults filled in. */
  args: Record<string, unknown>
  /** For what a gate has to look up; aborted as soon as the client has gone. */
  context: ToolContext
  /** Hands on to the handler what was approved (`ToolContext.approved`). */
  approve(approval: Approval): void
}

/** A condition that needs only the tool and the caller. `check` throws ToolError. */
export interface CallerGate {
  readonly name: string
  readonly needs: 'call'
  check(subject: Pick<GateSubject, 'tool' | 'callerContext'>): void
}

/** One condition of a call. The composition lists the gates of its mode in order. `check` throws ToolError to refuse the call. */
export type Gate =
  | { readonly name: string; readonly needs: 'call'; check(subject: GateSubject): void | Promise<void> }
  /** Asked once the arguments are known to be valid, so that a bad call spends nothing. */
  | {
      readonly name: string
      readonly needs: 'arguments'
      /** It is asked only about tools that ask for confirmation. */
      readonly onlyConfirmed?: boolean
      /** It is asked only about tools that work on a PCE. */
      readonly onlyPce?: boolean
      check(subject: ValidSubject): void | Promise<void>
    }

/**
 * The role allowlist of the tool (S13). Throws `forbidden_no_role`, in the words of the caller's context where it has some, for a caller
 * without a role and `forbidden {allowed_roles}` for one whose role is not on the list.
 */
export const roleGate: CallerGate = {
  name: 'role',
  needs: 'call',
  check({ tool, callerContext }) {
    const { role } = callerContext.caller
    if (role === null)
      throw callerContext.roleProblem ?? new ToolError('forbidden_no_role', 'Your groups give you no role here.')
    if (!tool.roles.includes(role)) {
      throw new ToolError('forbidden', `${tool.name} is for ${tool.roles.join(', ')}; your role is ${role}.`, {
        allowed_roles: [...tool.roles],
      })
    }
  },
}

/**
 * The PCE-presence gate. Throws `no_pce_credentials` when the tool works on a PCE and the caller has none, or what the caller's context
 * says of the PCE instead; `hint` tells how one is set up in this mode, `details` stand beside the code.
 */
export const pceGate = (hint: string, details: ErrorDetails = {}): CallerGate => ({
  name: 'pce',
  needs: 'call',
  check({ tool, callerContext }) {
    if (!tool.requiresPce || callerContext.pce !== null) return
    if (callerContext.pceProblem !== undefined) throw callerContext.pceProblem
    const message = `${tool.name} needs a PCE, and there are no PCE credentials.`
    throw new ToolError('no_pce_credentials', message, details, { hint })
  },
})

/** No call goes to a place that has not shown itself to be a PCE (D84). Throws what `CallerContext.provePce` rejects with. */
export const provenGate: Gate = {
  name: 'proof',
  needs: 'arguments',
  onlyPce: true,
  check: ({ callerContext, context }) => callerContext.provePce?.(context.signal),
}

/**
 * Refuses changes while their decision could not be written anyway (D25), with `audit_unavailable`. It comes before the
 * confirm gate, so that such a call spends no token. A log that fails only at the entry itself is noticed there.
 */
export const auditGate = (audit: AuditLog | null): Gate => ({
  name: 'audit',
  needs: 'call',
  check: ({ tool }) => (tool.effect === 'read' ? undefined : checkWritable(audit)),
})

/**
 * Refuses changes with `state_unavailable` while the store of this server does not answer: neither its limits nor what people were shown
 * can be relied on then. `findProblem` knows without asking.
 */
export const stateGate = (findProblem: () => Error | null): Gate => ({
  name: 'state',
  needs: 'call',
  check({ tool }) {
    const cause = tool.effect === 'read' ? null : findProblem()
    if (cause !== null) throw new ToolError('state_unavailable', ERROR_TABLE.state_unavailable.message, {}, { cause })
  },
})

async function checkWritable(audit: AuditLog | null): Promise<void> {
  try {
    await audit?.check()
  } catch (cause) {
    throw new ToolError('audit_unavailable', ERROR_TABLE.audit_unavailable.message, {}, { cause })
  }
}

import type { AuditFacts } from '../../schemas/audit.js'
import type { Approval } from '../../schemas/confirmations.js'
import { type ErrorDetails, ToolError } from '../../schemas/errors.js'
import type { TouchedGuardrail } from '../../schemas/guardrails.js'
import type { ToolContext } from '../../domain/call.js'
import { nearNames } from '../../domain/text/compare-texts.js'
import { quote } from '../../domain/text/escape-text.js'
import type { AnyTool } from '../../tools/define.js'
import type { ToolFacts } from '../../tools/listed-tool.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { AuditLog } from './audit-log.js'
import type { CallerContext, ToolCall } from './call.js'

/** The refusal of a call: which gate refused it, and the error that this gate threw. */
export class RefusedCall extends Error {
  override readonly name = 'RefusedCall'
  constructor(
    readonly gate: string,
    readonly thrown: unknown,
  ) {
    super('refused')
  }
}

/** The arguments and the context that the handler of an admitted call receives. */
export interface Admitted {
  args: Record<string, unknown>
  context: ToolContext
  /** The guardrails that the call touches. */
  guardrails: readonly TouchedGuardrail[]
}

/**
 * Decides whether a call may run, in this order (T2): first the gates that do not need valid arguments, then the
 * validation of the arguments, then the other gates. A gate that compares this call with an earlier one uses the
 * arguments as the client sent them. Returns the arguments with their defaults filled in, and the context for the
 * handler. Throws RefusedCall.
 */
export async function admitCall(
  subject: GateSubject & { tool: AnyTool },
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
      // The result is awaited only if it is a promise: most gates return a result directly, and every call passes all
      // gates.
      if (checking !== undefined) await checking
    }
    asked = 'arguments'
    const args = validateArguments(subject.tool, subject.call.arguments)
    const approve = (approval: Approval) => (approved = approval)
    let found: Pick<ValidSubject, 'guardrails' | 'persons'> = { guardrails: [] }
    const touch: ValidSubject['touch'] = (guardrails, needsTwo) =>
      (found = { guardrails, ...(needsTwo && { persons: 2 }) })
    for (const gate of gates) {
      if (gate.needs !== 'arguments' || !concerns(gate, subject.tool, found.persons)) continue
      asked = gate.name
      const inner = { ...context, signal: context.beforeWriting }
      await gate.check({ ...subject, args, context: inner, approve, touch, ...found })
    }
    const { guardrails } = found
    const inner = approved === undefined ? context : { ...context, approved }
    return { args, context: args['dry_run'] === true ? leaveRoom(inner, guardrails) : inner, guardrails }
  } catch (thrown) {
    throw new RefusedCall(asked, thrown)
  }
}

/** Reserves space in the answer of a dry run for the guardrails that are added to it later. */
function leaveRoom(context: ToolContext, guardrails: readonly TouchedGuardrail[]): ToolContext {
  if (guardrails.length === 0) return context
  const { responseBudgetBytes: budget } = context.limits
  const taken = Buffer.byteLength(JSON.stringify({ guardrails }))
  return { ...context, limits: { ...context.limits, responseBudgetBytes: budget - taken } }
}

const concerns = (
  { onlyConfirmed, onlyPce }: Gate & { needs: 'arguments' },
  tool: ToolFacts,
  persons: 2 | undefined,
): boolean =>
  (onlyConfirmed !== true || tool.requiresConfirm || persons === 2) && (onlyPce !== true || tool.requiresPce)

/** The verbs with which tool names begin. Each is mapped to other verbs that callers write instead. */
const VERBS: Record<string, readonly string[]> = {
  get: ['list', 'show', 'find', 'search', 'fetch', 'read', 'query', 'describe', 'view'],
  create: ['add', 'new', 'make'],
  update: ['change', 'edit', 'modify', 'set', 'patch'],
  delete: ['remove', 'drop'],
}

/**
 * Returns the name of the tool that a caller who wrote `name` probably meant. The verb of this tool has the same
 * meaning as the verb in `name`, and the other words are similar. If `name` begins with no known verb, the whole names
 * are compared. Returns undefined if no name is similar.
 */
export function nearestTool(name: string, known: readonly string[]): string | undefined {
  const words = name.replaceAll(/([a-z])(?=[A-Z])|_/g, '$1-').toLowerCase()
  const [first = '', ...rest] = words.split('-')
  const verb = first in VERBS ? first : Object.keys(VERBS).find((one) => VERBS[one]?.includes(first))
  if (verb === undefined) return nearNames(words, known, 1)[0]
  const nouns = known.flatMap((tool) => (tool.startsWith(`${verb}-`) ? tool.slice(verb.length + 1) : []))
  const [noun] = nearNames(rest.join('-'), nouns, 1)
  return noun === undefined ? undefined : `${verb}-${noun}`
}

/** Builds the refusal of an unknown tool name, with a suggestion if a known name is similar. */
export function refuseUnknown(name: string, known: readonly string[]): RefusedCall {
  const shown = name.slice(0, 128)
  const nearest = nearestTool(shown, known)
  const meant = nearest === undefined ? '' : ` Did you mean ${quote(nearest)}?`
  return new RefusedCall('lookup', new ToolError('unknown_tool', `There is no tool ${quote(shown)}.${meant}`))
}

interface GateSubject {
  tool: ToolFacts
  call: ToolCall
  callerContext: CallerContext
  /** Adds facts to the audit entries of the call, which are recorded even if the call is refused. */
  note(facts: AuditFacts): void
}

/** A call whose arguments have been validated. */
export interface ValidSubject extends GateSubject {
  tool: AnyTool
  /** The arguments, including the defaults from the schema. */
  args: Record<string, unknown>
  /** The context in which gates look things up. Its signal aborts as soon as the client has left. */
  context: ToolContext
  /** Passes an approval on to the handler (`ToolContext.approved`). */
  approve(approval: Approval): void
  /** The guardrails that the call touches, as found by the gates so far. */
  guardrails: readonly TouchedGuardrail[]
  /** Present if two persons have to approve the call, even if its tool needs no confirmation. */
  persons?: 2
  /**
   * Records the guardrails that the call touches, and whether two persons have to approve it, for the gates that
   * follow.
   */
  touch(guardrails: readonly TouchedGuardrail[], needsTwo: boolean): void
}

/** A gate whose decision depends only on the tool and the caller. `check` throws ToolError if the caller is refused. */
export interface CallerGate {
  readonly name: string
  readonly needs: 'call'
  check(subject: Pick<GateSubject, 'tool' | 'callerContext'>): void
}

/**
 * A condition that a call must meet before it runs. The composition of each server mode lists its gates in order.
 * `check` throws ToolError if the call is refused.
 */
export type Gate =
  | { readonly name: string; readonly needs: 'call'; check(subject: GateSubject): void | Promise<void> }
  /**
   * A gate that runs only after the arguments have been validated, so that an invalid call neither uses up a confirm
   * token nor counts against a quota.
   */
  | {
      readonly name: string
      readonly needs: 'arguments'
      /** If true, the gate applies only to tools that require confirmation, and to calls that need two persons. */
      readonly onlyConfirmed?: boolean
      /** If true, the gate applies only to tools that work on a PCE. */
      readonly onlyPce?: boolean
      check(subject: ValidSubject): void | Promise<void>
    }

/**
 * Checks that the caller's role may call the tool (S13). If the caller has no role, throws the more specific reason
 * from the caller's context or, if there is none, `forbidden_no_role`. If the role may not call the tool, throws
 * `forbidden {allowed_roles}`.
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
 * Creates the gate for tools that work on a PCE. If the caller has no PCE, the gate throws the specific problem from
 * the caller's context or, if there is none, `no_pce_credentials`. That error contains `details`, and also `hint`,
 * which says how to set up a PCE.
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

/**
 * Refuses a call that works on a PCE if no PCE has ever answered this caller at the registered address, and none
 * answers now (D84). Throws the error of `CallerContext.provePce`.
 */
export const provenGate: Gate = {
  name: 'proof',
  needs: 'arguments',
  onlyPce: true,
  check: ({ callerContext, context }) => callerContext.provePce?.(context.signal),
}

/**
 * Creates the gate that refuses changing tools with `audit_unavailable` as long as their audit entries cannot be
 * written (D25). This gate comes before the confirm gate, so that a refused call uses up no confirm token. If the audit
 * log fails after this gate has let a call pass, the call is refused when its entry is written.
 */
export const auditGate = (audit: AuditLog | null): Gate => ({
  name: 'audit',
  needs: 'call',
  check: ({ tool }) => (tool.effect === 'read' ? undefined : checkWritable(audit)),
})

/**
 * Creates the gate that refuses changing tools with `state_unavailable` as long as the server's store does not respond,
 * because without the store, neither the rate limits nor the record of what people were shown is reliable.
 * `findProblem` answers without querying the store.
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

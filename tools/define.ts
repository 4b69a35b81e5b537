import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { PceClient } from '../pce-client/index.js'
import type { Caller, Role } from '../schemas/caller.js'
import type { Limits } from '../schemas/config.js'
import type { Approval, Binding } from '../schemas/confirmations.js'
import type { CredentialsPort } from '../schemas/credentials.js'

/** Progress of a long call. `total` only where it is known. */
export interface ProgressUpdate {
  progress: number
  total?: number
  message?: string
}

export interface ToolLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

/** What a tool may touch: ports only, so that it runs the same over stdio, HTTP and in a test. */
export interface ToolContext<RequiresPce extends boolean = boolean> {
  /** The caller's own PCE client; null for the tools that work without one. */
  readonly pce: RequiresPce extends true ? PceClient : PceClient | null
  readonly caller: Caller
  readonly requestId: string
  /** Aborted when the call is cancelled or its client is gone (reads only) or the server stops. */
  readonly signal: AbortSignal
  /**
   * Aborted when `signal` is, and for a mutating tool also when the call is cancelled or its client is gone: for the minutes it may
   * read before its first write. What has been begun is finished, so no write looks at it.
   */
  readonly beforeWriting: AbortSignal
  readonly log: ToolLog
  readonly limits: Limits
  /** Milliseconds since the epoch. */
  now(): number
  /** Never throws; a client that asked for no progress gets none. */
  progress(update: ProgressUpdate): void
  /** The caller's own PCE credentials: for the tools that manage them. */
  readonly credentials: CredentialsPort
  /**
   * What the confirmed call was shown to do, where a confirm token carried it: the tool checks it once more against what it is about
   * to do. Undefined where nothing was confirmed.
   */
  readonly approved?: Approval
  readonly server: {
    name: string
    version: string
    /** Text of CHANGELOG.md, or null where it was not shipped. */
    changelog(): Promise<string | null>
  }
}

export type Effect = 'read' | 'write' | 'destroy'

export type Area =
  | 'workloads'
  | 'containers'
  | 'labels'
  | 'ip-lists'
  | 'services'
  | 'rulesets'
  | 'traffic'
  | 'ringfence'
  | 'policy'
  | 'pce'
  | 'credentials'
  | 'server'

export interface ToolSpecCore<I extends TObject, O extends TSchema, P extends boolean> {
  /** The name on the wire: kebab-case, the same as the file's. */
  name: string
  /** A short human title; derived from the name when absent. */
  title?: string
  area: Area
  /** What the model reads. One or two sentences; what changes PCE state says so by itself (see `describe`). */
  summary: string
  /** read: no mutating request ever leaves. write: creates or changes. destroy: removes, or takes effect on enforcement. */
  effect: Effect
  /** The same call twice leaves the same state. Reads always are. */
  idempotent?: boolean
  roles: readonly Role[]
  requiresPce: P
  requiresConfirm: boolean
  input: I
  output: O
  /** Arguments that work against the simulator's estate; docs and contract tests use them. */
  example: Static<I>
  handler(args: Static<I>, ctx: ToolContext<P>): Promise<Static<O>>
  /**
   * Of a tool that asks for confirmation: what the call would do, in words for the person who decides, and facts beside it. Only
   * reads. It may fail as the handler may.
   */
  preview?(args: Static<I>, ctx: ToolContext<P>): Promise<Preview>
  /**
   * Of a tool that asks for confirmation: what the call would change, where that is not all in its arguments; null where the
   * arguments say everything. Only reads, and cheaply: it is asked again at every redemption (D21). It may fail as the handler may.
   */
  boundTo?(args: Static<I>, ctx: ToolContext<P>): Promise<Binding | null>
}

/** What a person is told before they confirm. */
export interface Preview {
  /** One or a few sentences. */
  summary: string
  /** Beside the summary in confirm_required; a few kilobytes at most. */
  details?: Record<string, unknown>
}

export type ToolSpec<I extends TObject = TObject, O extends TSchema = TSchema, P extends boolean = boolean> = Readonly<
  ToolSpecCore<I, O, P>
>

/** A tool with its argument types forgotten: what the list, the dispatcher and the transports work with. */
export interface AnyTool extends Omit<ToolSpec, 'handler' | 'example' | 'preview' | 'boundTo'> {
  readonly example: object
  handler(args: never, ctx: never): Promise<unknown>
  preview?(args: never, ctx: never): Promise<Preview>
  boundTo?(args: never, ctx: never): Promise<Binding | null>
}

/** Ties the handler's types to the schemas. Adds nothing at run time. */
export function defineTool<I extends TObject, O extends TSchema, P extends boolean>(
  spec: ToolSpec<I, O, P>,
): ToolSpec<I, O, P> {
  return spec
}

const ACRONYMS: Record<string, string> = { pce: 'PCE' }

/** Display title: the spec's own, else the words of the name, capitalised (`get-labels` → `Get Labels`). */
export function titleOf(tool: Pick<AnyTool, 'name' | 'title'>): string {
  const capitalised = (word: string) => ACRONYMS[word] ?? word.charAt(0).toUpperCase() + word.slice(1)
  return tool.title ?? tool.name.split('-').map(capitalised).join(' ')
}

/** The description clients show their model: the summary and, for tools that change state, what to expect of the call. */
export function describe(tool: Pick<AnyTool, 'summary' | 'effect' | 'requiresConfirm'>): string {
  if (tool.effect === 'read') return tool.summary
  const confirm = tool.requiresConfirm ? ' Over authenticated HTTP the first call answers confirm_required.' : ''
  return `${tool.summary} Changes PCE state; may need approval: do not retry.${confirm}`
}

/** MCP tool annotations, derived so that no tool can claim something its gate does not know. */
export function annotationsOf(tool: Pick<AnyTool, 'name' | 'title' | 'effect' | 'idempotent' | 'requiresPce'>) {
  return {
    title: titleOf(tool),
    readOnlyHint: tool.effect === 'read',
    destructiveHint: tool.effect === 'destroy',
    idempotentHint: tool.effect === 'read' || tool.idempotent === true,
    openWorldHint: tool.requiresPce,
  }
}

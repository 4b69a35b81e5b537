import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { Role } from '../schemas/caller.js'
import type { Preview, ToolContext } from '../domain/call.js'
import type { PlannedRequest } from '../schemas/dry-run.js'

export type ToolEffect = 'read' | 'write' | 'destroy'

/** The toolsets with their purposes, in the order in which operators usually need them (D122). */
export const TOOLSETS = {
  inventory: 'look up workloads, labels, IP lists, services, containers and pairing profiles',
  traffic: 'ask which flows were seen, between whom, by which process',
  analysis: 'judge readiness, coverage, compliance, infrastructure services and lateral movement',
  rules: 'look up rule sets, and write them and their rules as drafts',
  ringfence: 'write the rule set of whole applications as a draft',
  provisioning: 'compare the draft with what is enforced, and provision it',
  objects: 'create, change and delete workloads, labels, IP lists, services and container profiles',
  credentials: "register, look up and delete the caller's own PCE key",
  server: 'check the connection to the PCE, look up its events, and the changelog of this server',
  explain: 'say why a flow is allowed or blocked, find rules, and judge a change of enforcement before it is made',
  'rules-plus': 'add single rules to rule sets, retire those that are over, and look into label groups and IP lists',
  history: 'compare and restore policy versions, discard drafts, and find who changed what',
  hygiene: 'find what is unused, redundant or unlabelled, what listens, and label workloads in bulk',
  vens: 'look up VENs and judge their health',
  'vens-plus':
    'suspend, resume, unpair and upgrade VENs, request their support reports, read what keeps idle ones idle, and find stale ones',
  'traffic-plus': 'compare the traffic of two windows',
  'virtual-services': 'look up virtual services, with what they offer, where and under which labels',
  'objects-plus':
    'write label groups, virtual services and their bindings, label dimensions, pairing profiles and pairing keys',
  'inventory-plus': 'import unmanaged workloads from a table, and find workloads that are one machine',
} as const

export type Toolset = keyof typeof TOOLSETS

/** The toolsets beyond what the project's owner requested. They are not in the toolset `default` (D122). */
const BEYOND_DEFAULT: ReadonlySet<Toolset> = new Set([
  'explain',
  'rules-plus',
  'history',
  'hygiene',
  'vens',
  'vens-plus',
  'traffic-plus',
  'virtual-services',
  'inventory-plus',
  'objects-plus',
])

/**
 * Returns true if the tool is in the toolset `default`, which contains the tools that the project's owner requested.
 */
export const isInDefault = ({ toolset }: Pick<AnyTool, 'toolset'>): boolean => !BEYOND_DEFAULT.has(toolset)

/** The names of the tool functions that can be run in a worker thread. */
export type Act = 'handler' | 'preview' | 'boundTo' | 'plan'

/**
 * How a caller's scopes (MCP_SCOPES_FILE) limit a tool that changes something. `objects`: each object that it writes
 * must be inside them. `everything`: it writes to the whole organisation, so only callers with the scope "*" may call
 * it. `own`: it writes only what belongs to the caller.
 */
export type ScopeUse = 'objects' | 'everything' | 'own'

/**
 * How a tool answers a caller who may read only inside the caller's scopes (`reads` in MCP_SCOPES_FILE). `shown`: the
 * tool gets a client that returns only objects inside. `judged`: its verdicts depend on the policy, so its client also
 * returns, without names, whatever else decides about flows with an end inside. `everything`: its answer is about the
 * whole organisation and cannot be limited, so the call is refused.
 */
export type ReadUse = 'shown' | 'judged' | 'everything'

export interface ToolSpecCore<I extends TObject, O extends TSchema, P extends boolean> {
  /** Name in the protocol, in kebab-case; also the name of the tool's file. */
  name: string
  /** A short title for people; derived from the name if absent. */
  title?: string
  /**
   * A description for the model, of one or two sentences. If the tool changes PCE state, `describe` adds a note on
   * this.
   */
  summary: string
  /**
   * The effect of the tool: `read` if it sends no request that changes anything, `write` if it creates or changes
   * something, and `destroy` if it is destructive as defined by MCP.
   */
  effect: ToolEffect
  /** The toolset to which the tool belongs. */
  toolset: Toolset
  /**
   * How a caller's scopes limit the tool. It must be set for every tool that changes something, and is absent for tools
   * that only read.
   */
  scope?: ScopeUse
  /**
   * How an answer is limited for callers who read only inside of their scopes. Every tool that only reads from a PCE
   * must set it. For tools that change something, the value is always `judged`.
   */
  reads?: ReadUse
  /**
   * True if the tool's functions get a limited client for callers with limited reading (`limitReads`). Such callers may
   * not call any other tool.
   */
  limitsReads?: true
  /** True if repeating the call results in the same state. This is always true for tools that only read. */
  idempotent?: boolean
  roles: readonly Role[]
  requiresPce: P
  requiresConfirm: boolean
  /**
   * True if a call takes longer the more objects the PCE has or the more traffic there is, so that it runs in a worker
   * thread (D61). A function decides this from the arguments and from `act`, the name of the tool function that is
   * about to run.
   */
  isHeavy?: true | ((args: Static<I>, act: Act) => boolean)
  /**
   * The maximum number of requests that a call sends to the PCE. `and` describes additional requests (`one for each
   * 1,000 workloads`). Requests that poll a running query are not counted. The field is required for tools that the
   * project's owner did not request; the docs and a test use it.
   */
  pceRequests?: { readonly atMost: number; readonly and?: string }
  input: I
  output: O
  /** Arguments that work with the simulator's data; the docs and contract tests use them. */
  example: Static<I>
  handler(args: Static<I>, ctx: ToolContext<P>): Promise<Static<O>>
  /**
   * Describes, for the person who confirms the call, what it would do. It only reads, and throws the same errors as the
   * handler. If a tool does not define this function, `tools/index.ts` creates it from the dry run (D77).
   */
  preview?(args: Static<I>, ctx: ToolContext<P>): Promise<Preview>
  /**
   * Returns the value that `boundTo` would have in a preview made now, without the cost of making the whole preview. It
   * is called whenever a confirmation is redeemed (D21). It only reads, and throws the same errors as the handler.
   */
  boundTo?(args: Static<I>, ctx: ToolContext<P>): Promise<string>
  /**
   * Returns every request by which a real call would change something, in order, so that the caller's scopes can be
   * checked before the first write. It only reads, and throws the same errors as the handler. If a tool does not define
   * this function, `tools/index.ts` creates it from the dry run.
   */
  plan?(args: Static<I>, ctx: ToolContext<P>): Promise<PlannedRequest[]>
}

export type ToolSpec<I extends TObject = TObject, O extends TSchema = TSchema, P extends boolean = boolean> = Readonly<
  ToolSpecCore<I, O, P>
>

/** A tool without the types of its arguments, as the list of tools, the dispatcher and the transports use it. */
export interface AnyTool extends Omit<ToolSpec, 'handler' | 'example' | 'preview' | 'boundTo' | 'plan' | 'isHeavy'> {
  readonly example: object
  readonly isHeavy?: true | ((args: never, act: Act) => boolean)
  handler(args: never, ctx: never): Promise<unknown>
  preview?(args: never, ctx: never): Promise<Preview>
  boundTo?(args: never, ctx: never): Promise<string>
  plan?(args: never, ctx: never): Promise<PlannedRequest[]>
}

/** Returns the tool unchanged. It exists only so that the types of the handler follow from the schemas. */
export function defineTool<I extends TObject, O extends TSchema, P extends boolean>(
  spec: ToolSpec<I, O, P>,
): ToolSpec<I, O, P> {
  return spec
}

const ACRONYMS: Record<string, string> = { pce: 'PCE', ven: 'VEN', vens: 'VENs' }

/**
 * Returns the title for display: the title that the tool defines, or otherwise its name as capitalised words
 * (`get-labels` → `Get Labels`).
 */
export function titleOf(tool: Pick<AnyTool, 'name' | 'title'>): string {
  const capitalised = (word: string) => ACRONYMS[word] ?? word.charAt(0).toUpperCase() + word.slice(1)
  return tool.title ?? tool.name.split('-').map(capitalised).join(' ')
}

/** Returns the description for clients: the summary and, for tools that change state, a note on what the call does. */
export function describe(tool: Pick<AnyTool, 'summary' | 'effect' | 'requiresConfirm'>): string {
  if (tool.effect === 'read') return tool.summary
  const confirm = tool.requiresConfirm ? ' May need approval.' : ''
  return `${tool.summary} Don't retry.${confirm}`
}

/**
 * Returns the MCP annotations of a tool. They are derived from its specification, so that they agree with what the
 * server enforces.
 */
export function annotationsOf(tool: Pick<AnyTool, 'name' | 'title' | 'effect' | 'idempotent' | 'requiresPce'>) {
  return {
    title: titleOf(tool),
    readOnlyHint: tool.effect === 'read',
    destructiveHint: tool.effect === 'destroy',
    idempotentHint: tool.effect === 'read' || tool.idempotent === true,
    openWorldHint: tool.requiresPce,
  }
}

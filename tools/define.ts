import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { Role } from '../schemas/caller.js'
import type { Preview, ToolContext } from '../domain/call.js'

export type ToolEffect = 'read' | 'write' | 'destroy'

/** The toolsets, with what each is for, in the order in which operators come to need them (D122). */
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
  'rules-plus': 'add single rules to rule sets, and look into label groups and IP lists',
  history: 'compare and restore policy versions, discard drafts, and find who changed what',
  hygiene: 'find what is unused, redundant or unlabelled, and label workloads in bulk',
  vens: 'look up VENs and judge their health',
  'virtual-services': 'look up virtual services, with what they offer, where and under which labels',
} as const

export type Toolset = keyof typeof TOOLSETS

/** Later than the tools of the contract: not part of the toolset `default` (D122). */
const BEYOND_DEFAULT: ReadonlySet<Toolset> = new Set([
  'explain',
  'rules-plus',
  'history',
  'hygiene',
  'vens',
  'virtual-services',
])

/** Whether the toolset `default` has a tool: those of the owner's list are in it. */
export const isInDefault = ({ toolset }: Pick<AnyTool, 'toolset'>): boolean => !BEYOND_DEFAULT.has(toolset)

export interface ToolSpecCore<I extends TObject, O extends TSchema, P extends boolean> {
  /** The name on the wire: kebab-case, the same as the file's. */
  name: string
  /** A short human title; derived from the name when absent. */
  title?: string
  /** What the model reads. One or two sentences; what changes PCE state says so by itself (see `describe`). */
  summary: string
  /** read: sends no request that changes anything. write: creates or changes. destroy: destructive, as MCP annotates it. */
  effect: ToolEffect
  /** The one that it belongs to. */
  toolset: Toolset
  /** The same call twice leaves the same state. Reads always are. */
  idempotent?: boolean
  roles: readonly Role[]
  requiresPce: P
  requiresConfirm: boolean
  /**
   * Its cost grows with the estate or its traffic, so it runs in a worker thread (D61): every call of it, or those with arguments
   * like these.
   */
  isHeavy?: true | ((args: Static<I>) => boolean)
  /**
   * The most requests that one call sends to the PCE, and what it sends beyond them (`one for each 1,000 workloads`). Polls of a running
   * query are not counted. Stated by every tool beyond the contract; docs and a test use it.
   */
  pceRequests?: { readonly atMost: number; readonly and?: string }
  input: I
  output: O
  /** Arguments that work against the simulator's estate; docs and contract tests use them. */
  example: Static<I>
  handler(args: Static<I>, ctx: ToolContext<P>): Promise<Static<O>>
  /**
   * For a tool that asks for confirmation: what the call would do, in words for the person who decides, with facts. Only reads, and
   * throws what the handler may throw. A tool without one shows its dry run (D77).
   */
  preview?(args: Static<I>, ctx: ToolContext<P>): Promise<Preview>
  /**
   * The `boundTo` that the preview would have now: it runs at every redemption (D21), in place of the whole preview. Only reads, and
   * throws what the handler may throw.
   */
  boundTo?(args: Static<I>, ctx: ToolContext<P>): Promise<string>
}

export type ToolSpec<I extends TObject = TObject, O extends TSchema = TSchema, P extends boolean = boolean> = Readonly<
  ToolSpecCore<I, O, P>
>

/** A tool with its argument types erased: what the list, the dispatcher and the transports work with. */
export interface AnyTool extends Omit<ToolSpec, 'handler' | 'example' | 'preview' | 'boundTo' | 'isHeavy'> {
  readonly example: object
  readonly isHeavy?: true | ((args: never) => boolean)
  handler(args: never, ctx: never): Promise<unknown>
  preview?(args: never, ctx: never): Promise<Preview>
  boundTo?(args: never, ctx: never): Promise<string>
}

/** Ties the handler's types to the schemas. Adds nothing at run time. */
export function defineTool<I extends TObject, O extends TSchema, P extends boolean>(
  spec: ToolSpec<I, O, P>,
): ToolSpec<I, O, P> {
  return spec
}

const ACRONYMS: Record<string, string> = { pce: 'PCE', ven: 'VEN', vens: 'VENs' }

/** Display title: the spec's own, otherwise the words of the name, capitalised (`get-labels` → `Get Labels`). */
export function titleOf(tool: Pick<AnyTool, 'name' | 'title'>): string {
  const capitalised = (word: string) => ACRONYMS[word] ?? word.charAt(0).toUpperCase() + word.slice(1)
  return tool.title ?? tool.name.split('-').map(capitalised).join(' ')
}

/** The description clients show their model: the summary and, for tools that change state, what to expect of the call. */
export function describe(tool: Pick<AnyTool, 'summary' | 'effect' | 'requiresConfirm'>): string {
  if (tool.effect === 'read') return tool.summary
  const confirm = tool.requiresConfirm ? ' May answer confirm_required first.' : ''
  return `${tool.summary} Changes PCE state: do not retry.${confirm}`
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

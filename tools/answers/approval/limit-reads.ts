import type { ToolContext } from '../../../domain/call.js'
import type { CallerScopes } from '../../../schemas/scopes.js'

const ACTS = ['handler', 'preview', 'boundTo', 'plan'] as const

/** The properties of a tool that decide what it may show to a client with limited reading. */
interface Reading {
  effect: 'read' | 'write' | 'destroy'
  reads?: 'shown' | 'judged' | 'everything'
  requiresPce: boolean
  limitsReads?: true
  handler(args: never, ctx: never): Promise<unknown>
  preview?(args: never, ctx: never): Promise<unknown>
  boundTo?(args: never, ctx: never): Promise<unknown>
  plan?(args: never, ctx: never): Promise<unknown>
}

/**
 * Makes all functions of a tool use a limited client if their caller may read only inside the caller's scopes. This is
 * done where a tool is completed, so that it applies in whichever thread the functions run.
 */
export function limitReads<T extends Reading>(tool: T): T {
  if (!tool.requiresPce) return tool
  const limited = (act: (typeof ACTS)[number]) => async (args: never, context: ToolContext) => {
    const { scopes } = context.caller
    const own = scopes?.readsOnly === undefined ? context : await limitContext(tool, context, scopes)
    return tool[act]!(args, own as never)
  }
  const acts = ACTS.filter((act) => tool[act] !== undefined)
  return { ...tool, ...Object.fromEntries(acts.map((act) => [act, limited(act)])), limitsReads: true }
}

async function limitContext(tool: Reading, context: ToolContext, scopes: CallerScopes): Promise<ToolContext> {
  if (context.pce === null) return context
  // This code is loaded only when it is needed, because most servers limit nobody's reading, and stdio servers start
  // often.
  const { limitClient } = await import('../../../domain/scopes/limit-client.js')
  const extent = tool.effect === 'read' && tool.reads === 'shown' ? 'shown' : 'judged'
  const pce = limitClient(context.pce, scopes, extent, () => context.signal)
  // The descriptors are copied instead of the object being spread, because a spread would call the getters of the
  // context's signals.
  const own = Object.getOwnPropertyDescriptors(context)
  return Object.defineProperties({} as ToolContext, { ...own, pce: { value: pce, enumerable: true } })
}

import type { ToolContext } from '../../../domain/call.js'
import type { PlannedRequest } from '../../../schemas/dry-run.js'

/** The fields of a tool that are needed to list the requests of a call. */
interface Planned {
  effect: 'read' | 'write' | 'destroy'
  input: { properties: object }
  isHeavy?: true | ((args: never, act: 'handler' | 'preview' | 'boundTo' | 'plan') => boolean)
  handler(args: never, ctx: never): Promise<unknown>
  plan?(args: never, ctx: never): Promise<PlannedRequest[]>
}

type Arguments = Record<string, unknown>

/**
 * Adds the function `plan`, which lists the requests of a call, to a tool that changes something and does not define
 * it: it returns the requests of the tool's dry run. It is heavy (it runs in a worker thread) if the dry run is.
 */
export function withPlan<T extends Planned>(tool: T): T {
  const { isHeavy, effect, input } = tool
  if (tool.plan !== undefined || effect === 'read' || !('dry_run' in input.properties)) return tool
  const hasDetail = 'detail_level' in input.properties
  const dry = (args: Arguments) => ({ ...args, dry_run: true, ...(hasDetail && { detail_level: 'full' }) })
  return {
    ...tool,
    async plan(args: Arguments, context: ToolContext): Promise<PlannedRequest[]> {
      // This answer is not sent. It must contain all requests, so its size is unlimited, and nothing is included that
      // only people read.
      const limits = { ...context.limits, responseBudgetBytes: Infinity }
      const answer = await tool.handler(dry(args) as never, { ...context, limits, isBindingOnly: true } as never)
      const { requests = [] } = answer as { requests?: PlannedRequest[] }
      return requests
    },
    ...(typeof isHeavy === 'function' && {
      isHeavy: (args: Arguments, act: 'handler' | 'preview' | 'boundTo' | 'plan') =>
        act === 'plan' ? isHeavy(dry(args) as never, 'handler') : isHeavy(args as never, act),
    }),
  }
}

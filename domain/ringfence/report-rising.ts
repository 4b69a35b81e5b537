import type { ToolContext } from '../call.js'

/** The context with progress that goes on rising over several readers, each of which counts from zero. */
export function reportRising<C extends Pick<ToolContext, 'progress'>>(ctx: C, prefix = ''): C {
  let step = 0
  return {
    ...ctx,
    progress: ({ message }) =>
      ctx.progress({ progress: step++, ...(message !== undefined && { message: prefix + message }) }),
  }
}

import { ToolError } from '../../schemas/errors.js'
import type { AnyTool, ToolContext } from '../../tools/define.js'

/** See ToolContext. */
export type CallSignals = Pick<ToolContext, 'signal' | 'beforeWriting'>

/** What ends a call: a reading one goes with its client, a changing one only until it has begun to write. */
export function signalsOf(tool: AnyTool, client: AbortSignal, own: AbortController): CallSignals {
  const { signal } = own
  if (tool.effect === 'read') {
    abortWith(client, own)
    return { signal, beforeWriting: signal }
  }
  const asked = new AbortController()
  abortWith(client, asked)
  return { signal, beforeWriting: AbortSignal.any([signal, asked.signal]) }
}

function abortWith(signal: AbortSignal, controller: AbortController): void {
  const abort = () => controller.abort(new ToolError('cancelled', 'The call was cancelled.'))
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
}

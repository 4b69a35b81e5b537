import { ToolError } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'
import type { ToolContext } from '../../domain/call.js'

/** See ToolContext. */
export type CallSignals = Pick<ToolContext, 'signal' | 'beforeWriting'>

/**
 * What ends a call: a reading one goes with its client, a changing one only until it has begun to write. `release` is called when the
 * call is over: the client's signal may live on, for other calls of its connection.
 */
export function signalsOf(
  tool: AnyTool,
  client: AbortSignal,
  own: AbortController,
): { signals: CallSignals; release: () => void } {
  const { signal } = own
  if (tool.effect === 'read') return { signals: { signal, beforeWriting: signal }, release: abortWith(client, own) }
  const asked = new AbortController()
  const release = abortWith(client, asked)
  return { signals: { signal, beforeWriting: AbortSignal.any([signal, asked.signal]) }, release }
}

function abortWith(signal: AbortSignal, controller: AbortController): () => void {
  const abort = () => controller.abort(new ToolError('cancelled', 'The call was cancelled.'))
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return () => signal.removeEventListener('abort', abort)
}

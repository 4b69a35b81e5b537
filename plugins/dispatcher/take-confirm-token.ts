import type { ToolCall } from './session.js'

/**
 * The call without a `_meta` among its arguments, where clients that cannot set `params._meta` put the confirm token (D19): it is
 * no argument of the tool, and no part of the params_hash. The token in `params._meta` wins.
 */
export function takeConfirmToken(call: ToolCall): ToolCall {
  if (!Object.hasOwn(call.arguments, '_meta')) return call
  const { _meta: meta, ...args } = call.arguments
  const inside = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>).confirm_token : undefined
  return { ...call, arguments: args, confirmToken: call.confirmToken ?? inside }
}

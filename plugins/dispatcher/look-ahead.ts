import type { Preview } from '../../domain/call.js'
import type { Outlook } from '../../schemas/confirmations.js'
import { convert } from '../errors/convert.js'
import type { ValidSubject } from './admit-call.js'

/**
 * Computes the digest of what the call would do now. A person's consent is valid only for this digest. If the tool has
 * no `boundTo`, the digest is that of its preview.
 */
export const findBinding = async ({ tool, args, context }: ValidSubject): Promise<string> =>
  tool.boundTo === undefined
    ? (await preview({ tool, args, context: { ...context, isBindingOnly: true } })).boundTo
    : tool.boundTo(args as never, context as never)

async function preview({ tool, args, context }: Pick<ValidSubject, 'tool' | 'args' | 'context'>): Promise<Preview> {
  if (tool.preview === undefined) throw new Error(`${tool.name} cannot show what it would do`)
  return tool.preview(args as never, context as never)
}

/**
 * Previews what the call would do. `isForPage` is true if the person decides on a page. The result contains the digest to which a person's consent is bound. If the preview
 * fails, nobody can be shown anything or agree to it, and the result says why. Throws if the client has disconnected.
 * Also throws the error `busy` if no worker place was free for the preview, because a repeated call can succeed as soon
 * as one is free.
 */
export async function look(subject: ValidSubject, isForPage: boolean): Promise<Outlook> {
  const { context } = subject
  try {
    const {
      summary,
      details = {},
      page,
      boundTo,
    } = await preview(isForPage ? { ...subject, context: { ...context, isForPage } } : subject)
    return { boundTo, summary, details, page }
  } catch (thrown) {
    if (context.signal.aborted) throw thrown
    const { code, message, hint, details } = convert(thrown)
    if (code === 'busy') throw thrown
    context.log.warn({ err: thrown, error: code }, 'a preview failed')
    return {
      boundTo: null,
      summary: `What this call would do could not be determined: ${message}`,
      details: { preview_error: { ...details, error: code, message, ...(hint && { hint }) } },
    }
  }
}

import { ToolError } from '../../schemas/errors.js'

export type Fetch = typeof globalThis.fetch

/** Metadata and token answers are a few kilobytes. */
const LARGEST_ANSWER = 256 * 1024

/**
 * `fetch` for the identity provider: no redirects, no more than 256 KiB. Rejects with ToolError `login_unavailable` for a larger
 * answer, else as fetch does.
 */
export function boundFetch(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' })
    const { status, statusText, headers } = response
    const body = await readBounded(response)
    return new Response(body.length === 0 ? null : body, { status, statusText, headers })
  }
}

async function readBounded(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > LARGEST_ANSWER) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = () => new ToolError('login_unavailable', 'The identity provider sends answers that are too large.')

import { request } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** How the receiver answered a message: with which HTTP status, or why there was no answer. */
export type PostResult = { status: number } | { failure: string }

/** Posts a JSON string to the receiver. Never rejects; `signal` ends the attempt. */
export type Post = (body: string, headers: Record<string, string>, signal?: AbortSignal) => Promise<PostResult>

export interface PostOptions {
  url: string
  /**
   * Checks the address of every connection: `lookup` refuses host names that resolve to forbidden addresses, and
   * `checkPeer` throws if the address of the peer is forbidden.
   */
  guard: { lookup: LookupFunction; checkPeer: (address: string) => void }
  userAgent: string
  /**
   * Time limit of one whole attempt, in milliseconds. The default is 15 seconds, the minimum that Standard Webhooks
   * recommends.
   */
  timeoutMs?: number
  /** The certificate authorities to trust instead of those of Node.js. */
  ca?: string
}

/** Maximum number of bytes that are read from an answer. Its content is ignored. */
const MOST_READ = 64 * 1024

/**
 * Creates the function that posts messages to one receiver. Each message is sent over its own connection, whose address
 * is checked before anything is sent. Redirects are not followed: a redirect counts as the receiver's answer.
 */
export function createPost({ url, guard, userAgent, timeoutMs = 15_000, ca }: PostOptions): Post {
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
  return (body, headers, signal) =>
    new Promise((settle) => {
      const fail = (error: unknown) => settle({ failure: describe(error) })
      try {
        if (isIP(host) !== 0) guard.checkPeer(host)
      } catch (error) {
        return fail(error)
      }
      const sending = request(url, {
        method: 'POST',
        agent: false,
        lookup: guard.lookup,
        ...(ca !== undefined && { ca }),
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'user-agent': userAgent,
          ...headers,
        },
      })
      const stop = () => sending.destroy(new Error('the server is stopping'))
      const timer = setTimeout(() => {
        sending.destroy(new Error(`no answer within ${timeoutMs / 1000} s`))
      }, timeoutMs).unref()
      signal?.addEventListener('abort', stop)
      if (signal?.aborted === true) stop()
      sending.once('socket', (socket) => {
        socket.once('secureConnect', () => {
          try {
            guard.checkPeer((socket as TLSSocket).remoteAddress ?? '')
            sending.end(body)
          } catch (error) {
            sending.destroy(error as Error)
          }
        })
      })
      sending.once('response', (answer) => {
        settle({ status: answer.statusCode ?? 0 })
        let read = 0
        answer.on('data', ({ length }: Buffer) => {
          read += length
          if (read > MOST_READ) answer.destroy()
        })
        answer.on('error', () => undefined)
      })
      sending.on('error', fail)
      sending.once('close', () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
        settle({ failure: 'the connection was closed' })
      })
    })
}

/** Describes why a message could not be sent, without the path of the URL. */
function describe(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

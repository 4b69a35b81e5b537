export interface DownloadOptions {
  fetch: typeof globalThis.fetch
  /** Calls the download off. */
  signal: AbortSignal
}

const TIMEOUT_MS = 5000
const LARGEST_SET = 1024 * 1024

/**
 * The `keys` of the key set at `url` (RFC 7517, 5). Rejects with an Error that says in a few words what is wrong: no
 * answer within 5 s to the last byte, a status other than 200, a redirect, more than 1 MiB after decompression, or
 * anything but a JSON object with an array of keys.
 */
export async function downloadKeys(url: string, { fetch, signal }: DownloadOptions): Promise<readonly unknown[]> {
  signal.throwIfAborted()
  const bound = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let callOff = () => {}
  // The signal alone does not bound fetch: Node.js 20 may lose it to the garbage collector, and a stalled body then
  // waits for ever.
  const over = new Promise<never>((_resolve, reject) => {
    const end = (why: string) => {
      const error = new Error(why)
      bound.abort(error)
      reject(error)
    }
    timer = setTimeout(() => end('there is no complete answer within 5 s'), TIMEOUT_MS)
    callOff = () => end('the download was called off')
    signal.addEventListener('abort', callOff)
  })
  try {
    return await Promise.race([over, readKeys(url, fetch, bound.signal)])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', callOff)
  }
}

async function readKeys(url: string, fetch: DownloadOptions['fetch'], signal: AbortSignal): Promise<unknown[]> {
  const response = await fetch(url, {
    redirect: 'error',
    signal,
    headers: { accept: 'application/jwk-set+json, application/json' },
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the answer has status ${response.status}`)
  }
  const keys = keysIn(await readBounded(response, signal))
  if (!Array.isArray(keys)) throw new Error('the answer is no JSON object with an array of keys')
  return keys as unknown[]
}

async function readBounded(response: Response, signal: AbortSignal): Promise<string> {
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
  const drop = () => void reader?.cancel().catch(() => {})
  signal.addEventListener('abort', drop)
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const chunk = await reader?.read()
    if (chunk?.value === undefined) break
    size += chunk.value.byteLength
    chunks.push(chunk.value)
    if (size <= LARGEST_SET) continue
    drop()
    throw new Error('the answer is larger than 1 MiB')
  }
  return Buffer.concat(chunks).toString()
}

function keysIn(text: string): unknown {
  try {
    return (JSON.parse(text) as { keys?: unknown } | null)?.keys
  } catch {
    return undefined
  }
}

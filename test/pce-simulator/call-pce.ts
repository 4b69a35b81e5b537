import { gunzipSync } from 'node:zlib'
import type { PceSimulator } from '../../pce-simulator/options.js'

export interface PceAnswer {
  status: number
  headers: Headers
  text: string
  /** The parsed body, undefined when it is empty or no JSON. */
  body: ReturnType<JSON['parse']>
}

/** Plain HTTP requests below `/api/v2` with the simulator's credentials: no client of ours, so that no fault of one hides. */
export function createCaller({ url, credentials }: Pick<PceSimulator, 'url' | 'credentials'>) {
  const authorization = `Basic ${Buffer.from(`${credentials.key}:${credentials.secret}`).toString('base64')}`

  return async (
    method: string,
    path: string,
    json?: unknown,
    headers: Record<string, string> = {},
  ): Promise<PceAnswer> => {
    const response = await fetch(`${url}/api/v2${path}`, {
      method,
      headers: { authorization, ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(json === undefined ? {} : { body: typeof json === 'string' ? json : JSON.stringify(json) }),
    })
    const text = unpack(Buffer.from(await response.arrayBuffer())).toString()
    return { status: response.status, headers: response.headers, text, body: parse(text) }
  }
}

/** Unpacks what begins like a gzip file, since no header says so of a traffic download (P11). */
function unpack(body: Buffer): Buffer {
  return body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body) : body
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** tools/call and /confirm, written out, over any target. */
import { sendRequest, type Answer, type Sent, type Target } from './send-request.js'

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are read as they come off the wire
export type Json = any

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

export interface CallOptions {
  /** `params._meta`. */
  meta?: object
  headers?: Record<string, string>
  signal?: AbortSignal
  onData?: Sent['onData']
}

/** The whole answer to a JSON-RPC message (or to anything else, as text). */
export function post(target: Target, token: string | null, message: unknown, more: Sent = {}): Promise<Answer> {
  const body = typeof message === 'string' ? message : JSON.stringify(message)
  const bearer: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
  return sendRequest(target, { body, ...more, headers: { ...HEADERS, ...bearer, ...more.headers } })
}

/** What a tool answered, or its error body: from plain JSON or from the last event of a stream. */
export async function callTool(
  target: Target,
  token: string,
  name: string,
  args: object = {},
  { meta, headers, signal, onData }: CallOptions = {},
): Promise<Json> {
  const params = { name, arguments: args, ...(meta && { _meta: meta }) }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  return readToolAnswer(await post(target, token, message, { headers, signal, onData }))
}

/** Throws Error for an answer that is none of a tool. */
export function readToolAnswer({ status, headers, body }: Answer): Json {
  const text = String(headers['content-type']).startsWith('text/event-stream') ? lastEvent(body) : body
  if (status !== 200) throw new Error(`HTTP ${status}: ${body}`)
  const { result, error } = JSON.parse(text)
  if (result === undefined) throw new Error(`no result: ${JSON.stringify(error)}`)
  return result.structuredContent ?? JSON.parse(result.content[0].text)
}

/** The messages of a stream of server-sent events, whole ones only. */
export const eventsOf = (text: string): Json[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => JSON.parse(data))

const lastEvent = (text: string) => JSON.stringify(eventsOf(text).at(-1))

/** POST /confirm. */
export async function confirm(target: Target, token: string | null, body: unknown): Promise<Answer & { json: Json }> {
  const answer = await post(target, token, body, { path: '/confirm' })
  return { ...answer, json: JSON.parse(answer.body) }
}

/** Asks for a confirm token for a call, as a client does that has been told `confirm_required`. Throws Error where there is none. */
export async function mintFor(target: Target, token: string, name: string, args: object = {}): Promise<string> {
  const asked = await callTool(target, token, name, args)
  if (asked.error !== 'confirm_required') throw new Error(`not asked: ${JSON.stringify(asked)}`)
  const { status, json } = await confirm(target, token, asked.confirm.body)
  if (status !== 200) throw new Error(`not minted: ${JSON.stringify(json)}`)
  return json.confirm_token
}

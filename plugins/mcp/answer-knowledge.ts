import type { Knowledge, LookUp, ResourceReader } from '../../knowledge/index.js'
import { ToolError } from '../../schemas/errors.js'
import { convert, type ServiceError } from '../errors/convert.js'
import { renderError } from '../errors/render-errors.js'
import { readApp } from './apps.js'
import type { Cacheability, InnerResult } from './eras.js'
import { RPC } from './read-envelope.js'
import { invalidParams, refuseCursor, rpcFailure } from './rpc-failure.js'

/**
 * The capabilities for resources and prompts. Neither subscriptions nor list changes are announced, because nothing in
 * these lists changes while the server runs.
 */
export const KNOWLEDGE_CAPABILITIES = { resources: {}, prompts: {}, completions: {} }

type Params = Record<string, unknown> | undefined

export interface KnowledgePorts extends ResourceReader {
  knowledge: Knowledge
  lookUp: LookUp
  /** The id of the HTTP request, which is part of every error. */
  requestId: string
  /** Logs an unexpected error, about which no caller can do anything. */
  onFailure: (thrown: unknown) => void
}

/**
 * Answers the methods of resources, prompts and completions (MCP server features); returns null for any other method.
 * If the caller may not see a resource or prompt, the answer is the same as if it did not exist. Rejects with
 * RpcFailure.
 */
export function answerKnowledge(
  method: string,
  params: Params,
  ports: KnowledgePorts,
): Promise<InnerResult> | InnerResult | null {
  switch (method) {
    case 'resources/list':
      refuseCursor(params)
      return resultOf({ resources: ports.knowledge.listResources() }, OF_EVERYBODY)
    case 'resources/templates/list':
      refuseCursor(params)
      return resultOf({ resourceTemplates: ports.knowledge.listTemplates(ports) }, OF_CALLER)
    case 'resources/read':
      return readResource(params, ports)
    case 'prompts/list':
      refuseCursor(params)
      return resultOf({ prompts: ports.knowledge.listPrompts(ports) }, OF_CALLER)
    case 'prompts/get':
      return getPrompt(params, ports)
    case 'completion/complete':
      return complete(params, ports)
    default:
      return null
  }
}

/**
 * The time, in milliseconds, for which clients may cache documents and lists, which change only with a new version of
 * the server.
 */
const MINUTES = 5 * 60_000
/** The caching rule for answers that are the same for all callers, such as the list of documents. */
const OF_EVERYBODY: Cacheability = { ttlMs: MINUTES, cacheScope: 'public' }
/** The caching rule for answers that depend on the tools offered to the caller. */
const OF_CALLER: Cacheability = { ttlMs: MINUTES, cacheScope: 'private' }
/** The caching rule for resources that show the current state of PCE objects: they must not be cached. */
const OF_MOMENT: Cacheability = { ttlMs: 0, cacheScope: 'private' }

const resultOf = (result: object, cache?: Cacheability): InnerResult => ({
  kind: 'result',
  result,
  ...(cache && { cache }),
})

async function readResource(params: Params, ports: KnowledgePorts): Promise<InnerResult> {
  const uri = params?.uri
  if (typeof uri !== 'string') throw invalidParams('params.uri must be a string')
  const app = await readApp(uri)
  if (app !== null) return resultOf({ contents: [app] }, OF_EVERYBODY)
  try {
    const page = await ports.knowledge.readResource(uri, ports)
    return resultOf({ contents: [page] }, page.mimeType === 'application/json' ? OF_MOMENT : OF_CALLER)
  } catch (thrown) {
    const error = errorOf(thrown)
    if (error.code !== 'not_found') throw failureOf(thrown, ports)
    const { message, ...data } = renderError(error, ports.requestId)
    throw rpcFailure(RPC.resourceNotFound, message, { ...data, uri: uri.slice(0, LONGEST_URI) })
  }
}

async function getPrompt(params: Params, ports: KnowledgePorts): Promise<InnerResult> {
  const { name } = params ?? {}
  const given = params?.arguments ?? {}
  if (typeof name !== 'string') throw invalidParams('params.name must be a string')
  if (!isObject(given)) throw invalidParams('params.arguments must be an object')
  try {
    const { description, text } = await ports.knowledge.getPrompt(name, given, ports)
    return resultOf({ description, messages: [{ role: 'user', content: { type: 'text', text } }] })
  } catch (thrown) {
    throw failureOf(thrown, ports)
  }
}

async function complete(params: Params, ports: KnowledgePorts): Promise<InnerResult> {
  const { ref, argument } = params ?? {}
  if (!isObject(argument) || typeof argument.name !== 'string' || typeof argument.value !== 'string')
    throw invalidParams('params.argument must be {name, value}, both strings')
  const { name, value } = argument
  try {
    return resultOf({ completion: await ports.knowledge.complete(readReference(ref), { name, value }, ports) })
  } catch (thrown) {
    throw failureOf(thrown, ports)
  }
}

function readReference(ref: unknown): { kind: 'prompt' | 'resource'; name: string } {
  if (isObject(ref) && ref.type === 'ref/prompt' && typeof ref.name === 'string')
    return { kind: 'prompt', name: ref.name }
  if (isObject(ref) && ref.type === 'ref/resource' && typeof ref.uri === 'string')
    return { kind: 'resource', name: ref.uri }
  throw new ToolError(
    'invalid_argument',
    'params.ref must be {type: "ref/prompt", name} or {type: "ref/resource", uri}',
  )
}

/**
 * Converts any thrown value to a JSON-RPC error. Its code is that of invalid params if something does not exist or an
 * argument is unusable.
 */
function failureOf(thrown: unknown, { requestId, onFailure }: KnowledgePorts): Error {
  const error = errorOf(thrown)
  const { message, ...data } = renderError(error, requestId)
  if (error.code === 'not_found' || error.code === 'invalid_argument') return invalidParams(message, data)
  if (error.code !== 'internal') return rpcFailure(RPC.refused, message, data)
  onFailure(thrown)
  return rpcFailure(RPC.internal, message, data)
}

/** The failure of a tool call whose answer was needed as the content of a resource. */
export class FailedCall extends Error {
  override readonly name = 'FailedCall'
  readonly code: string
  constructor(readonly error: ServiceError) {
    super(error.message)
    this.code = error.code
  }
}

const errorOf = (thrown: unknown): ServiceError => (thrown instanceof FailedCall ? thrown.error : convert(thrown))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Maximum number of characters of a URI that are quoted in an error. */
const LONGEST_URI = 300

import type { Knowledge } from '../../knowledge/index.js'
import { convert } from '../errors/convert.js'
import { renderError } from '../errors/render-errors.js'
import { RPC } from './read-envelope.js'
import { invalidParams, refuseCursor, rpcFailure } from './rpc-failure.js'

/** Neither subscriptions nor changes of the lists are announced: nothing in them changes while the server runs. */
export const KNOWLEDGE_CAPABILITIES = { resources: {} }

type Params = Record<string, unknown> | undefined

export interface KnowledgePorts {
  knowledge: Knowledge
  /** Names of the tools that the caller is offered. */
  offered: ReadonlySet<string>
  /** The id under which the request appears in errors. */
  requestId: string
  /** Told what was thrown that no caller can do anything about. */
  onFailure: (thrown: unknown) => void
}

/**
 * Answers the methods of resources (MCP server features); null for any other. A resource that the caller may not see does not exist for
 * them. Rejects with the JSON-RPC error of the answer.
 */
export function answerKnowledge(
  method: string,
  params: Params,
  ports: KnowledgePorts,
): Promise<object> | object | null {
  switch (method) {
    case 'resources/list':
      refuseCursor(params)
      return { resources: ports.knowledge.listResources() }
    case 'resources/templates/list':
      refuseCursor(params)
      return { resourceTemplates: [] }
    case 'resources/read':
      return readResource(params, ports)
    default:
      return null
  }
}

async function readResource(
  params: Params,
  { knowledge, offered, requestId, onFailure }: KnowledgePorts,
): Promise<object> {
  const uri = params?.uri
  if (typeof uri !== 'string') throw invalidParams('params.uri must be a string')
  try {
    return { contents: [await knowledge.readResource(uri, { offered })] }
  } catch (thrown) {
    const error = convert(thrown)
    const { message, ...data } = renderError(error, requestId)
    if (error.code === 'not_found')
      throw rpcFailure(RPC.resourceNotFound, message, { ...data, uri: uri.slice(0, LONGEST_URI) })
    onFailure(thrown)
    throw rpcFailure(RPC.internal, message, data)
  }
}

/** Characters of a URI that an error repeats. */
const LONGEST_URI = 300

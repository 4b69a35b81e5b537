/** The time, in milliseconds, within which a person must answer a question. */
const ANSWERED_WITHIN_MS = 15 * 60_000

/** A response to a request of this server, as the client sent it. */
interface ClientResponse {
  id?: unknown
  result?: unknown
}

/**
 * The requests that this server sends to its client over a connection. A client answers them at any later time, between
 * its own requests.
 */
export class ClientRequests {
  #asked = 0
  readonly #waiting = new Map<number, (response: ClientResponse | null) => void>()

  /** Creates the requests of a connection. `write` sends a message to the client. */
  constructor(private readonly write: (message: object) => void) {}

  /**
   * Makes the client show a form to its user. Resolves with the result (MCP elicitation). Resolves with null if the
   * client refuses the request, does not answer in time, or answers with something else, and if `signal` is aborted.
   */
  async elicit(form: object, signal: AbortSignal): Promise<object | null> {
    const response = await this.#ask('elicitation/create', form, signal)
    return isElicitResult(response?.result) ? response.result : null
  }

  /** Processes a response of the client. A response to no open request is ignored. */
  settle(response: ClientResponse): void {
    const { id } = response
    if (typeof id === 'number') this.#waiting.get(id)?.(response)
  }

  #ask(method: string, params: object, signal: AbortSignal): Promise<ClientResponse | null> {
    if (signal.aborted) return Promise.resolve(null)
    const id = this.#asked++
    return new Promise((resolve) => {
      const end = (response: ClientResponse | null) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        this.#waiting.delete(id)
        resolve(response)
      }
      const giveUp = () => {
        this.write({ method: 'notifications/cancelled', params: { requestId: id }, jsonrpc: '2.0' })
        end(null)
      }
      const timer = setTimeout(giveUp, ANSWERED_WITHIN_MS)
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.set(id, end)
      this.write({ method, params, jsonrpc: '2.0', id })
    })
  }
}

/** Returns true if a result has the form of an answer to a form. The answer itself is not checked here. */
const isElicitResult = (result: unknown): result is object =>
  isObject(result) && (result.content === undefined || result.content === null || isObject(result.content))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'

type Id = string | number

/** The answers to one HTTP body or one stdio batch, until there is one for every request. */
export class AnswerCollector {
  readonly #open: Set<Id>
  readonly #answers: JSONRPCMessage[] = []

  constructor(
    ids: Iterable<Id>,
    private readonly batch: boolean,
  ) {
    this.#open = new Set(ids)
  }

  /** Whether an answer to this id is still missing. */
  waitsFor(id: Id): boolean {
    return this.#open.has(id)
  }

  add(id: Id, answer: JSONRPCMessage): void {
    this.#open.delete(id)
    this.#answers.push(answer)
  }

  /** A cancelled request gets no answer (MCP utilities/cancellation). */
  drop(id: Id): void {
    this.#open.delete(id)
  }

  get isComplete(): boolean {
    return this.#open.size === 0
  }

  /** One JSON text: an array for a batch, however few its answers. Empty when every request of it was cancelled. */
  text(): string {
    if (this.#answers.length === 0) return ''
    return JSON.stringify(this.batch ? this.#answers : this.#answers[0])
  }
}

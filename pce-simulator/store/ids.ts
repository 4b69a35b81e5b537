import { hash } from 'node:crypto'

/**
 * Generates ids that depend only on the seed and on earlier calls, never on time or chance, so that the same sequence
 * of requests gives the same bytes. Each purpose has its own sequence of ids, so that, for example, a poll never
 * affects the id of the next object.
 */
export class Ids {
  readonly #seed: string
  readonly #counters = new Map<string, number>()

  constructor(seed: string | number) {
    this.#seed = String(seed)
  }

  /** Returns the next integer id for a kind of object. */
  int(kind: string): number {
    const next = (this.#counters.get(kind) ?? 0) + 1
    this.#counters.set(kind, next)
    return next
  }

  /** Ensures that the next integer id is higher than the given one, which is in use. */
  reserve(kind: string, taken: number): void {
    if (taken > (this.#counters.get(kind) ?? 0)) this.#counters.set(kind, taken)
  }

  uuid(purpose: string): string {
    const hex = this.hex(purpose, 32)
    const variant = ((parseInt(hex[16]!, 16) & 3) | 8).toString(16)
    return [
      hex.slice(0, 8),
      hex.slice(8, 12),
      `4${hex.slice(13, 16)}`,
      variant + hex.slice(17, 20),
      hex.slice(20),
    ].join('-')
  }

  /** Returns the requested number of hexadecimal digits, at most 64. */
  hex(purpose: string, length: number): string {
    return hash('sha256', `${this.#seed}:${purpose}:${this.int(`hex:${purpose}`)}`).slice(0, length)
  }
}

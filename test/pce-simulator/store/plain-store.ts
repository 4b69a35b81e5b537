import type { PceObject } from '../../../schemas/pce/reference.js'

/** The objects of one kind that is not versioned, by href, in the order of their creation. Objects are never changed in place. */
export class PlainStore {
  readonly #objects = new Map<string, PceObject>()

  get(href: string): PceObject | undefined {
    return this.#objects.get(href)
  }

  set(object: PceObject): void {
    this.#objects.set(object.href, object)
  }

  remove(href: string): void {
    this.#objects.delete(href)
  }

  all(): PceObject[] {
    return [...this.#objects.values()]
  }

  /** Without what was soft-deleted. */
  live(): PceObject[] {
    return this.all().filter((object) => object.deleted !== true)
  }
}

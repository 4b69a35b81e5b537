import type { PceObject } from '../../schemas/pce/reference.js'

/**
 * The objects of one kind that is not versioned, by href, in the order of their creation. Objects are never changed in place.
 * The list of those that live is kept between writes: walking 50,000 objects costs more than answering a page of them.
 */
export class PlainStore {
  readonly #objects = new Map<string, PceObject>()
  #live: PceObject[] | null = null
  #places = new Map<string, number>()
  /** Lists already handed out stay as they were. */
  #lent = false

  get(href: string): PceObject | undefined {
    return this.#objects.get(href)
  }

  set(object: PceObject): void {
    const known = this.#objects.get(object.href)
    this.#objects.set(object.href, object)
    if (this.#live === null) return
    if (object.deleted === true || (known !== undefined && known.deleted === true)) return this.#forget()
    if (this.#lent) this.#live = this.#live.slice()
    this.#lent = false
    const place = known === undefined ? this.#live.length : this.#places.get(object.href)!
    this.#live[place] = object
    this.#places.set(object.href, place)
  }

  remove(href: string): void {
    if (this.#objects.delete(href)) this.#forget()
  }

  all(): PceObject[] {
    return [...this.#objects.values()]
  }

  /** Without what was soft-deleted. */
  live(): readonly PceObject[] {
    this.#lent = true
    return (this.#live ??= this.#listLive())
  }

  #listLive(): PceObject[] {
    const live = this.all().filter((object) => object.deleted !== true)
    this.#places = new Map(live.map(({ href }, place) => [href, place]))
    return live
  }

  #forget(): void {
    this.#live = null
  }
}

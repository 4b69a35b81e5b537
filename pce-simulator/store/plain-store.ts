import type { PceObject } from '../../schemas/pce/reference.js'

/**
 * A store for the objects of one kind without versions, by href in the order of creation. Objects are never modified in
 * place. The list of live objects is cached between writes, because iterating over 50,000 objects is more expensive
 * than answering with one page of them.
 */
export class PlainStore {
  readonly #objects = new Map<string, PceObject>()
  #live: PceObject[] | null = null
  #places = new Map<string, number>()
  /**
   * True if a caller has received the current list. If so, the list is copied before the next write, so that the
   * caller's list never changes.
   */
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

  /** Lists the objects that are not marked as deleted. */
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

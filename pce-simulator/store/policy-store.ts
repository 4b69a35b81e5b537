import { type ChangeSubsetType, CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import type { VersionedObject } from '../../schemas/pce/reference.js'

export type UpdateType = 'create' | 'update' | 'delete'

/**
 * A versioned object: its draft body and its active body. Bodies contain only draft hrefs and no update_type of their
 * own. They are never modified in place, so a snapshot copies only references.
 */
export interface Entry {
  type: ChangeSubsetType
  draft: VersionedObject
  /** The active version; null if the object was never provisioned. */
  active: VersionedObject | null
  updateType: UpdateType | null
}

/** The active objects after a provisioning, by type and draft href. */
export type Snapshot = ReadonlyMap<ChangeSubsetType, ReadonlyMap<string, VersionedObject>>

/**
 * The store of all versioned objects, which implements their life cycle (P4): draft, provisioning, deletion and revert.
 */
export class PolicyStore {
  readonly #entries = new Map<ChangeSubsetType, Map<string, Entry>>()

  /** Finds the entry of the object with this draft href. */
  get(type: ChangeSubsetType, href: string): Entry | undefined {
    return this.#entries.get(type)?.get(href)
  }

  entries(type: ChangeSubsetType): Entry[] {
    return [...(this.#entries.get(type)?.values() ?? [])]
  }

  pending(): Entry[] {
    return CHANGE_SUBSET_TYPES.flatMap((type) => this.entries(type)).filter((entry) => entry.updateType !== null)
  }

  /** Adds an object of the estate, which is both its draft and its active version. */
  load(type: ChangeSubsetType, object: VersionedObject): void {
    const { update_type: _pending, ...body } = object
    this.#put({ type, draft: body, active: body, updateType: null })
  }

  create(type: ChangeSubsetType, object: VersionedObject): Entry {
    const entry: Entry = { type, draft: object, active: null, updateType: 'create' }
    this.#put(entry)
    return entry
  }

  /** Changes the draft of an object. A pending creation or deletion stays pending. */
  change(entry: Entry, draft: VersionedObject): void {
    entry.draft = draft
    entry.updateType ??= 'update'
  }

  /**
   * Deletes the object: an object that was never provisioned is removed at once, and any other is marked as deleted. A
   * second deletion changes nothing.
   */
  remove(entry: Entry, stamp: Partial<VersionedObject>): void {
    if (entry.active === null) this.#drop(entry)
    else if (entry.updateType !== 'delete') {
      entry.draft = { ...entry.draft, ...stamp }
      entry.updateType = 'delete'
    }
  }

  /**
   * Makes the draft active, or removes the object if it is marked as deleted. `settle` converts the draft to its form
   * after provisioning.
   */
  provision(entry: Entry, settle: (draft: VersionedObject) => VersionedObject): void {
    if (entry.updateType === 'delete') return this.#drop(entry)
    const body = settle(entry.draft)
    entry.draft = body
    entry.active = body
    entry.updateType = null
  }

  /** Replaces the draft with the active version, or removes an object that was never provisioned. */
  revert(entry: Entry): void {
    if (entry.active === null) return this.#drop(entry)
    entry.draft = entry.active
    entry.updateType = null
  }

  snapshot(): Snapshot {
    return new Map(
      CHANGE_SUBSET_TYPES.map((type) => {
        const active = this.entries(type).filter((entry) => entry.active !== null)
        return [type, new Map(active.map((entry) => [entry.draft.href, entry.active!]))]
      }),
    )
  }

  #put(entry: Entry): void {
    let ofType = this.#entries.get(entry.type)
    if (!ofType) this.#entries.set(entry.type, (ofType = new Map()))
    ofType.set(entry.draft.href, entry)
  }

  #drop(entry: Entry): void {
    this.#entries.get(entry.type)?.delete(entry.draft.href)
  }
}

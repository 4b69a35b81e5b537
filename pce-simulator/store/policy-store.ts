import { type ChangeSubsetType, CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import type { VersionedObject } from '../../schemas/pce/reference.js'

export type UpdateType = 'create' | 'update' | 'delete'

/**
 * One versioned object in both its versions. Bodies hold draft hrefs throughout, carry no update_type of their own and are
 * never changed in place, so a snapshot is a copy of pointers.
 */
export interface Entry {
  type: ChangeSubsetType
  draft: VersionedObject
  /** Null: never provisioned. */
  active: VersionedObject | null
  updateType: UpdateType | null
}

/** The active objects by type and draft href, as one provisioning left them. */
export type Snapshot = ReadonlyMap<ChangeSubsetType, ReadonlyMap<string, VersionedObject>>

/** The life cycle of P4, whatever the kind. */
export class PolicyStore {
  readonly #entries = new Map<ChangeSubsetType, Map<string, Entry>>()

  /** Draft href → entry, or undefined. */
  get(type: ChangeSubsetType, href: string): Entry | undefined {
    return this.#entries.get(type)?.get(href)
  }

  entries(type: ChangeSubsetType): Entry[] {
    return [...(this.#entries.get(type)?.values() ?? [])]
  }

  pending(): Entry[] {
    return CHANGE_SUBSET_TYPES.flatMap((type) => this.entries(type)).filter((entry) => entry.updateType !== null)
  }

  /** An object of the estate: active as it is. */
  load(type: ChangeSubsetType, object: VersionedObject): void {
    const { update_type: _pending, ...body } = object
    this.#put({ type, draft: body, active: body, updateType: null })
  }

  create(type: ChangeSubsetType, object: VersionedObject): Entry {
    const entry: Entry = { type, draft: object, active: null, updateType: 'create' }
    this.#put(entry)
    return entry
  }

  /** A write to the draft: a pending creation or deletion stays what it is. */
  change(entry: Entry, draft: VersionedObject): void {
    entry.draft = draft
    entry.updateType ??= 'update'
  }

  /** Gone at once when it was never provisioned, otherwise marked. A second deletion changes nothing. */
  remove(entry: Entry, stamp: Partial<VersionedObject>): void {
    if (entry.active === null) this.#drop(entry)
    else if (entry.updateType !== 'delete') {
      entry.draft = { ...entry.draft, ...stamp }
      entry.updateType = 'delete'
    }
  }

  /** The draft becomes active; a marked object disappears. `settle` gives the body as it stands once provisioned. */
  provision(entry: Entry, settle: (draft: VersionedObject) => VersionedObject): void {
    if (entry.updateType === 'delete') return this.#drop(entry)
    const body = settle(entry.draft)
    entry.draft = body
    entry.active = body
    entry.updateType = null
  }

  /** Back to the active content; what was never provisioned disappears. */
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

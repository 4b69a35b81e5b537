import { Type, type Static } from '@sinclair/typebox'

/** `{href}`: how the PCE points from one object to another. */
export const Reference = Type.Object({ href: Type.String() })
export type Reference = Static<typeof Reference>

/** Fields the PCE adds to every object on reads; all read only. */
export interface PceObject {
  href: string
  created_at?: string
  updated_at?: string
  created_by?: Reference | null
  updated_by?: Reference | null
  /** A field this release does not know is kept as it came. */
  [field: string]: unknown
}

/** What a draft object adds: the pending change, or null. */
export interface VersionedObject extends PceObject {
  update_type?: 'create' | 'update' | 'delete' | null
  deleted_at?: string | null
}

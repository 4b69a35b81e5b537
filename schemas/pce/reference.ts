import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Nullable } from '../common.js'

/**
 * The shapes in this folder are what the PCE answers (P49), not what it accepts. One convention for all of them:
 * - objects are open: a release adds fields, and what this one does not know is kept as it came;
 * - `href` and what names an object (name, key, value) are always there, so is what the reference marks `*`, except for the
 *   audit fields, which some kinds and releases leave out;
 * - a list may be null instead of empty and a text that may be missing may be null too (P43); numbers, switches and enumerations are null
 *   only where the reference says so or a live answer showed it;
 * - limits of writes (lengths, ranges) are not repeated: an answer is not refused for what it holds.
 */

/** `{href}`: how the PCE points from one object to another. */
export const Reference = Type.Object({ href: Type.String() })
export type Reference = Static<typeof Reference>

/** The TypeScript type of a shape: its fields, and whatever else came. */
export type Read<T extends TSchema> = Static<T> & { [field: string]: unknown }

/** A field that may be missing or null. */
export const Maybe = <T extends TSchema>(schema: T) => Type.Optional(Nullable(schema))
export const MaybeText = Maybe(Type.String())
export const MaybeFlag = Type.Optional(Type.Boolean())
export const MaybeNumber = Type.Optional(Type.Integer())

export const List = <T extends TSchema>(items: T) => Nullable(Type.Array(items))
export const MaybeList = <T extends TSchema>(items: T) => Maybe(Type.Array(items))

/** One of these words. A union of constants, because TypeBox's own checks do not know JSON Schema's `enum`. */
export const OneOf = <const T extends readonly string[]>(...values: T) =>
  Type.Unsafe<T[number]>(Type.Union(values.map((value) => Type.Literal(value))))

/** Fields whose names the PCE makes up, such as annotations and settings of other systems. */
export const AnyFields = Type.Record(Type.String(), Type.Unknown())

/** Fields the PCE adds to every object on reads; all read only. */
export const AUDIT_FIELDS = {
  created_at: Type.Optional(Type.String()),
  updated_at: Type.Optional(Type.String()),
  created_by: Maybe(Reference),
  updated_by: Maybe(Reference),
}
export const OBJECT_FIELDS = {
  href: Type.String(),
  ...AUDIT_FIELDS,
  /** What the caller may do: write, provision, delete. */
  caps: MaybeList(Type.String()),
}

export const UpdateType = OneOf('create', 'update', 'delete')

/** What a draft object adds: the pending change, or null. */
export const VERSIONED_FIELDS = {
  ...OBJECT_FIELDS,
  update_type: Maybe(UpdateType),
  deleted_at: MaybeText,
  deleted_by: Maybe(Reference),
}

/** The object's key in another system; unique as a pair within a kind. */
export const EXTERNAL_FIELDS = { external_data_set: MaybeText, external_data_reference: MaybeText }

/** What objects of nearly all kinds have; events and authentication settings name their authors in other ways. */
export const PceObject = Type.Object(OBJECT_FIELDS)
export type PceObject = Read<typeof PceObject>

export const VersionedObject = Type.Object(VERSIONED_FIELDS)
export type VersionedObject = Read<typeof VersionedObject>

/** How people and services that are not kinds of their own are named as authors. */
export const Author = Type.Object({ username: MaybeText })

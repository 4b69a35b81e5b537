import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Nullable } from '../common.js'

/**
 * The schemas in this folder describe what the PCE returns (P49), not what it accepts. They share one convention:
 * - objects are open: releases add fields, and unknown fields are kept unchanged;
 * - `href` and the fields that identify an object (name, key, value) are required, and so are the fields that the
 *   vendor's API reference marks with `*`, except for the audit fields, which some kinds and releases leave out;
 * - a list may be null instead of empty, and an optional text may be null (P43); numbers, booleans and enumerations are
 *   null only if the API reference says so or a real answer has shown it;
 * - limits for writes (lengths, ranges) are not repeated, because an answer is not refused for its values.
 */

/** `{href}`: the form in which the PCE refers from one object to another. */
export const Reference = Type.Object({ href: Type.String() })
export type Reference = Static<typeof Reference>

/** The TypeScript type of a schema: its fields, and any further fields that the PCE sends. */
export type Read<T extends TSchema> = Static<T> & { [field: string]: unknown }

/** Creates the schema of a field that may be missing or null. */
export const Maybe = <T extends TSchema>(schema: T) => Type.Optional(Nullable(schema))
export const MaybeText = Maybe(Type.String())
export const MaybeFlag = Type.Optional(Type.Boolean())
export const MaybeNumber = Type.Optional(Type.Integer())

export const List = <T extends TSchema>(items: T) => Nullable(Type.Array(items))
export const MaybeList = <T extends TSchema>(items: T) => Maybe(Type.Array(items))

/**
 * Creates the schema of a string that must be one of the given values. It is a union of constants, because TypeBox's
 * own validation does not support JSON Schema's `enum`.
 */
export const OneOf = <const T extends readonly string[]>(...values: T) =>
  Type.Unsafe<T[number]>(Type.Union(values.map((value) => Type.Literal(value))))

/** Fields whose names are not known in advance, such as annotations and settings of other systems. */
export const AnyFields = Type.Record(Type.String(), Type.Unknown())

/** The read-only fields that say when an object was created and changed, and by whom. */
export const AUDIT_FIELDS = {
  created_at: Type.Optional(Type.String()),
  updated_at: Type.Optional(Type.String()),
  created_by: Maybe(Reference),
  updated_by: Maybe(Reference),
}
export const OBJECT_FIELDS = {
  href: Type.String(),
  ...AUDIT_FIELDS,
  /** The actions that the caller may perform: write, provision, delete. */
  caps: MaybeList(Type.String()),
}

export const UpdateType = OneOf('create', 'update', 'delete')

/**
 * The fields that only versioned objects have, including the type of the pending change, which is null if there is
 * none.
 */
export const VERSIONED_FIELDS = {
  ...OBJECT_FIELDS,
  update_type: Maybe(UpdateType),
  deleted_at: MaybeText,
  deleted_by: Maybe(Reference),
}

/** The object's key in another system; the combination of these two fields is unique within a kind of object. */
export const EXTERNAL_FIELDS = { external_data_set: MaybeText, external_data_reference: MaybeText }

/**
 * The fields that objects of nearly all kinds have. Only events and authentication settings name their authors in other
 * fields.
 */
export const PceObject = Type.Object(OBJECT_FIELDS)
export type PceObject = Read<typeof PceObject>

export const VersionedObject = Type.Object(VERSIONED_FIELDS)
export type VersionedObject = Read<typeof VersionedObject>

/** The author of a change, for objects that give the author's user name instead of an href. */
export const Author = Type.Object({ username: MaybeText })

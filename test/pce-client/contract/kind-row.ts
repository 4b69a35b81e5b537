import type { RequestOptions } from '../../../pce-client/types.js'
import type { Json } from './start-contract-pce.js'

/** A body to send and what a read must show of it. */
export interface Write {
  body: object
  /** Default: the body itself. */
  reads?: Json
}

/** What P9, P12 and P49 say of one kind, as one row. */
export interface KindRow {
  /** The specification's name. */
  kind: string
  /** Below `/api/v2`; `draft` stands for the version of versioned kinds. Below a parent, the parent's href is its beginning. */
  path: string
  versioned?: true
  parent?: string
  /** One object, or one list, at the path itself. */
  single?: 'object' | 'list'
  /** What the last segment of an href is, as it stands on the wire. */
  id?: RegExp
  /** Fields every read has (the starred ones of P49). */
  fields: readonly string[]
  /** The smallest documented body first, then a full one. None: the kind has no POST. */
  creates?: readonly Write[]
  arrayCreate?: true
  /** Properties that only the answer of the creating POST has (P40). */
  secret?: string
  /** A PUT of an id of the caller's choice creates (P38). */
  chosen?: Write & { id: string }
  /** With `of`, the change is one of a new object of this body that nobody has read yet, and `passes` looks at it. */
  update?: Write & { of?: object; passes?: (object: Json) => boolean }
  remove?: true
  /** A query of b.2 and what passes it: at least one object must, at least one must not. Absent: the kind has no parameters. */
  filter?: {
    params: NonNullable<RequestOptions['params']>
    wire: Record<string, string>
    keeps: (object: Json, index: number) => boolean
    /** Nothing of what there is passes. */
    none?: true
  }
  /** A body that fails the schema. */
  bad?: object
  /** A body that is refused for another reason: a duplicate, a broken business rule. */
  conflict?: { body: object; token?: string }
  /** An id that no object has, in the form of the kind's ids. */
  unknown?: string
  /** How a change of this kind gets into a change subset; by default its own href under its own name. */
  provisions?: { type: string; href: string }
}

const INT = /^\d+$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const NO_UUID = '00000000-dead-4000-8000-000000000000'
export const ID = { int: INT, uuid: UUID }

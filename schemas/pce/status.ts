import { Type } from '@sinclair/typebox'
import { Maybe, MaybeNumber, MaybeText, Reference, OBJECT_FIELDS, type Read } from './reference.js'

/** The release that a PCE runs. */
export const ProductVersion = Type.Object({
  version: Type.String(),
  build: MaybeNumber,
  long_display: Type.Optional(Type.String()),
  short_display: Type.Optional(Type.String()),
  product_name: Type.Optional(Type.String()),
  release_info: MaybeText,
  engineering_info: MaybeText,
})
export type ProductVersion = Read<typeof ProductVersion>

/** The availability of a node. The client creates this object, because the PCE answers with a status and no body. */
export const NodeAvailability = Type.Object({ available: Type.Boolean() })
export type NodeAvailability = Read<typeof NodeAvailability>

/**
 * The role of a PCE in its supercluster. The client creates this object, because the PCE answers with a status and no
 * body.
 */
export const SuperclusterLeader = Type.Object({ leader: Type.Boolean() })
export type SuperclusterLeader = Read<typeof SuperclusterLeader>

/** A job that was started by a GET with `Prefer: respond-async` (P10). */
export const Job = Type.Object({
  ...OBJECT_FIELDS,
  job_type: MaybeText,
  description: MaybeText,
  status: Type.String(),
  requested_at: MaybeText,
  requested_by: Maybe(Reference),
  terminated_at: MaybeText,
  /**
   * The place where the data can be fetched when the job is done; `{}` before that, or the reason if the job failed.
   */
  result: Maybe(Type.Object({ href: Type.Optional(Type.String()), message: Type.Optional(Type.String()) })),
})
export type Job = Read<typeof Job>

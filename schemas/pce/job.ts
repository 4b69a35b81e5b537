import { Type } from '@sinclair/typebox'
import { Maybe, MaybeText, OBJECT_FIELDS, Reference, type Read } from './reference.js'

/** Work that a GET with `Prefer: respond-async` started (P10). */
export const Job = Type.Object({
  ...OBJECT_FIELDS,
  job_type: MaybeText,
  description: MaybeText,
  status: Type.String(),
  requested_at: MaybeText,
  requested_by: Maybe(Reference),
  terminated_at: MaybeText,
  /** Where the data lies when it is done, `{}` until then, the reason when it failed. */
  result: Maybe(Type.Object({ href: Type.Optional(Type.String()), message: Type.Optional(Type.String()) })),
})
export type Job = Read<typeof Job>

import { Type } from '@sinclair/typebox'
import { MaybeText, type Read } from './reference.js'

/** A row of an import as the PCE answers it; no source describes it well (P54). */
export const ImportResult = Type.Object({
  href: Type.Optional(Type.String()),
  status: MaybeText,
  token: MaybeText,
  message: MaybeText,
})
export type ImportResult = Read<typeof ImportResult>

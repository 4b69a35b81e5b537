import { Type } from '@sinclair/typebox'
import { MaybeNumber, MaybeText, type Read } from './reference.js'

/** Which release a PCE runs. */
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

/** Made by the client: the PCE answers with a status and no body. */
export const NodeAvailability = Type.Object({ available: Type.Boolean() })
export type NodeAvailability = Read<typeof NodeAvailability>

/** Made by the client, as above. */
export const SuperclusterLeader = Type.Object({ leader: Type.Boolean() })
export type SuperclusterLeader = Read<typeof SuperclusterLeader>

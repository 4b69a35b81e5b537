import { Type } from '@sinclair/typebox'
import { Maybe, MaybeList, MaybeNumber, type Read } from './reference.js'

const VenTypes = MaybeList(Type.String())

/** The package of a release for one operating system. */
export const VenImage = Type.Object({
  href: Type.String(),
  release: Type.String(),
  distribution: Type.String(),
  architecture: Type.String(),
  major_version: Type.Integer(),
  min_minor_version: Type.Integer(),
  max_minor_version: Maybe(Type.Integer()),
  filename: Type.String(),
  ven_types: VenTypes,
})
export type VenImage = Read<typeof VenImage>

/** VEN software that the PCE holds. */
export const VenRelease = Type.Object({
  href: Type.String(),
  release: Type.String(),
  default: Type.Boolean(),
  default_release_ven_types: VenTypes,
  org_id: MaybeNumber,
  ven_types: VenTypes,
  images: MaybeList(VenImage),
})
export type VenRelease = Read<typeof VenRelease>

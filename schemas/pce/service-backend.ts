import { Type } from '@sinclair/typebox'
import { Maybe, MaybeText, type Read } from './reference.js'

/** What stands behind a service of a container cluster. */
export const ServiceBackend = Type.Object({
  name: Type.String(),
  kind: Type.String(),
  namespace: MaybeText,
  created_at: Type.String(),
  updated_at: Type.String(),
  virtual_services: Maybe(Type.Unknown()),
})
export type ServiceBackend = Read<typeof ServiceBackend>

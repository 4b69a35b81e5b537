import type { PictureKind } from './picture.js'

/** For each kind of picture, the tool whose result is drawn. */
export const TOOL_OF = {
  map: 'get-traffic-flows-summary',
  ringfence: 'create-ringfence',
  change: 'compare-draft-active',
  paths: 'detect-lateral-movement-paths',
} as const satisfies Record<PictureKind, string>

export const KINDS = Object.keys(TOOL_OF) as PictureKind[]

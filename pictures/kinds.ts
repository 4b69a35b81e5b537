import type { PictureKind } from './picture.js'

/** The tool whose answer is drawn, for each kind of picture. */
export const TOOL_OF = {
  map: 'get-traffic-flows-summary',
  ringfence: 'create-ringfence',
  change: 'compare-draft-active',
  paths: 'detect-lateral-movement-paths',
} as const satisfies Record<PictureKind, string>

export const KINDS = Object.keys(TOOL_OF) as PictureKind[]

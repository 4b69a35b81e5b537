import { drawChange } from './drawings/draw-change.js'
import { drawMap, type MapOptions } from './drawings/draw-map.js'
import { drawPaths } from './drawings/draw-paths.js'
import { drawRingfence } from './drawings/draw-ringfence.js'
import { readChanges, type ChangeAnswer } from './facts/change-facts.js'
import { readMap, type MapAnswer } from './facts/map-facts.js'
import { readPaths } from './facts/paths-facts.js'
import { readRingfence } from './facts/ringfence-facts.js'
import type { Picture, PictureKind } from './picture.js'

/**
 * Draws a picture of the given kind from the answer of the tool for this kind (`TOOL_OF`). Only an answer about policy
 * changes can have several pages. Throws TypeError if the answer does not fit the kind.
 */
export function drawPicture(kind: PictureKind, pages: readonly object[], options?: MapOptions): Picture {
  const [answer] = pages
  switch (kind) {
    case 'map':
      return drawMap(readMap(answer as MapAnswer), options)
    case 'ringfence':
      return drawRingfence(readRingfence(answer as Parameters<typeof readRingfence>[0]))
    case 'change':
      return drawChange(readChanges(pages as readonly ChangeAnswer[]))
    case 'paths':
      return drawPaths(readPaths(answer as Parameters<typeof readPaths>[0]))
  }
}

import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import { compareTexts } from '../text/compare-texts.js'
import { endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import type { PresentModes } from './present-modes.js'

/** Collects the workloads whose VEN is not known to answer, as far as an answer depends on them. */
export interface SilentEnds {
  isAny: (...ends: readonly FlowEnd[]) => boolean
  /**
   * Returns the mode of an end, or `none` if its VEN is not known to answer. A connection that is dropped with these
   * modes is dropped whatever the silent VENs do.
   */
  sureModeOf: (end: FlowEnd) => EndMode
  /** Notes that the answer depends on the silent ones among these ends. */
  add: (...ends: readonly FlowEnd[]) => void
  /** Returns the names of the workloads that were noted, each once and in alphabetical order. */
  names: () => string[]
}

/** Creates an empty collection for one answer. */
export function createSilentEnds({ modeOf, isSilent }: Pick<PresentModes, 'modeOf' | 'isSilent'>): SilentEnds {
  const names = new Map<string | null, string>()
  return {
    isAny: (...ends) => ends.some(isSilent),
    sureModeOf: (end) => (isSilent(end) ? 'none' : modeOf(end)),
    add(...ends) {
      for (const end of ends) if (isSilent(end)) names.set(end.workload, endpointLabel(end))
    },
    names: () => [...names.values()].sort(compareTexts),
  }
}

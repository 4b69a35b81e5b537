import { dropsOf, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'

/** A change of the enforcement mode of a workload; `from` is null if the workload has no VEN yet. */
export interface ModeChange {
  from: EnforcementMode | null
  to: EnforcementMode
}

/** Returns whether a change of mode makes a workload drop more traffic (stricter), less (looser), or the same. */
export function directionOf({ from, to }: ModeChange): 'stricter' | 'looser' | 'same' {
  const difference = dropsOf(to) - (from === null ? 0 : dropsOf(from))
  return difference > 0 ? 'stricter' : difference < 0 ? 'looser' : 'same'
}

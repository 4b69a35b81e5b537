import { dropsOf, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'

/** The change of an end's enforcement mode; `from` is null if the end has no VEN yet. */
export interface ModeChange {
  from: EnforcementMode | null
  to: EnforcementMode
}

/** Returns whether a change of mode makes an end drop more (stricter) or less (looser), or makes no difference. */
export function directionOf({ from, to }: ModeChange): 'stricter' | 'looser' | 'same' {
  const difference = dropsOf(to) - (from === null ? 0 : dropsOf(from))
  return difference > 0 ? 'stricter' : difference < 0 ? 'looser' : 'same'
}

import type { Actor } from '../../schemas/pce/rule-set.js'

/**
 * Returns the selector of an actor (an entry on one side of a rule) and the object that it selects. Selectors that are
 * null do not count, because a PCE may list all selectors and set only one.
 */
export function selectorOf({ exclusion: _exclusion, ...actor }: Actor): [selector: string, target: unknown] {
  const said = Object.entries(actor).find(([, target]) => target !== null && target !== undefined)
  return said ?? ['unknown', undefined]
}

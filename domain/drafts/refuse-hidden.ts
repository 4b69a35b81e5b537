import { ToolError } from '../../schemas/errors.js'
import { hidesCharacters } from '../text/escape-text.js'

/** Throws invalid_argument for a new name, by argument, that holds hidden characters: on other screens than ours it passes for another one. */
export function refuseHidden(names: Readonly<Record<string, string>>): void {
  for (const [argument, name] of Object.entries(names)) {
    if (!hidesCharacters(name)) continue
    throw new ToolError('invalid_argument', `${argument} "${name}" has hidden characters in it.`, {
      argument,
    })
  }
}

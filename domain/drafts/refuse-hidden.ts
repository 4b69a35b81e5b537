import { ToolError } from '../../schemas/errors.js'
import { cleanText } from '../text/clean-text.js'

/**
 * Throws invalid_argument for a new name, by argument, that answers would show otherwise than it is (hidden characters, tabs):
 * nobody could refer to the object by what they see, and it could pass for another one.
 */
export function refuseHidden(names: Readonly<Record<string, string>>): void {
  for (const [argument, name] of Object.entries(names)) {
    if (cleanText(name) === name) continue
    throw new ToolError('invalid_argument', `${argument} "${cleanText(name)}" has hidden characters in it.`, {
      argument,
    })
  }
}

import { Type } from '@sinclair/typebox'

const NAME = '^\\S(?:.*\\S)?$'
const LABEL_KEY = '^[^\\s=](?:[^=]*[^\\s=])?$'

/** Explanations of the two patterns above, so that nobody has to read a regular expression to correct an argument. */
export const PATTERN_MEANINGS: ReadonlyMap<string, string> = new Map([
  [NAME, 'must not be blank, nor begin or end with white space'],
  [LABEL_KEY, 'must not be blank, nor begin or end with white space, nor hold a "="'],
])

/**
 * Creates the schema of a name for a new object: at most 255 characters, and neither blank nor with blanks at its start
 * or end, since callers could not refer to an object with such a name.
 */
export const NewName = (description: string, options: { listed?: string } = {}) =>
  Type.String({ maxLength: 255, pattern: NAME, description, ...options })

/**
 * Creates the schema of a key for a new label. The key cannot contain `=`, because references are split at the first
 * `=` (`key=value`).
 */
export const NewLabelKey = (description: string) => Type.String({ maxLength: 255, pattern: LABEL_KEY, description })

import { Type } from '@sinclair/typebox'

const NAME = '^\\S(?:.*\\S)?$'
const LABEL_KEY = '^[^\\s=](?:[^=]*[^\\s=])?$'

/**
 * What the patterns above require, in words, so that nobody has to read a regular expression to correct an argument.
 */
export const PATTERN_MEANINGS: ReadonlyMap<string, string> = new Map([
  [NAME, 'must not be blank, nor begin or end with white space'],
  [LABEL_KEY, 'must not be blank, nor begin or end with white space, nor hold a "="'],
])

/**
 * A name for a new object: not blank, without leading or trailing blanks (nobody could refer to it), at most 255
 * characters.
 */
export const NewName = (description: string) => Type.String({ maxLength: 255, pattern: NAME, description })

/** A key for a new label. It cannot contain `=`, because references split `key=value` at the first one. */
export const NewLabelKey = (description: string) => Type.String({ maxLength: 255, pattern: LABEL_KEY, description })

/**
 * Readers for fields of the PCE's objects whose type cannot be relied on: any text may be null, and releases leave
 * fields out. A value of an unexpected type is treated as missing.
 */

/** Returns a text, or null if the value is empty or anything else. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** Returns a boolean, or null if the value is anything else. */
export const flagOf = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null)

/** Returns the objects of a list, without entries of other types; null if the value is no list. */
export const objectsOf = (value: unknown): Record<string, unknown>[] | null =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : null

/** Returns the fields of an object; none if the value is anything else. */
export const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

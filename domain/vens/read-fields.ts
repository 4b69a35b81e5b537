/**
 * Functions that read fields of the PCE's objects without relying on their declared types: any text may be null, and
 * some releases leave fields out. A value of an unexpected type is treated as missing.
 */

/** Returns the value if it is a non-empty string; null otherwise. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** Returns the value if it is a boolean; null otherwise. */
export const flagOf = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null)

/** Returns the objects in a list, without entries of other types; null if the value is not a list. */
export const objectsOf = (value: unknown): Record<string, unknown>[] | null =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : null

/** Returns the fields of an object; an empty object if the value is not an object. */
export const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

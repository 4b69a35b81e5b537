/**
 * Returns true for a value that means something, that is, anything except null, false, an empty string and an empty
 * list.
 */
export const isSaid = (value: unknown): boolean =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0)

/** Returns true if labels on one side of a rule select only workloads, which is the default of `resolve_labels_as`. */
export const isUsual = (kinds: unknown) => !isSaid(kinds) || (Array.isArray(kinds) && kinds.join() === 'workloads')

/**
 * For each field whose default can also be given explicitly, a function that tests whether a value is the default.
 * Every other field has its default if it is absent, null, false, an empty string or an empty list.
 */
const DEFAULTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  enabled: (value) => value === true,
  network_type: (value) => !isSaid(value) || value === 'brn',
  resolve_labels_as: (value) => {
    const { providers, consumers } = (value ?? {}) as { providers?: unknown; consumers?: unknown }
    return isUsual(providers) && isUsual(consumers)
  },
}

/** Returns true if the value is the default of this field of a policy object. */
export const isDefault = (field: string, value: unknown): boolean =>
  Object.hasOwn(DEFAULTS, field) ? (DEFAULTS[field] as (value: unknown) => boolean)(value) : !isSaid(value)

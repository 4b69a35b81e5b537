/** Returns true for a value that means something, unlike null, false, an empty text or an empty list. */
export const isSaid = (value: unknown): boolean =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0)

/**
 * Returns true if the labels on one side of a rule stand for workloads only. This is the default of
 * `resolve_labels_as`.
 */
export const isUsual = (kinds: unknown) => !isSaid(kinds) || (Array.isArray(kinds) && kinds.join() === 'workloads')

/**
 * Functions that test whether a value is the default, for the fields whose default can also be given explicitly. Every
 * other field has its default if it is absent, null, false, an empty text or an empty list.
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

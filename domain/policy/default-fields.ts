/** Returns true for a value that differs from an absent field. */
export const isSaid = (value: unknown): boolean =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0)

/** Returns true if the labels of a side stand for workloads only, which is the usual way. */
export const isUsual = (kinds: unknown) => !isSaid(kinds) || (Array.isArray(kinds) && kinds.join() === 'workloads')

/**
 * The fields whose default is not the absence of a value, each with a test for the default. Every other field has its
 * default if it is absent: null, false, an empty text or an empty list.
 */
const DEFAULTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  enabled: (value) => value === true,
  network_type: (value) => !isSaid(value) || value === 'brn',
  resolve_labels_as: (value) => {
    const { providers, consumers } = (value ?? {}) as { providers?: unknown; consumers?: unknown }
    return isUsual(providers) && isUsual(consumers)
  },
}

/** Returns true if a policy object has this value in this field when nobody chose another one. */
export const isDefault = (field: string, value: unknown): boolean =>
  Object.hasOwn(DEFAULTS, field) ? (DEFAULTS[field] as (value: unknown) => boolean)(value) : !isSaid(value)

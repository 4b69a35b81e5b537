import type { NamedKind } from '../inventory/find-object.js'

/**
 * Names an object for `inOrder`. Objects are named by what callers take for unique, because two calls may add to one
 * that neither has created yet.
 */
export const orderOf = (kind: NamedKind, name: string): string => `${kind} ${name}`

import type { TSchema } from '@sinclair/typebox'
import { FIELD_SYNONYMS, OPEN_FIELDS, VALUE_SYNONYMS } from '../../schemas/synonyms.js'

/** A schema that may belong to an open object. */
export interface OpenSchema extends TSchema {
  [OPEN_FIELDS]?: readonly string[]
}

/**
 * Replaces synonyms in arguments with the words of the schema, at every depth (D101). Both names and values of
 * enumerations can be synonyms. An unknown name or value that is no synonym is kept, so that the validation refuses it.
 * The input is never modified; if nothing needs to be replaced, the input itself is returned.
 */
export function readSynonyms(value: Record<string, unknown>, schema: TSchema): Record<string, unknown>
export function readSynonyms(value: unknown, schema: TSchema): unknown
export function readSynonyms(value: unknown, schema: TSchema): unknown {
  const variants = alternativesOf(schema)
  if (Array.isArray(value)) return mapItems(value, variants, readSynonyms)
  if (typeof value === 'string') return readValue(value, variants)
  if (typeof value !== 'object' || value === null) return value
  const object = variants.find(({ type }) => type === 'object')
  return object === undefined ? value : readFields(value as Record<string, unknown>, object)
}

function readFields(value: Record<string, unknown>, schema: OpenSchema): Record<string, unknown> {
  const properties = (schema.properties ?? {}) as Record<string, TSchema>
  const known = namesOf(schema, properties)
  const read = new Map<string, unknown>()
  let isSame = true
  for (const [name, inner] of Object.entries(value)) {
    const meant = nameMeant(name, known)
    // A synonym is kept as it is if the call already contains the argument that it means, under its own name or under
    // another synonym.
    const own = meant === undefined || Object.hasOwn(value, meant) || read.has(meant) ? name : meant
    const part = Object.hasOwn(properties, own) ? properties[own] : undefined
    // If the argument is a list, its synonym may be in the singular and have a single value.
    const list = own !== name && part?.type === 'array' && !Array.isArray(inner) ? [inner] : inner
    const now = part === undefined ? inner : readSynonyms(list, part)
    read.set(own, now)
    isSame &&= own === name && now === inner
  }
  // `Object.fromEntries` treats `__proto__` like any other property name.
  return isSame ? value : Object.fromEntries(read)
}

const names = new WeakMap<TSchema, ReadonlySet<string>>()

/** Returns the names of the schema's fields. They are cached, because they are needed for every call. */
export function namesOf(schema: OpenSchema, properties: Record<string, TSchema>): ReadonlySet<string> {
  let known = names.get(schema)
  if (known === undefined) {
    known = new Set(schema[OPEN_FIELDS] ?? Object.keys(properties))
    names.set(schema, known)
  }
  return known
}

/** Returns the known name that a synonym means; undefined if the name is itself known, or is not a synonym. */
export function nameMeant(name: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(name) || !Object.hasOwn(FIELD_SYNONYMS, name)) return undefined
  const meant = (FIELD_SYNONYMS[name] ?? []).filter((one) => known.has(one))
  return meant.length === 1 ? meant[0] : undefined
}

function readValue(value: string, variants: readonly TSchema[]): string {
  const values = variants.flatMap((variant) => (variant.enum as string[] | undefined) ?? [])
  if (values.length === 0 || values.includes(value)) return value
  let meant: string | undefined = fold(value)
  for (let steps = 0; steps <= MOST_STEPS && meant !== undefined; steps++) {
    const found = values.find((one) => fold(one) === meant)
    if (found !== undefined) return found
    meant = Object.hasOwn(VALUE_SYNONYMS, meant) ? VALUE_SYNONYMS[meant] : undefined
  }
  return value
}

/**
 * Maximum length of a chain of synonyms. A synonym can lead to another synonym, such as `rulesets` to `rule_sets` and
 * then to `rule_set`.
 */
const MOST_STEPS = 2

const fold = (text: string) =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_')

/**
 * Applies a change to each item of a list, with the schema of its items among these alternatives. Returns the list
 * itself if nothing changes, or if no alternative is a list.
 */
export function mapItems(
  list: readonly unknown[],
  variants: readonly OpenSchema[],
  change: (item: unknown, schema: TSchema) => unknown,
): readonly unknown[] {
  const items = variants.find(({ type }) => type === 'array')?.items as TSchema | undefined
  if (items === undefined) return list
  const changed = list.map((item) => change(item, items))
  return changed.some((item, at) => item !== list[at]) ? changed : list
}

/** Returns the alternatives of a schema at every depth of nested unions, or the schema itself if it is no union. */
export const alternativesOf = (schema: TSchema): OpenSchema[] =>
  Array.isArray(schema.anyOf) ? (schema.anyOf as TSchema[]).flatMap(alternativesOf) : [schema]

import type { TSchema } from '@sinclair/typebox'
import { FIELD_SYNONYMS, OPEN_FIELDS, VALUE_SYNONYMS } from '../../schemas/synonyms.js'

interface OpenSchema extends TSchema {
  [OPEN_FIELDS]?: readonly string[]
}

/**
 * Arguments in the words of the schema, as deep as it reaches (D101): a name or value of an enumeration that it does not have becomes the
 * one that the word is a synonym of. What is no synonym stays as it is, for the check to refuse. Never changes what it is given; what
 * needs no change comes back itself.
 */
export function readSynonyms(value: Record<string, unknown>, schema: TSchema): Record<string, unknown>
export function readSynonyms(value: unknown, schema: TSchema): unknown
export function readSynonyms(value: unknown, schema: TSchema): unknown {
  const variants = alternativesOf(schema)
  if (Array.isArray(value)) {
    const items = variants.find(({ type }) => type === 'array')?.items as TSchema | undefined
    if (items === undefined) return value
    const read = (value as unknown[]).map((item) => readSynonyms(item, items))
    return read.some((item, at) => item !== (value as unknown[])[at]) ? read : value
  }
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
    // Beside what it means, or another word for that, it would be said twice.
    const own = meant === undefined || Object.hasOwn(value, meant) || read.has(meant) ? name : meant
    const part = Object.hasOwn(properties, own) ? properties[own] : undefined
    // Its synonym may be singular, where the argument is a list.
    const list = own !== name && part?.type === 'array' && !Array.isArray(inner) ? [inner] : inner
    const now = part === undefined ? inner : readSynonyms(list, part)
    read.set(own, now)
    isSame &&= own === name && now === inner
  }
  // An own `__proto__` stays an ordinary name.
  return isSame ? value : Object.fromEntries(read)
}

const names = new WeakMap<TSchema, ReadonlySet<string>>()

/** What its fields are called; every call asks for it. */
function namesOf(schema: OpenSchema, properties: Record<string, TSchema>): ReadonlySet<string> {
  let known = names.get(schema)
  if (known === undefined) {
    known = new Set(schema[OPEN_FIELDS] ?? Object.keys(properties))
    names.set(schema, known)
  }
  return known
}

function nameMeant(name: string, known: ReadonlySet<string>): string | undefined {
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

/** A word may mean one that means another: `rulesets`, `rule_sets`, `rule_set`. */
const MOST_STEPS = 2

const fold = (text: string) =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_')

const alternativesOf = (schema: TSchema): OpenSchema[] =>
  Array.isArray(schema.anyOf) ? (schema.anyOf as TSchema[]).flatMap(alternativesOf) : [schema]

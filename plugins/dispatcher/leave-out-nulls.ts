import type { TSchema } from '@sinclair/typebox'
import type { ListedTool } from '../../tools/listed-tool.js'
import { alternativesOf, mapItems, nameMeant, namesOf, type OpenSchema } from './read-synonyms.js'

/**
 * Removes optional arguments whose value is null from the arguments of a call, at every depth (D242), because agents
 * send null for arguments that they do not use. A null is kept if the argument's schema permits it, and also where
 * validation must refuse it: for an unknown name, for a required argument, and in a list. The input is never modified;
 * if there is nothing to remove, the input itself is returned.
 */
export function leaveOutNulls(value: Record<string, unknown>, schema: TSchema): Record<string, unknown>
export function leaveOutNulls(value: unknown, schema: TSchema): unknown
export function leaveOutNulls(value: unknown, schema: TSchema): unknown {
  if (typeof value !== 'object' || value === null) return value
  const variants = alternativesOf(schema)
  if (Array.isArray(value)) return mapItems(value, variants, leaveOutNulls)
  const object = variants.find(({ type }) => type === 'object')
  return object === undefined ? value : withoutNulls(value as Record<string, unknown>, object)
}

function withoutNulls(value: Record<string, unknown>, schema: OpenSchema): Record<string, unknown> {
  const properties = (schema.properties ?? {}) as Record<string, TSchema>
  const required = (schema.required ?? []) as string[]
  const known = namesOf(schema, properties)
  const kept: [string, unknown][] = []
  let isSame = true
  for (const [name, inner] of Object.entries(value)) {
    const own = known.has(name) ? name : nameMeant(name, known)
    const part = own !== undefined && Object.hasOwn(properties, own) ? properties[own] : undefined
    if (inner === null && own !== undefined && !required.includes(own) && !takesNull(part)) {
      isSame = false
      continue
    }
    const now = part === undefined ? inner : leaveOutNulls(inner, part)
    isSame &&= now === inner
    kept.push([name, now])
  }
  // `Object.fromEntries` treats `__proto__` like any other property name.
  return isSame ? value : Object.fromEntries(kept)
}

const takesNull = (schema: TSchema | undefined): boolean =>
  schema !== undefined && alternativesOf(schema).some(({ type }) => type === 'null')

/**
 * Creates the function that normalises the arguments of a call by removing the nulls that mean nothing. Every part of
 * the server must use it before it reads arguments. The arguments of an unknown tool are returned unchanged.
 */
export function createArgumentsReader(
  tools: readonly ListedTool[],
): (name: string, args: Record<string, unknown>) => Promise<Record<string, unknown>> {
  const listed = new Map(tools.map((tool) => [tool.name, tool]))
  return async (name, args) => {
    const tool = await listed.get(name)?.load()
    return tool === undefined ? args : leaveOutNulls(args, tool.input)
  }
}

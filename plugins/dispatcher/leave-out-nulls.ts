import type { TSchema } from '@sinclair/typebox'
import type { ListedTool } from '../../tools/listed-tool.js'
import { alternativesOf, mapItems, nameMeant, namesOf, type OpenSchema } from './read-synonyms.js'

/**
 * Leaves out of a call's arguments, at every depth, each optional argument whose value is null (D242). Agents send null
 * for an argument that they do not use. An unknown name, a required argument and an entry of a list keep their null, so
 * that the validation refuses them. So does an argument whose schema takes null. The input is never modified; if
 * nothing needs to be left out, the input itself is returned.
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
  // `Object.fromEntries` treats `__proto__` as an ordinary property name.
  return isSame ? value : Object.fromEntries(kept)
}

const takesNull = (schema: TSchema | undefined): boolean =>
  schema !== undefined && alternativesOf(schema).some(({ type }) => type === 'null')

/**
 * Creates the function that reads the arguments of a call as every part of this server must read them, whichever part
 * sees the call first: without the nulls that mean nothing. Arguments of an unknown tool are returned as they are.
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

import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { anyOf, leaveOutNamed } from '../../domain/text/leave-out-named.js'

/**
 * A function that returns the entries of tools/list. `offered` contains the names of the tools that are offered to the
 * caller.
 */
export type ListOffered = (offered: ReadonlySet<string>) => Tool[]

/** Matches the description of an argument that only refers to the argument with the same name of another tool. */
const AS_IN = /^As in ([\w-]+)$/

/**
 * Creates the function that returns the entries of tools/list for a set of offered tools. No description mentions a
 * tool that the caller is not offered (D169): a clause that names such a tool is removed, and `As in TOOL` is replaced
 * by that tool's description of the argument. Changed entries are computed only once.
 */
export function createOfferedTools(tools: readonly Tool[]): ListOffered {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  // eslint-disable-next-line no-restricted-syntax -- the names of tools are this project's own
  const anyTool = new RegExp(anyOf([...byName.keys()]), 'g')
  const entries = tools.map((tool) => {
    const text = JSON.stringify([tool.description, tool.inputSchema])
    const named = new Set([...text.matchAll(anyTool)].map(([name]) => name))
    return { tool, named: [...named].filter((name) => name !== tool.name), cut: new Map<string, Tool>() }
  })
  return (offered) =>
    entries.flatMap(({ tool, named, cut }) => {
      if (!offered.has(tool.name)) return []
      const hidden = named.filter((name) => !offered.has(name))
      if (hidden.length === 0) return [tool]
      const key = hidden.join()
      const known = cut.get(key) ?? withoutHidden(tool, anyOf(hidden), byName)
      cut.set(key, known)
      return [known]
    })
}

interface Schema {
  description?: unknown
  properties?: Record<string, Schema>
}

function withoutHidden(tool: Tool, hidden: RegExp, byName: ReadonlyMap<string, Tool>): Tool {
  const describe = (name: string, text: string): string | undefined => {
    const [, other = ''] = AS_IN.exec(text) ?? []
    if (!hidden.test(other)) return leaveOutNamed(text, hidden)
    const there = argumentsIn(byName.get(other)?.inputSchema ?? {})
    const description = there.find(([one]) => one === name)?.[1].description
    return typeof description === 'string' ? description : undefined
  }
  const rewrite = (value: unknown, name: string): unknown => {
    if (Array.isArray(value)) return value.map((one) => rewrite(one, name))
    if (typeof value !== 'object' || value === null) return value
    const part = value as Schema
    const inner = Object.entries(part).map(([key, one]): [string, unknown] => {
      if (key === 'description' && typeof one === 'string') return [key, describe(name, one)]
      if (key === 'properties') {
        const own = Object.entries(one as Record<string, Schema>)
        return [key, Object.fromEntries(own.map(([property, schema]) => [property, rewrite(schema, property)]))]
      }
      return [key, rewrite(one, name)]
    })
    return Object.fromEntries(inner.filter(([, one]) => one !== undefined))
  }
  const description = leaveOutNamed(tool.description ?? '', hidden)
  const inputSchema = rewrite(tool.inputSchema, '') as Tool['inputSchema']
  return { ...tool, ...(description !== undefined && { description }), inputSchema }
}

/** Returns the properties of a schema at every depth, outermost first. */
function argumentsIn(schema: unknown): [name: string, schema: Schema][] {
  if (typeof schema !== 'object' || schema === null) return []
  const own = Object.entries((schema as Schema).properties ?? {})
  return [...own, ...Object.values(schema).flatMap((inner) => argumentsIn(inner))]
}

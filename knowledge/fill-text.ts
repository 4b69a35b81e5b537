import type { ListedTool } from '../tools/listed-tool.js'

/** The tools and values to which a document or prompt may refer. */
export interface Named {
  tools: ReadonlyMap<string, Pick<ListedTool, 'schemas'>>
  /** The values that replace the placeholders `{{@name}}`, by name. They are inserted unchanged. */
  values?: Readonly<Record<string, string>>
}

const PLACEHOLDER = /\{\{([^{}\n]*)\}\}/g
/**
 * Matches the mark `{{?tool}}` at the beginning of a line. The line is shown only to readers to whom that tool is
 * offered.
 */
const CONDITION = /^\{\{\?([\w-]+)\}\} ?/

/**
 * Fills in the placeholders of a document or prompt: `{{tool}}` is replaced with the name of the tool and
 * `{{tool.argument}}` with the name of the argument, both in code style, and `{{@name}}` with the value of that name. A
 * line that is marked with a tool is left out if this tool is not offered. Throws Error for names that do not exist.
 */
export function fillText(text: string, { tools, values = {} }: Named, offered?: ReadonlySet<string>): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [condition = '', needed] = CONDITION.exec(line) ?? []
      if (needed !== undefined && offered?.has(needed) === false) return []
      return [line.slice(condition.length).replaceAll(PLACEHOLDER, (_whole, name: string) => fill(name))]
    })
    .join('\n')

  function fill(name: string): string {
    if (name.startsWith('@')) {
      const value = values[name.slice(1)]
      if (value === undefined) throw new Error(`there is no value '${name}'`)
      return value
    }
    const problem = problemOf(name, tools)
    if (problem !== null) throw new Error(problem)
    return `\`${name.slice(name.indexOf('.') + 1)}\``
  }
}

/**
 * Returns the tools that the placeholders of a document or prompt name. `all` contains all of them, and `always` only
 * those in lines that every reader sees.
 */
export function toolsNamedIn(text: string): { always: Set<string>; all: Set<string> } {
  const named = { always: new Set<string>(), all: new Set<string>() }
  for (const line of text.split('\n')) {
    const isConditional = CONDITION.test(line)
    for (const [, name = ''] of line.replace(CONDITION, '').matchAll(PLACEHOLDER)) {
      if (name.startsWith('@')) continue
      const [tool = ''] = name.split('.')
      named.all.add(tool)
      if (!isConditional) named.always.add(tool)
    }
  }
  return named
}

function problemOf(name: string, tools: ReadonlyMap<string, Pick<ListedTool, 'schemas'>>): string | null {
  const [tool = '', argument, ...rest] = name.split('.')
  const known = tools.get(tool)
  if (known === undefined || rest.length > 0) return `there is no tool '${tool}'`
  if (argument === undefined) return null
  const { properties } = known.schemas().inputSchema as { properties?: object }
  return Object.hasOwn(properties ?? {}, argument) ? null : `${tool} has no argument '${argument}'`
}

const RESOURCE = /illumio:\/\/[\w/-]+/g
/** Matches words in code style that look like names of tools. */
const LIKE_A_TOOL = /`([a-z]+(?:-[a-z]+)+)`/g

/**
 * Checks a document or prompt and describes each mistake in a sentence: tools, arguments, values and resources that do
 * not exist, and tool names that are written without a placeholder. Such names would silently become wrong if a tool
 * were renamed.
 */
export function findTextProblems(text: string, { tools, values = {} }: Named, uris: ReadonlySet<string>): string[] {
  const conditions = text.split('\n').flatMap((line) => CONDITION.exec(line)?.[1] ?? [])
  const names = [...text.replaceAll(/^\{\{\?[\w-]+\}\}/gm, '').matchAll(PLACEHOLDER)].map(([, name]) => name!)
  const verbs = new Set([...tools.keys()].map((name) => name.split('-')[0]))
  const bare = text.replaceAll(PLACEHOLDER, '')
  return [
    ...[...names, ...conditions].flatMap((name) => {
      if (name.startsWith('@')) return name.slice(1) in values ? [] : [`there is no value '${name}'`]
      return problemOf(name, tools) ?? []
    }),
    ...[...bare.matchAll(RESOURCE)].flatMap(([uri]) => (uris.has(uri) ? [] : [`there is no resource '${uri}'`])),
    ...[...tools.keys()].flatMap((name) =>
      // eslint-disable-next-line no-restricted-syntax -- the names of tools are this project's own
      new RegExp(`(?<![\\w/-])${name}(?![\\w/-])`).test(bare) ? [`write {{${name}}} for ${name}`] : [],
    ),
    ...[...bare.matchAll(LIKE_A_TOOL)].flatMap(([, name]) =>
      verbs.has(name!.split('-')[0]) && !tools.has(name!) ? [`there is no tool '${name}'; write {{…}} for one`] : [],
    ),
  ]
}

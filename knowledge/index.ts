import { ToolError } from '../schemas/errors.js'
import type { ToolContext } from '../domain/call.js'
import { quote } from '../domain/text/escape-text.js'
import type { ListedTool } from '../tools/listed-tool.js'
import { completeFrom, type Completion, labelValues } from './complete-names.js'
import { CHANGELOG_URI, type Document, DOCUMENTS, fileOf } from './documents.js'
import { fillText, toolsNamedIn } from './fill-text.js'
import { matchPage, nearPage, PAGE_TEMPLATES, type PageTemplate, toolsOf } from './pages.js'
import { fileOf as promptFileOf, type Prompt, PROMPTS } from './prompts.js'
import { type PagePorts, readPage } from './read-page.js'
import { readText } from './read-text.js'

export interface KnowledgeOptions {
  /** All tools that texts may name. */
  tools: readonly ListedTool[]
  server: {
    /** Returns the text of CHANGELOG.md, or null if it was not shipped. */
    changelog(): Promise<string | null>
  }
  limits: { responseBudgetBytes: number }
  /** Returns the current time in milliseconds since the epoch. */
  now: () => number
}

/** An entry in the answer to the MCP request resources/list. */
export interface ListedResource extends Document {
  mimeType: string
}

/** The content of a resource. */
export interface ResourceText {
  uri: string
  mimeType: string
  text: string
}

/** An entry in the answer to the MCP request resources/templates/list. */
export interface ListedTemplate {
  uriTemplate: string
  name: string
  description: string
  mimeType: string
}

/** The reader of a text, described by the names of the tools that are offered to the reader. */
export interface Reader {
  offered: ReadonlySet<string>
}

/** The reader of a resource, with the functions that are needed to compose a page about objects of the PCE. */
export interface ResourceReader extends Reader, Omit<PagePorts, 'budget'> {
  /** The number of the organisation at the reader's PCE; absent if the reader has no PCE. */
  orgId?: string
}

/** An entry in the answer to the MCP request prompts/list. */
export interface ListedPrompt {
  name: string
  title: string
  description: string
  arguments: { name: string; description: string; required: boolean }[]
}

/**
 * The text whose argument is completed: a `prompt`, identified by its name, or a `resource`, identified by its
 * template.
 */
export interface CompletedText {
  kind: 'prompt' | 'resource'
  name: string
}

/**
 * A function that looks something up for a caller who may call `tool`. It resolves with null if the caller may not call
 * this tool, or if the lookup takes too long.
 */
export type LookUp = <T>(tool: string, read: (context: ToolContext<true>) => Promise<T>) => Promise<T | null>

/**
 * The documents and prompts of this server. If a reader may not see a text, it is neither listed nor found for this
 * reader.
 */
export interface Knowledge {
  listResources(): ListedResource[]
  /** Lists the resource templates whose tools are all offered to the reader. */
  listTemplates(reader: Reader): ListedTemplate[]
  /**
   * Reads a resource. Rejects with ToolError: `not_found` for an unknown URI, `invalid_argument` for a URI with an
   * impossible value. A page about objects of the PCE rejects with the error of its first tool call.
   */
  readResource(uri: string, reader: ResourceReader): Promise<ResourceText>
  /**
   * Lists the prompts that are offered to the reader: those whose unconditional lines name only tools that are offered
   * too.
   */
  listPrompts(reader: Reader): Promise<ListedPrompt[]>
  /**
   * Returns the text of a prompt. Rejects with ToolError: `not_found` if the reader has no such prompt,
   * `invalid_argument` with all arguments that are missing, unknown or invalid.
   */
  getPrompt(
    name: string,
    given: Readonly<Record<string, unknown>>,
    reader: Reader,
  ): Promise<{ description: string; text: string }>
  /**
   * Completes an argument of a prompt or a value of a template. Rejects with ToolError: `not_found` if the reader has
   * no such prompt or template, `invalid_argument` if the prompt or template has no such argument. Resolves with an
   * empty list if the labels are not available.
   */
  complete(
    text: CompletedText,
    argument: { name: string; value: string },
    reader: Reader & { lookUp: LookUp },
  ): Promise<Completion>
}

const MARKDOWN = 'text/markdown'
const JSON_TYPE = 'application/json'
/**
 * Maximum length of the changelog, in characters. Older entries are left out, because clients do not read longer texts.
 */
const LONGEST_CHANGELOG = 40_000

/** Creates the documents and prompts of a server. Each file is read only once, when it is first needed. */
export function createKnowledge({ tools: list, server, limits, now }: KnowledgeOptions): Knowledge {
  const tools = new Map(list.map((tool) => [tool.name, tool]))
  const documents = new Map(DOCUMENTS.map((document) => [document.uri, document]))
  const texts = new Map<string, Promise<string>>()

  function loadText(path: string): Promise<string> {
    let text = texts.get(path)
    if (text === undefined) {
      text = readText(path)
      texts.set(path, text)
      // A failed read is not cached, so that the next call reads the file again.
      text.catch(() => texts.delete(path))
    }
    return text
  }

  async function readDocument(document: Document, { offered }: Reader): Promise<string> {
    const text = await loadText(fileOf(document))
    const missing = [...toolsNamedIn(text).always].filter((name) => !offered.has(name))
    const note =
      missing.length === 0 ? '' : `\nNot offered to you here: ${missing.map((name) => `\`${name}\``).join(', ')}.\n`
    return `${fillText(text, { tools }, offered)}${note}`
  }

  async function readObject(
    uri: string,
    { orgId = '1', offered, ...ports }: ResourceReader,
  ): Promise<ResourceText | null> {
    const page = matchPage(uri)
    if (page === null || !isOffered(page.template, offered)) return null
    const facts = { orgId, now: now() }
    const text = await readPage(page.template, page.values, facts, { ...ports, budget: limits.responseBudgetBytes })
    return { uri, mimeType: JSON_TYPE, text }
  }

  /**
   * Returns the source of the completions for each argument of a prompt or template; null for an argument without
   * completions.
   */
  async function completersOf(
    { kind, name }: CompletedText,
    reader: Reader,
  ): Promise<Record<string, Completer | null>> {
    if (kind === 'prompt') {
      const found = (await promptsOf(reader)).find(({ prompt }) => prompt.name === name)
      if (found === undefined) throw new ToolError('not_found', `There is no prompt ${quote(name)}.`)
      return Object.fromEntries(found.prompt.arguments.map((one) => [one.name, one.completes ?? null]))
    }
    const template = PAGE_TEMPLATES.find(({ uriTemplate }) => uriTemplate === name)
    if (template === undefined || !isOffered(template, reader.offered))
      throw new ToolError('not_found', `There is no resource template ${quote(name)}.`)
    const variables = Object.entries(template.variables)
    return Object.fromEntries(variables.map(([variable, key]) => [variable, key === null ? null : { labels: key }]))
  }

  /** Returns the prompts that are offered to this reader, with their texts. */
  async function promptsOf({ offered }: Reader): Promise<{ prompt: Prompt; text: string }[]> {
    const all = await Promise.all(
      PROMPTS.map(async (prompt) => ({ prompt, text: await loadText(promptFileOf(prompt)) })),
    )
    return all.filter(({ text }) => [...toolsNamedIn(text).always].every((tool) => offered.has(tool)))
  }

  return {
    listResources: () => [
      ...DOCUMENTS.map((document) => ({ ...document, mimeType: MARKDOWN })),
      { uri: CHANGELOG_URI, name: 'Changelog', description: 'What changed in this server.', mimeType: MARKDOWN },
    ],
    async readResource(uri, reader) {
      const document = documents.get(uri)
      if (document !== undefined) return { uri, mimeType: MARKDOWN, text: await readDocument(document, reader) }
      if (uri === CHANGELOG_URI) return { uri, mimeType: MARKDOWN, text: cutChangelog(await server.changelog()) }
      const object = await readObject(uri, reader)
      if (object === null) throw notFound(uri, reader)
      return object
    },
    listTemplates: ({ offered }) =>
      PAGE_TEMPLATES.filter((template) => isOffered(template, offered)).map(({ uriTemplate, name, description }) => ({
        uriTemplate,
        name,
        description,
        mimeType: JSON_TYPE,
      })),
    async listPrompts(reader) {
      const prompts = await promptsOf(reader)
      return prompts.map(({ prompt: { name, title, description, ...prompt } }) => ({
        name,
        title,
        description,
        arguments: prompt.arguments.map(({ name, description, required = false }) => ({ name, description, required })),
      }))
    },
    async getPrompt(name, given, reader) {
      const prompts = await promptsOf(reader)
      const found = prompts.find(({ prompt }) => prompt.name === name)
      if (found === undefined) {
        const known = prompts.map(({ prompt }) => prompt.name).join(', ')
        throw new ToolError('not_found', `There is no prompt ${quote(name)}. Prompts: ${known}`)
      }
      const { prompt, text } = found
      const values = prompt.valuesOf(readArguments(prompt, given))
      return { description: prompt.description, text: fillText(text, { tools, values }, reader.offered) }
    },
    async complete(text, { name, value }, reader) {
      const completers = await completersOf(text, reader)
      if (!Object.hasOwn(completers, name)) {
        const known = Object.keys(completers).join(', ')
        const tell = known === '' ? 'it takes none' : `Known: ${known}`
        throw new ToolError('invalid_argument', `${quote(name)}: unknown argument. ${tell}`)
      }
      const completer = completers[name] ?? { values: [] }
      if ('values' in completer) return completeFrom(completer.values, value)
      const values = await reader.lookUp('get-labels', (context) => labelValues(context, completer.labels))
      return completeFrom(values ?? [], value)
    },
  }
}

type Completer = NonNullable<Prompt['arguments'][number]['completes']>

/** Maximum length of a prompt argument in characters; it is the maximum length of a label value. */
const LONGEST_VALUE = 255

/** Reads the arguments of a prompt. Throws ToolError `invalid_argument` that names all wrong arguments. */
function readArguments(prompt: Prompt, given: Readonly<Record<string, unknown>>): Record<string, string> {
  const isOptional = (name: string) => prompt.arguments.some((one) => one.name === name && one.required !== true)
  // Null for an optional argument counts as left out (D242).
  const kept = Object.entries(given).filter(([name, value]) => value !== null || !isOptional(name))
  const problems = [
    ...prompt.arguments.flatMap(({ name, required }) =>
      required === true && !Object.hasOwn(given, name) ? [`${name}: required`] : [],
    ),
    ...kept.flatMap(([name, value]) => problemOf(prompt, name, value)),
  ]
  if (problems.length > 0) throw new ToolError('invalid_argument', `${prompt.name}: ${problems.join('; ')}`)
  return Object.fromEntries(kept) as Record<string, string>
}

function problemOf(prompt: Prompt, name: string, value: unknown): string[] {
  const argument = prompt.arguments.find((known) => known.name === name)
  if (argument === undefined) {
    const known = prompt.arguments.map((one) => one.name).join(', ')
    return [`${quote(name)}: unknown argument${known === '' ? '; it takes none' : `. Known: ${known}`}`]
  }
  if (typeof value !== 'string') return [`${name}: must be a string`]
  if (value.trim() === '') return [`${name}: must not be empty`]
  if (value.length > LONGEST_VALUE) return [`${name}: at most ${LONGEST_VALUE} characters`]
  const { completes } = argument
  const isWrong = completes !== undefined && 'values' in completes && !completes.values.includes(value)
  return isWrong ? [`${name}: one of ${completes.values.join(', ')}`] : []
}

const isOffered = (template: PageTemplate, offered: ReadonlySet<string>) =>
  toolsOf(template).every((tool) => offered.has(tool))

/**
 * Creates the error for an unknown URI. If the URI differs from a template only in having too few or too many values,
 * and the template is offered to the reader, the error names the template.
 */
function notFound(uri: string, { offered }: Reader): ToolError {
  const near = nearPage(uri)
  if (near === null || !isOffered(near.template, offered)) return new ToolError('not_found', 'Resource not found')
  return new ToolError('not_found', `Resource not found: ${near.template.uriTemplate}: ${near.why}`)
}

function cutChangelog(text: string | null): string {
  if (text === null) return 'This installation has no changelog.\n'
  if (text.length <= LONGEST_CHANGELOG) return text
  const end = text.lastIndexOf('\n', LONGEST_CHANGELOG)
  return `${text.slice(0, end)}\n\n… What is older is left out here.\n`
}

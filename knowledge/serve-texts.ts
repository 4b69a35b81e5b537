import { ToolError } from '../schemas/errors.js'
import { quote } from '../domain/text/escape-text.js'
import { JSON_TYPE, MARKDOWN } from './catalogue/list-knowledge.js'
import { completeFrom, type Completion, labelValues } from './complete-names.js'
import { CHANGELOG_URI, type Document, DOCUMENTS, fileOf } from './documents.js'
import { fillText, toolsNamedIn } from './fill-text.js'
import { matchPage, nearPage, PAGE_TEMPLATES, type PageTemplate, toolsOf } from './pages.js'
import type { CompletedText, KnowledgeOptions, LookUp, Reader, ResourceReader, ResourceText } from './ports.js'
import { fileOf as promptFileOf, type Prompt, PROMPTS } from './prompts.js'
import { readPage } from './read-page.js'
import { readText } from './read-text.js'

/**
 * Maximum number of characters of the changelog that are served. Older entries are left out, because clients do not
 * read longer documents.
 */
const LONGEST_CHANGELOG = 40_000

/**
 * The functions of `Knowledge` that read documents, pages and prompts. `offeredPrompts` contains the names of the
 * prompts that are offered to the reader.
 */
export interface Texts {
  readResource(uri: string, reader: ResourceReader): Promise<ResourceText>
  getPrompt(
    name: string,
    given: Readonly<Record<string, unknown>>,
    reader: Reader,
    offeredPrompts: readonly string[],
  ): Promise<{ description: string; text: string }>
  complete(
    text: CompletedText,
    argument: { name: string; value: string },
    reader: Reader & { lookUp: LookUp },
    offeredPrompts: readonly string[],
  ): Promise<Completion>
}

/** Creates the functions that read documents, pages and prompts. Each file is read only once, when it is first needed. */
export function serveTexts({ tools: list, server, limits, now }: KnowledgeOptions): Texts {
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

  /** For each argument of a prompt or template, returns the source of its completions, or null if it has none. */
  function completersOf(
    { kind, name }: CompletedText,
    reader: Reader,
    offeredPrompts: readonly string[],
  ): Record<string, Completer | null> {
    if (kind === 'prompt') {
      const prompt = PROMPTS.find((one) => one.name === name && offeredPrompts.includes(name))
      if (prompt === undefined) throw new ToolError('not_found', `There is no prompt ${quote(name)}.`)
      return Object.fromEntries(prompt.arguments.map((one) => [one.name, one.completes ?? null]))
    }
    const template = PAGE_TEMPLATES.find(({ uriTemplate }) => uriTemplate === name)
    if (template === undefined || !isOffered(template, reader.offered))
      throw new ToolError('not_found', `There is no resource template ${quote(name)}.`)
    const variables = Object.entries(template.variables)
    return Object.fromEntries(variables.map(([variable, key]) => [variable, key === null ? null : { labels: key }]))
  }

  return {
    async readResource(uri, reader) {
      const document = documents.get(uri)
      if (document !== undefined) return { uri, mimeType: MARKDOWN, text: await readDocument(document, reader) }
      if (uri === CHANGELOG_URI) return { uri, mimeType: MARKDOWN, text: cutChangelog(await server.changelog()) }
      const object = await readObject(uri, reader)
      if (object === null) throw notFound(uri, reader)
      return object
    },
    async getPrompt(name, given, reader, offeredPrompts) {
      const prompt = PROMPTS.find((one) => one.name === name && offeredPrompts.includes(name))
      if (prompt === undefined) {
        const known = offeredPrompts.join(', ')
        throw new ToolError('not_found', `There is no prompt ${quote(name)}. Prompts: ${known}`)
      }
      const text = await loadText(promptFileOf(prompt))
      const values = prompt.valuesOf(readArguments(prompt, given))
      return { description: prompt.description, text: fillText(text, { tools, values }, reader.offered) }
    },
    async complete(text, { name, value }, reader, offeredPrompts) {
      const completers = completersOf(text, reader, offeredPrompts)
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
  // A null for an optional argument means that the argument was left out (D242).
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
 * Creates the error for an unknown URI. If the URI looks like a template but has too few or too many values, and the
 * reader is offered that template, the error names it.
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

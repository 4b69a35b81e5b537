import { ToolError } from '../schemas/errors.js'
import type { AnyTool } from '../tools/define.js'
import { CHANGELOG_URI, type Document, DOCUMENTS, fileOf } from './documents.js'
import { fillText, toolsNamedIn } from './fill-text.js'
import { readText } from './read-text.js'

export interface KnowledgeOptions {
  /** Every tool that texts may name. */
  tools: readonly AnyTool[]
  server: {
    /** Text of CHANGELOG.md, or null where it was not shipped. */
    changelog(): Promise<string | null>
  }
}

/** One entry of resources/list. */
export interface ListedResource extends Document {
  mimeType: string
}

/** What a resource holds. */
export interface ResourceText {
  uri: string
  mimeType: string
  text: string
}

/** For whom a text is: the tools that the caller is offered, by name. */
export interface Reader {
  offered: ReadonlySet<string>
}

/** The documents of this server. What a caller may not see is not listed, and does not exist when it is asked for. */
export interface Knowledge {
  listResources(): ListedResource[]
  /** Rejects with ToolError `not_found` for a URI that is not served. */
  readResource(uri: string, reader: Reader): Promise<ResourceText>
}

const MARKDOWN = 'text/markdown'
/** Characters of the changelog, newest first: as much as a client reads of one text. */
const LONGEST_CHANGELOG = 40_000

/** Reads no file before the first text is asked for, and each file once. */
export function createKnowledge({ tools: list, server }: KnowledgeOptions): Knowledge {
  const tools = new Map(list.map((tool) => [tool.name, tool]))
  const documents = new Map(DOCUMENTS.map((document) => [document.uri, document]))
  const texts = new Map<string, Promise<string>>()

  function loadText(path: string): Promise<string> {
    let text = texts.get(path)
    if (text === undefined) {
      text = readText(path)
      texts.set(path, text)
      // What could not be read is tried again.
      text.catch(() => texts.delete(path))
    }
    return text
  }

  async function readDocument(document: Document, { offered }: Reader): Promise<string> {
    const text = await loadText(fileOf(document))
    const missing = [...toolsNamedIn(text).all].filter((name) => !offered.has(name))
    const note =
      missing.length === 0 ? '' : `\nNot offered to you here: ${missing.map((name) => `\`${name}\``).join(', ')}.\n`
    return `${fillText(text, { tools })}${note}`
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
      throw new ToolError('not_found', 'Resource not found')
    },
  }
}

function cutChangelog(text: string | null): string {
  if (text === null) return 'This installation has no changelog.\n'
  if (text.length <= LONGEST_CHANGELOG) return text
  const end = text.lastIndexOf('\n', LONGEST_CHANGELOG)
  return `${text.slice(0, end)}\n\n… What is older is left out here.\n`
}

import type { ToolContext } from '../domain/call.js'
import type { ListedTool } from '../tools/listed-tool.js'
import type { PagePorts } from './read-page.js'

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

/** The content of a resource. */
export interface ResourceText {
  uri: string
  mimeType: string
  text: string
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

import type { ToolContext } from '../domain/call.js'
import type { ListedTool } from '../tools/listed-tool.js'
import type { PagePorts } from './read-page.js'

export interface KnowledgeOptions {
  /** All tools that documents and prompts may name. */
  tools: readonly ListedTool[]
  server: {
    /** Returns the content of CHANGELOG.md, or null if the file was not shipped. */
    changelog(): Promise<string | null>
  }
  limits: { responseBudgetBytes: number }
  /** Returns the current time in milliseconds since the epoch. */
  now: () => number
}

/** The content of one resource, as MCP returns it. */
export interface ResourceText {
  uri: string
  mimeType: string
  text: string
}

/** The reader of a document or prompt, described by the tools that are offered to the reader. */
export interface Reader {
  offered: ReadonlySet<string>
}

/** The reader of a resource, with the functions that compose a page about PCE objects. */
export interface ResourceReader extends Reader, Omit<PagePorts, 'budget'> {
  /** The number of the organisation at the reader's PCE; absent if the reader has no PCE. */
  orgId?: string
}

/**
 * What an argument is completed for: a `prompt`, identified by its name, or a `resource`, identified by its template.
 */
export interface CompletedText {
  kind: 'prompt' | 'resource'
  name: string
}

/**
 * Looks something up for a caller who may call `tool`. Resolves with null if the caller may not call it, or if the
 * lookup takes too long.
 */
export type LookUp = <T>(tool: string, read: (context: ToolContext<true>) => Promise<T>) => Promise<T | null>

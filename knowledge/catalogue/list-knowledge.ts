import { CHANGELOG_URI, type Document, DOCUMENTS } from '../documents.js'
import { toolsNamedIn } from '../fill-text.js'
import { PAGE_TEMPLATES, toolsOf } from '../pages.js'
import { fileOf, PROMPTS } from '../prompts.js'
import { readText } from '../read-text.js'

export const MARKDOWN = 'text/markdown'
export const JSON_TYPE = 'application/json'

/** An entry in the answer to the MCP request resources/list. */
export interface ListedResource extends Document {
  mimeType: string
}

/** An entry in the answer to the MCP request resources/templates/list. */
export interface ListedTemplate {
  uriTemplate: string
  name: string
  description: string
  mimeType: string
}

/** An entry in the answer to the MCP request prompts/list. */
export interface ListedPrompt {
  name: string
  title: string
  description: string
  arguments: { name: string; description: string; required: boolean }[]
}

/**
 * An entry of a list. `needs` contains the tools that must be offered to a reader, so that the reader sees the entry.
 */
interface Conditional<T> {
  entry: T
  needs: readonly string[]
}

/**
 * The lists of resources, templates and prompts as plain data, so that a build can store them as JSON instead of the
 * code that makes them.
 */
export interface KnowledgeLists {
  resources: readonly ListedResource[]
  templates: readonly Conditional<ListedTemplate>[]
  prompts: readonly Conditional<ListedPrompt>[]
}

/**
 * Makes the lists. To find out which tools a prompt names, it reads the text of every prompt. Rejects with Error if a
 * text cannot be read.
 */
export async function listKnowledge(): Promise<KnowledgeLists> {
  return {
    resources: [
      ...DOCUMENTS.map((document) => ({ ...document, mimeType: MARKDOWN })),
      { uri: CHANGELOG_URI, name: 'Changelog', description: 'What changed in this server.', mimeType: MARKDOWN },
    ],
    templates: PAGE_TEMPLATES.map((template) => {
      const { uriTemplate, name, description } = template
      return { needs: toolsOf(template), entry: { uriTemplate, name, description, mimeType: JSON_TYPE } }
    }),
    prompts: await Promise.all(
      PROMPTS.map(async (prompt) => {
        const { name, title, description, arguments: taken } = prompt
        const named = taken.map(({ name, description, required = false }) => ({ name, description, required }))
        const { always } = toolsNamedIn(await readText(fileOf(prompt)))
        return { needs: [...always], entry: { name, title, description, arguments: named } }
      }),
    ),
  }
}

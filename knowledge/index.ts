import { catalogue } from './catalogue/index.js'
import type { ListedPrompt, ListedResource, ListedTemplate } from './catalogue/list-knowledge.js'
import type { Completion } from './complete-names.js'
import type { CompletedText, KnowledgeOptions, LookUp, Reader, ResourceReader, ResourceText } from './ports.js'
import type { Texts } from './serve-texts.js'

export type { CompletedText, KnowledgeOptions, LookUp, Reader, ResourceReader, ResourceText } from './ports.js'

/** The documents and prompts of this server. What a reader may not see is neither listed nor found for that reader. */
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
   * Lists the prompts for a reader. A prompt is listed if all tools that it names for every reader are offered to this
   * one.
   */
  listPrompts(reader: Reader): ListedPrompt[]
  /**
   * Returns the text of a prompt. Rejects with ToolError: `not_found` if the reader has no such prompt,
   * `invalid_argument` if arguments are missing, unknown or invalid, naming all of them.
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

/**
 * Creates the documents and prompts of a server. The lists come from the catalogue. The code that reads documents is
 * loaded when the first one is requested, and each file is read only once.
 */
export function createKnowledge(options: KnowledgeOptions): Knowledge {
  let loading: Promise<Texts> | undefined
  const load = () =>
    (loading ??= import('./serve-texts.js').then(
      ({ serveTexts }) => serveTexts(options),
      (error: unknown) => {
        // After a failure, the next request tries to load the code again, as `changeTool` does for tools.
        loading = undefined
        throw error
      },
    ))
  const offeredOf = <T>(entries: readonly { entry: T; needs: readonly string[] }[], { offered }: Reader): T[] =>
    entries.flatMap(({ entry, needs }) => (needs.every((tool) => offered.has(tool)) ? [entry] : []))
  const listPrompts = (reader: Reader) => offeredOf(catalogue.prompts, reader)
  return {
    listResources: () => [...catalogue.resources],
    listTemplates: (reader) => offeredOf(catalogue.templates, reader),
    listPrompts,
    readResource: async (uri, reader) => (await load()).readResource(uri, reader),
    getPrompt: async (name, given, reader) =>
      (await load()).getPrompt(name, given, reader, namesOf(listPrompts(reader))),
    complete: async (text, argument, reader) =>
      (await load()).complete(text, argument, reader, namesOf(listPrompts(reader))),
  }
}

const namesOf = (prompts: readonly ListedPrompt[]) => prompts.map(({ name }) => name)

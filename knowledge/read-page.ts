import { ToolError } from '../schemas/errors.js'
import type { PageFacts, PageTemplate } from './pages.js'

/** Makes a tool call for the reader. Rejects with an Error whose `code` says what went wrong. */
export type CallTool = (name: string, args: Record<string, unknown>) => Promise<object>

export interface PagePorts {
  callTool: CallTool
  /**
   * Counts all tool calls of a page except the first one towards the reader's rate limit. Rejects if there are too
   * many.
   */
  charge: (times: number) => Promise<void>
  /** Reports the progress of composing the page; called before each tool call. */
  progress: (update: { progress: number; total: number; message: string }) => void
  /** Maximum size of the composed page in bytes. */
  budget: number
}

/** The error codes of tools that mean that the object of the page does not exist. */
const NOT_THERE = new Set(['not_found', 'invalid_href', 'unresolved_label_filter'])

interface Part {
  from: { tool: string; arguments: object }
  answer?: object
  error?: { code: string; message: string }
  omitted?: string
}

/**
 * Composes a page as JSON text. The tool calls run one after the other, so that a reader never has several calls
 * running at the same time. If a section fails, it shows its error, and the other sections are still shown. If the
 * first section fails, the whole page fails. If the page exceeds its maximum size, its longest sections are replaced
 * with the tool calls that return them.
 *
 * Rejects with ToolError `not_found`, or with the error of the first call or of `charge`.
 */
export async function readPage(
  template: PageTemplate,
  values: Readonly<Record<string, string>>,
  facts: PageFacts,
  { callTool, charge, progress, budget }: PagePorts,
): Promise<string> {
  const sections = template.sectionsOf(values, facts)
  if (sections.length > 1) await charge(sections.length - 1)
  const parts: Record<string, Part> = {}
  for (const [at, { name, tool, arguments: args }] of sections.entries()) {
    progress({ progress: at, total: sections.length, message: tool })
    const from = { tool, arguments: args }
    try {
      parts[name] = { from, answer: await callTool(tool, args) }
    } catch (thrown) {
      const { code, message } = thrown as { code: string; message: string }
      if (at === 0 && NOT_THERE.has(code)) throw new ToolError('not_found', `Resource not found: ${message}`)
      if (at === 0 || code === 'cancelled') throw thrown
      parts[name] = { from, error: { code, message } }
    }
  }
  const head = { ...template.headOf(values, facts), as_of: new Date(facts.now).toISOString() }
  return fitParts(head, parts, budget)
}

function fitParts(head: object, parts: Record<string, Part>, budget: number): string {
  const lengthOf = (part: Part) => Buffer.byteLength(JSON.stringify(part))
  for (;;) {
    const text = JSON.stringify({ ...head, ...parts })
    if (Buffer.byteLength(text) <= budget) return text
    const [longest] = Object.entries(parts)
      .filter(([, { omitted }]) => omitted === undefined)
      .sort(([, a], [, b]) => lengthOf(b) - lengthOf(a))
    if (longest === undefined) return text
    const [name, part] = longest
    parts[name] = { from: part.from, omitted: `${lengthOf(part)} bytes, more than fit: call the tool for them` }
  }
}

import { ToolError } from '../schemas/errors.js'
import type { PageFacts, PageTemplate } from './pages.js'

/** Runs one tool call of the reader. Rejects with an Error that has the `code` of what went wrong. */
export type CallTool = (name: string, args: Record<string, unknown>) => Promise<object>

export interface PagePorts {
  callTool: CallTool
  /** Counts further calls against the reader's limit; rejects when they are too many. */
  charge: (times: number) => Promise<void>
  /** Told before each call. */
  progress: (update: { progress: number; total: number; message: string }) => void
  /** Bytes that the page may have. */
  budget: number
}

/** What a tool says when an object is not there. */
const NOT_THERE = new Set(['not_found', 'invalid_href', 'unresolved_label_filter'])

interface Part {
  from: { tool: string; arguments: object }
  answer?: object
  error?: { code: string; message: string }
  omitted?: string
}

/**
 * The page as JSON text: one tool call after the other, so that a reader never has more at work than one. A section that fails says so
 * and the others stand; if the first one fails, so does the page. What the budget does not hold is left out, the longest section first,
 * and says which call has it.
 *
 * Rejects with ToolError `not_found`, or with what the first call or `charge` rejects with.
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

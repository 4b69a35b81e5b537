import type { IncomingHttpHeaders } from 'node:http'
import { nearNames } from '../../domain/text/compare-texts.js'
import { quote } from '../../domain/text/escape-text.js'
import { ToolError } from '../../schemas/errors.js'
import type { Toolset } from '../../tools/define.js'
import type { ToolFacts } from '../../tools/listed-tool.js'
import { type Choice, chooseTools, namesOf, TOOLSET_NAMES } from './choose-tools.js'

/** The headers with which a request can narrow its offer. They have the same names as in GitHub's MCP server (D123). */
export const HEADERS = {
  readOnly: 'X-MCP-Readonly',
  toolsets: 'X-MCP-Toolsets',
  tools: 'X-MCP-Tools',
  excluded: 'X-MCP-Exclude-Tools',
} as const

const FIELDS = Object.values(HEADERS).map((header) => header.toLowerCase())

export interface Narrowing {
  /** The tools that the operator offers. */
  offered: readonly ToolFacts[]
  /** All tools of this server. Their names are valid in headers even if the operator does not offer them. */
  tools: readonly ToolFacts[]
  /** The toolsets that remain in the offer even if the client does not choose them. */
  always: readonly Toolset[]
}

/**
 * Creates the function that narrows the operator's offer by the headers of a request. It returns the names of the
 * remaining tools, or undefined if no header narrows the offer. It throws ToolError `bad_request {header}` for an
 * invalid value or a name that does not exist.
 */
export function narrowByHeaders({
  offered,
  tools,
  always,
}: Narrowing): (headers: IncomingHttpHeaders) => ReadonlySet<string> | undefined {
  const known = namesOf(tools)
  const checkTools = (header: string, names: readonly string[]) =>
    refuseUnknown(header, 'tool', names, known, [...namesOf(offered)])
  return (headers) => {
    // Most requests have none of these headers, so this check saves work.
    if (FIELDS.every((field) => headers[field] === undefined)) return undefined
    const readOnly = readSwitch(HEADERS.readOnly, headers)
    const toolsets = readNames(HEADERS.toolsets, headers)
    const named = readNames(HEADERS.tools, headers)
    const excluded = readNames(HEADERS.excluded, headers)
    if (!readOnly && toolsets === undefined && named === undefined && excluded === undefined) return undefined
    if (toolsets !== undefined)
      refuseUnknown(HEADERS.toolsets, 'toolset', toolsets, new Set(TOOLSET_NAMES), TOOLSET_NAMES)
    if (named !== undefined) checkTools(HEADERS.tools, named)
    if (excluded !== undefined) checkTools(HEADERS.excluded, excluded)
    const choice: Choice = { readOnly, toolsets: toolsets ?? ['all'], tools: named, excluded }
    return namesOf(chooseTools(offered, choice, always))
  }
}

const valueOf = (header: string, headers: IncomingHttpHeaders): string => {
  const value = headers[header.toLowerCase()] ?? ''
  return (typeof value === 'string' ? value : value.join(',')).trim()
}

const YES = ['1', 'true', 't', 'yes', 'y', 'on']
const NO = ['', '0', 'false', 'f', 'no', 'n', 'off']

function readSwitch(header: string, headers: IncomingHttpHeaders): boolean {
  const value = valueOf(header, headers).toLowerCase()
  if (YES.includes(value)) return true
  if (NO.includes(value)) return false
  throw new ToolError('bad_request', `${header} must be true or false.`, { header })
}

/**
 * Reads the list of names in a header. Returns undefined if the header is absent or blank. A header is blank, for
 * example, if a client's settings refer to an unset variable.
 */
function readNames(header: string, headers: IncomingHttpHeaders): string[] | undefined {
  const value = valueOf(header, headers)
  if (value === '') return undefined
  const names = value.split(',').flatMap((name) => name.trim() || [])
  if (names.length === 0) throw new ToolError('bad_request', `${header} has commas and no name.`, { header })
  return names
}

function refuseUnknown(
  header: string,
  what: 'tool' | 'toolset',
  names: readonly string[],
  known: ReadonlySet<string>,
  shown: readonly string[],
): void {
  const unknown = names.find((name) => !known.has(name))
  if (unknown === undefined) return
  const [nearest] = nearNames(unknown, shown, 1)
  const meant = nearest === undefined ? '' : ` Did you mean ${quote(nearest)}?`
  const message = `${header}: there is no ${what} ${quote(unknown)}.${meant} Known: ${shown.join(', ')}`
  throw new ToolError('bad_request', message, { header })
}

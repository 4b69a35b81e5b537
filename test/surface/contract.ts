/** The contract of the tools, which is contract.json: the one place beside tools/index.ts that lists them by hand. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The file that lists every tool, as a message names it. */
export const CONTRACT_FILE = 'test/surface/contract.json'

/** What a tool takes under one name. */
export interface ContractArgument {
  type: string
  required?: true
  enum?: string[]
  default?: unknown
  /** Properties of the elements, and which of them are required. */
  items?: string[]
  items_required?: string[]
  /**
   * The owner's list has the tool and not this argument. Those marked `later` came after the owner bounded the size of the list, which
   * does not count them.
   */
  added?: 'early' | 'later'
}

/** What callers can rely on of one tool. */
export interface ContractTool {
  toolset: string
  /** The tool came after the owner's list, so that `default` leaves it out. */
  beyond?: true
  roles: string[]
  mutating: boolean
  destructive: boolean
  idempotent: boolean
  requires_pce: boolean
  requires_confirm: boolean
  /** Of a tool that takes `fields`: where its answer has the rows, two of their fields, and arguments with which there are rows. */
  rows?: { in: string; fields: [string, string]; with?: object }
  arguments: Record<string, ContractArgument>
}

const TEXT = readFileSync(fileURLToPath(new URL('contract.json', import.meta.url)), 'utf8')

/** Every tool by its name, in the order of the names. */
export const CONTRACT = JSON.parse(TEXT) as Record<string, ContractTool>

/** The names of the tools of which something holds, in order. */
export const namesOf = (holds: (tool: ContractTool) => boolean): string[] =>
  Object.keys(CONTRACT).filter((name) => holds(CONTRACT[name]!))

/** The names of all tools. */
export const NAMES = namesOf(() => true)

/** The tools of the owner's list, which are what `default` offers. */
export const DEFAULT_NAMES = namesOf(({ beyond }) => beyond !== true)

/** The tools that take an argument. */
export const namesTaking = (argument: string): string[] => namesOf((tool) => argument in tool.arguments)

/** Where the file has the entry of a tool, or should have it, as `file:line`. */
export function placeOf(name: string): string {
  const after = NAMES.find((other) => other >= name)
  const line = after === undefined ? TEXT.trimEnd().split('\n').length : lineOf(after)
  return `${CONTRACT_FILE}:${line}`
}

const lineOf = (name: string) => TEXT.slice(0, TEXT.indexOf(`\n  "${name}": `) + 1).split('\n').length

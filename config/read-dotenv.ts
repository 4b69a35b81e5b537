import { parseEnv } from 'node:util'
import type { Fault } from '../schemas/config.js'
import type { Environment } from './read-values.js'
import { isKnown } from './variables.js'

/** The variables in a `.env` file, and the problems with the file. Messages never contain a value. */
export interface DotEnv {
  variables: Environment
  faults: Fault[]
  warnings: string[]
}

const AS_UTF8 = 'Save it as UTF-8. Every editor can do that, and so can PowerShell: Set-Content -Encoding utf8.'
const ENTRY = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=(.*)$/
const OUR_NAME = /\b(?:(?:MCP|PCE)_[A-Z_]+|API_(?:KEY|SECRET))\b/

/**
 * Reads a `.env` file entry by entry. Node's own parser is not used, because it treats a malformed line as the
 * beginning of the next name and so loses the next entry too. If the file contains none of this server's variables,
 * problems are only warnings, because the folder may belong to another program.
 */
export function readDotEnv(bytes: Uint8Array): DotEnv {
  const { text, encoding } = decode(bytes)
  const isOurs = text.split(/\W+/).some(isKnown)
  if (encoding !== 'UTF-8') {
    const problem = `.env is not UTF-8 text${encoding === null ? '' : ` but ${encoding}`}`
    if (isOurs) return { variables: {}, faults: [{ problem, remedy: AS_UTF8 }], warnings: [] }
    return { variables: {}, faults: [], warnings: [`${problem}: it was not read.`] }
  }
  const { variables, faults, warnings } = readEntries(text.split(/\r?\n/))
  if (isOurs) return { variables, faults, warnings }
  return { variables, faults: [], warnings: faults.map(({ problem }) => `${problem}: it was skipped.`) }
}

/**
 * Decodes the bytes of a file. `encoding` in the result is null if the bytes are not text. A byte order mark at the
 * beginning is removed.
 */
function decode(bytes: Uint8Array): { text: string; encoding: 'UTF-8' | 'UTF-16' | null } {
  const [first, second] = bytes
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  // UTF-16 without a byte order mark is recognised by the zero byte in the encoding of every ASCII letter.
  if (isMarked || (bytes.length > 1 && (first === 0) !== (second === 0))) {
    const isBigEndian = first === 0xfe || first === 0
    return { text: new TextDecoder(isBigEndian ? 'utf-16be' : 'utf-16le').decode(bytes), encoding: 'UTF-16' }
  }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), encoding: 'UTF-8' }
  } catch {
    return { text: new TextDecoder('latin1').decode(bytes), encoding: null }
  }
}

function readEntries(lines: readonly string[]): DotEnv {
  const variables: Record<string, string> = {}
  const lineOf = new Map<string, number>()
  const faults: Fault[] = []
  const warnings: string[] = []
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!
    if (/^\s*(#|$)/.test(line)) continue
    const where = `Line ${at + 1} of .env`
    const [, name, written] = ENTRY.exec(line) ?? []
    const value = written?.trimStart()
    if (name === undefined || value === undefined) {
      faults.push(noEntry(where, line))
      continue
    }
    const earlier = lineOf.get(name)
    if (earlier !== undefined && isKnown(name))
      warnings.push(`${where} sets ${name}, as line ${earlier} does: the last one counts.`)
    lineOf.set(name, at + 1)
    let entry = line
    const quote = /^["'`]/.exec(value)?.[0]
    if (quote !== undefined && !value.includes(quote, 1)) {
      const end = lines.findIndex((later, index) => index > at && later.includes(quote))
      if (isKnown(name) || end === -1) {
        faults.push(openQuote(where, name, quote))
        continue
      }
      entry = lines.slice(at, end + 1).join('\n')
      at = end
    } else if (quote === undefined && isKnown(name) && /\S#/.test(value)) {
      faults.push(hiddenRest(where, name))
      continue
    }
    Object.assign(variables, parseEnv(entry))
  }
  return { variables, faults, warnings }
}

function noEntry(where: string, line: string): Fault {
  const name = OUR_NAME.exec(line)?.[0] ?? ''
  const problem = `${where} is not NAME=value`
  return isKnown(name)
    ? { problem: `${where} names ${name} but is not NAME=value`, remedy: `Begin the line with ${name}=` }
    : { problem, remedy: 'Correct it, or delete it; a comment begins with #.' }
}

const openQuote = (where: string, name: string, quote: string): Fault => ({
  problem: `${where}: the value of ${name} begins with ${quote} but does not end with it`,
  remedy: `Write the whole value on that line, and end it with ${quote} too.`,
})

const hiddenRest = (where: string, name: string): Fault => ({
  problem: `${where}: a # in the value of ${name} begins a comment, and the rest would be lost`,
  remedy: `Put quotes around the value: ${name}="…". If you meant a comment, put a space before the #.`,
})

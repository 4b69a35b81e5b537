import { createHash, type Hash } from 'node:crypto'
import { AUTHORSHIP } from './authorship.js'
import { type Steps, workInTurns } from '../text/pace-work.js'

/**
 * Fields in which the PCE keeps records about an object. They change on their own, and no approval is about them. A
 * pending change of a rule (`update_type`) is part of its rule set's content, so it is not among them.
 */
const RECORDS: ReadonlySet<string> = new Set([...AUTHORSHIP, 'caps', 'usage'])

/** Deep enough for the rules of a rule set in a list of both versions of several objects. */
const DEEPEST = 4

/** How many entries of a list are serialised before other work may run. */
const ENTRIES_AT_ONCE = 200

/**
 * Returns a digest (lowercase hex SHA-256) of what these values say: fields in any order, and without the PCE's records
 * of authors and times at any depth. It works in turns, because a list may have very many entries.
 */
export function digestContents(values: readonly unknown[], signal: AbortSignal): Promise<string> {
  return workInTurns(digestEach(values), signal)
}

function* digestEach(values: readonly unknown[]): Steps<string> {
  const hash = createHash('sha256')
  for (const value of values) {
    yield* feed(hash, value, DEEPEST)
    hash.update('\n')
  }
  return hash.digest('hex')
}

/** Feeds a value to the hash. Down to this depth its lists and objects are fed part by part. */
function* feed(hash: Hash, value: unknown, depth: number): Steps<void> {
  if (depth === 0 || typeof value !== 'object' || value === null) {
    hash.update(serialize(value))
    return
  }
  if (Array.isArray(value)) {
    hash.update('[')
    for (const [at, item] of value.entries()) {
      yield* feed(hash, item, depth - 1)
      hash.update(',')
      if (at % ENTRIES_AT_ONCE === 0) yield
    }
    hash.update(']')
    return
  }
  hash.update('{')
  for (const [name, inner] of saidBy(value)) {
    hash.update(`${JSON.stringify(name)}:`)
    yield* feed(hash, inner, depth - 1)
    hash.update(',')
  }
  hash.update('}')
}

const serialize = (value: unknown): string => JSON.stringify(value, sorted) ?? 'null'

/** Sorts the fields of objects and leaves records out. */
const sorted = (_name: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.fromEntries(saidBy(value)) : value

const saidBy = (value: object): [string, unknown][] =>
  Object.entries(value)
    .filter(([name, inner]) => inner !== undefined && !RECORDS.has(name))
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))

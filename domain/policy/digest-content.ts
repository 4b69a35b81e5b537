import { createHash, type Hash } from 'node:crypto'
import { AUTHORSHIP } from './authorship.js'
import { type Steps, workInTurns } from '../text/pace-work.js'

/**
 * The fields in which the PCE keeps records about an object. The PCE sets them itself, so a person's approval does not
 * cover them. `update_type` is not listed here, because a pending change of a rule is part of the content of its rule
 * set.
 */
const RECORDS: ReadonlySet<string> = new Set([...AUTHORSHIP, 'caps', 'usage'])

/**
 * The nesting depth down to which values are hashed entry by entry. In a list of versions of a rule set, each single
 * rule is at this depth.
 */
const DEEPEST = 4

/** Number of list entries that are serialised before other work may run. */
const ENTRIES_AT_ONCE = 200

/**
 * Returns a digest (lowercase hex SHA-256) of the content of the given values. The order of fields does not matter, and
 * the PCE's records of authors and times are left out at any depth. Hashing pauses regularly so that other work can
 * run, because a list may have very many entries.
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

/** A digest of an object that arrives in pieces: field by field, and each list in batches of items. */
export interface FieldsDigest {
  /** Adds a field, or further items of a field that is a list. */
  add(field: string, values: readonly unknown[], isList: boolean): Promise<void>
  /** Returns the digest of the fields added so far, regardless of their order. */
  end(): string
}

/**
 * Creates the digest of an object that is never in memory as a whole. Like `digestContents`, it leaves out the PCE's
 * records of authors and times.
 */
export function createFieldsDigest(signal: AbortSignal): FieldsDigest {
  const hashes = new Map<string, Hash>()
  return {
    add(field, values, isList) {
      if (RECORDS.has(field)) return Promise.resolve()
      const key = JSON.stringify([field, isList])
      const hash = hashes.get(key) ?? createHash('sha256')
      hashes.set(key, hash)
      return workInTurns(feedItems(hash, values), signal)
    },
    end: () => {
      const fields = [...hashes].map(([key, hash]) => `${key}:${hash.digest('hex')}\n`)
      return createHash('sha256').update(fields.sort().join('')).digest('hex')
    },
  }
}

function* feedItems(hash: Hash, values: readonly unknown[]): Steps<void> {
  for (const [at, value] of values.entries()) {
    yield* feed(hash, value, DEEPEST)
    hash.update(',')
    if (at % ENTRIES_AT_ONCE === 0) yield
  }
}

/**
 * Feeds a value to the hash. Lists and objects are fed entry by entry down to the nesting depth `depth`; anything
 * deeper is serialised as a whole.
 */
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

/** Sorts the fields of an object and leaves out the PCE's records. */
const sorted = (_name: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.fromEntries(saidBy(value)) : value

const saidBy = (value: object): [string, unknown][] =>
  Object.entries(value)
    .filter(([name, inner]) => inner !== undefined && !RECORDS.has(name))
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))

import { PceApiError, type PceClient } from '../../pce-client/index.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { parseHref } from '../inventory/parse-href.js'
import { readPolicyVersion } from '../inventory/policy-version.js'
import { createFieldsDigest } from './digest-content.js'

/**
 * Maximum number of hrefs that are collected from one object. Only a small part of the objects with these hrefs is ever
 * read.
 */
const MOST_HREFS = 10_000
/** Maximum number of characters of an object's name that are kept. */
const LONGEST_NAME = 1000
/** Maximum total size of the deny rules of a rule set, equal to the default limit for a single answer of the PCE. */
const MOST_DENY_RULE_BYTES = 32 * 1024 * 1024

/** What is kept of an object that is too large for memory. */
export interface LargeObject {
  /** An object with the field `name`, or an empty object if the large object has no name. */
  content: Record<string, unknown>
  /** A digest of the whole content. */
  digest: string
  /** The hrefs of other objects that occur in the content, each once. */
  hrefs: readonly string[]
  /** Number of bytes that were read; for deny rules that were read separately, the number of characters. */
  bytes: number
}

interface Reader {
  pce: PceClient
  signal: AbortSignal
}

/**
 * Reads an object that is too large to be kept in memory, and computes a digest of its content while it arrives.
 * Rejects with the errors of every request, and with `body_too_large` if the object exceeds the PCE client's own limit
 * for an answer. Returns null if the answer is not an object with an href.
 * @param isContent returns true for the fields that count as content.
 * @param hrefsIn returns the hrefs in a value.
 * @param withDenyRules true if the object is a rule set whose deny rules count too.
 */
export async function digestLarge(
  { pce, signal }: Reader,
  href: string,
  isContent: (field: string) => boolean,
  hrefsIn: (value: unknown) => string[],
  withDenyRules: boolean,
): Promise<LargeObject | null> {
  let digest = createFieldsDigest(signal)
  let hrefs = new Set<string>()
  let [name, own, hasDenyRules] = ['', '', false]
  // The object's own parts, such as the rules of a rule set, must not use up the limit on hrefs.
  const othersIn = (value: unknown) => hrefsIn(value).filter((found) => parseHref(found)?.parent?.href !== href)
  const add = async (field: string, values: readonly unknown[], isList: boolean) => {
    await digest.add(field, values, isList)
    for (const found of othersIn(values)) if (hrefs.size < MOST_HREFS) hrefs.add(found)
  }
  const { bytes } = await pce.getInParts(href, {
    includeOrg: false,
    signal,
    onBegin() {
      digest = createFieldsDigest(signal)
      hrefs = new Set()
      ;[name, own, hasDenyRules] = ['', '', false]
    },
    async onField(field, value) {
      if (field === 'href' && typeof value === 'string') own = value
      if (field === 'name' && typeof value === 'string') name = value.slice(0, LONGEST_NAME)
      if (field === 'update_type') await digest.add(field, [value === 'delete'], false)
      else if (isContent(field) && value != null) await add(field, [value], false)
    },
    async onItems(field, items) {
      if (field === 'deny_rules') hasDenyRules = true
      if (isContent(field)) await add(field, items, true)
    },
  })
  if (own === '') return null
  let read = bytes
  if (withDenyRules && !hasDenyRules) {
    const rules = await digestDenyRules({ pce, signal }, own, othersIn)
    await digest.add('deny_rules', [rules.digest], false)
    for (const found of rules.hrefs) hrefs.add(found)
    read += rules.size
  }
  return { content: name === '' ? {} : { name }, digest: digest.end(), hrefs: [...hrefs], bytes: read }
}

/**
 * Reads the deny rules of a rule set and computes their digest. If the PCE has no list of deny rules for it (404), the
 * rule set has no deny rules.
 */
async function digestDenyRules(
  { pce, signal }: Reader,
  ruleSet: string,
  hrefsIn: (value: unknown) => string[],
): Promise<{ digest: string; hrefs: Set<string>; size: number }> {
  let digest = createFieldsDigest(signal)
  let hrefs = new Set<string>()
  let size = 0
  const policyVersion = readPolicyVersion(parseHref(ruleSet)?.version)
  const maxBytes = MOST_DENY_RULE_BYTES
  try {
    await scanWhole(
      { api: pce.denyRules, policyVersion, parent: ruleSet, params: {}, signal, maxBytes },
      {
        onBegin() {
          digest = createFieldsDigest(signal)
          hrefs = new Set()
          size = 0
        },
        async onItems(rules) {
          size += JSON.stringify(rules).length
          await digest.add('deny_rules', rules, true)
          for (const found of hrefsIn(rules)) if (hrefs.size < MOST_HREFS) hrefs.add(found)
        },
      },
    )
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
  }
  return { digest: digest.end(), hrefs, size }
}

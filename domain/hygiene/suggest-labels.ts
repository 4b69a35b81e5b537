import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { compareTexts } from '../text/compare-texts.js'
import type { LabelIndex } from '../inventory/labels.js'
import { quote } from '../text/escape-text.js'
import { namePatterns, nameWords, subnetsOf } from './name-patterns.js'

export const SOURCES = ['names', 'addresses', 'traffic'] as const
export type Source = (typeof SOURCES)[number]
export const STRENGTHS = ['strong', 'fair', 'weak'] as const
type Strength = (typeof STRENGTHS)[number]

/** One reason to suggest a label. */
interface Evidence {
  value: string
  because: string
  /** True if the evidence comes from several workloads and nearly all of them agree. */
  isSolid: boolean
}

/** A label that a workload may be missing, with the reasons (T37). */
export interface Suggestion {
  key: string
  value: string
  strength: Strength
  because: string[]
}

/** A workload that lacks labels for some keys. */
export interface Subject {
  href: string
  workload: Pick<Workload, 'name' | 'hostname' | 'interfaces' | 'ven'>
  missing: readonly string[]
}

/**
 * The thresholds for solid evidence: at least SOLID_COUNT workloads must agree, and they must be at least the share
 * SOLID_SHARE of all compared workloads.
 */
const SOLID_COUNT = 3
const SOLID_SHARE = 0.8
/** Minimum number of workloads that must agree, because a single workload is not a pattern. */
const LEAST = 2

/** Maps each label value to a number of workloads. */
type Values = Map<string, number>
/** Maps each label key to its values, each with a number of workloads. */
type Counted = Map<string, Values>

/**
 * Collects evidence for missing labels while all workloads and their traffic are read. Its subjects are the workloads
 * that lack labels, and data is kept only for their name patterns, subnets and peers. Traffic is not used as evidence
 * for the role, because workloads that communicate usually have different roles.
 */
export function createSuggester(subjects: readonly Subject[], index: LabelIndex, sources: readonly Source[]) {
  const keys = new Set(subjects.flatMap(({ missing }) => missing))
  const patternsOf = new Map(subjects.map(({ href, workload }) => [href, namePatterns(workload)]))
  const subnets = new Map(subjects.map(({ href, workload }) => [href, subnetsOf(workload)]))
  const byPattern = emptyCounts(sources.includes('names') ? [...patternsOf.values()].flat() : [])
  const bySubnet = emptyCounts(sources.includes('addresses') ? [...subnets.values()].flat() : [])
  const peers = new Map<string, Map<string, Map<string, Set<string>>>>()
  const valuesByKey = new Map(
    [...keys].map((key) => [key, new Map(index.values(key).map((value) => [value.toLowerCase(), value]))]),
  )

  return {
    /** Clears the counts. It must be called before the list of workloads is read, and again if it is read anew. */
    begin() {
      for (const counts of [byPattern, bySubnet]) for (const counted of counts.values()) counted.clear()
    },
    /**
     * Adds a workload of the organisation, whether it is a subject or not. Each of the given labels must have its key
     * and value.
     */
    seeWorkload(workload: Workload, labels: readonly LabelRef[]) {
      const known = labels.filter(({ key }) => key !== undefined && keys.has(key))
      if (known.length === 0) return
      if (byPattern.size > 0) countIn(byPattern, namePatterns(workload), known)
      if (bySubnet.size > 0) countIn(bySubnet, subnetsOf(workload), known)
    },
    /**
     * Adds a peer, which is a workload that exchanged traffic with a subject. `labels` are the peer's label values by
     * key.
     */
    seePeer(subject: string, peer: string, labels: Readonly<Record<string, string>>) {
      for (const key of keys) {
        const value = Object.hasOwn(labels, key) ? labels[key] : undefined
        if (value === undefined || key === 'role') continue
        const byKey = orMake(peers, subject, () => new Map<string, Map<string, Set<string>>>())
        orMake(
          orMake(byKey, key, () => new Map<string, Set<string>>()),
          value,
          () => new Set<string>(),
        ).add(peer)
      }
    },
    /** Returns the suggestions for each missing label of a subject, the best one first. */
    suggest({ href, workload, missing }: Subject): Suggestion[] {
      return missing.flatMap((key) => {
        const named = sources.includes('names') ? fromNames(byPattern, patternsOf.get(href) ?? [], key) : null
        const holds = sources.includes('names') ? heldBy(workload, valuesByKey.get(key)) : null
        return weigh(key, {
          names: joinNames(named, holds),
          addresses: [fromSubnets(bySubnet, subnets.get(href) ?? [], key)],
          // A laptop or desktop uses all kinds of applications and does not belong to any of them.
          traffic: isEndpoint(workload) ? [] : [fromPeers(peers.get(href)?.get(key))],
        })
      })
    },
  }
}

const isEndpoint = ({ ven }: Pick<Workload, 'ven'>): boolean => ven?.ven_type === 'endpoint'

const emptyCounts = (of: readonly string[]) => new Map(of.map((text) => [text, new Map() as Counted]))

function countIn(counts: ReadonlyMap<string, Counted>, found: readonly string[], labels: readonly LabelRef[]): void {
  for (const text of found) {
    const counted = counts.get(text)
    if (counted === undefined) continue
    for (const { key = '', value = '' } of labels) {
      const values = orMake(counted, key, () => new Map() as Values)
      values.set(value, (values.get(value) ?? 0) + 1)
    }
  }
}

function orMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key) ?? make()
  map.set(key, known)
  return known
}

/** Returns the most frequent value if at least two workloads and more than half of all have it, otherwise null. */
function majorityOf(values: ReadonlyMap<string, number> | undefined) {
  const sorted = [...(values ?? [])].sort(([a, m], [b, n]) => n - m || compareTexts(a, b))
  const of = sorted.reduce((sum, [, count]) => sum + count, 0)
  const [value, agree] = sorted[0] ?? ['', 0]
  if (agree < LEAST || 2 * agree <= of) return null
  return { value, agree, of, isSolid: agree >= SOLID_COUNT && agree >= SOLID_SHARE * of }
}

/**
 * Returns the evidence from the most specific name pattern for which most workloads have the same value. Words are the
 * least specific patterns; among them, the one with the clearest majority is used.
 */
function fromNames(counts: ReadonlyMap<string, Counted>, patterns: readonly string[], key: string): Evidence | null {
  const found = patterns.flatMap((pattern) => {
    const majority = majorityOf(counts.get(pattern)?.get(key))
    return majority === null ? [] : [{ pattern, ...majority }]
  })
  const [first] = found
  if (first === undefined) return null
  const isWord = ({ pattern }: { pattern: string }) => pattern.startsWith('*')
  const best = isWord(first) ? found.sort((a, b) => b.agree / b.of - a.agree / a.of || b.of - a.of)[0]! : first
  const { pattern, value, agree, of, isSolid } = best
  const alike = isWord(best) ? `that hold ${quote(pattern.replaceAll('*', ''))}` : `like ${quote(pattern)}`
  return { value, because: `names: ${agree} of ${of} ${alike} have it`, isSolid }
}

/**
 * Returns evidence for a label value that occurs as a word in the workload's name. Returns null unless exactly one of
 * the given values occurs in it.
 */
function heldBy({ name, hostname }: Subject['workload'], values: ReadonlyMap<string, string> | undefined) {
  const words = nameWords(hostname || name || '')
  const held = [...new Set(words.flatMap((word) => values?.get(word) ?? []))]
  const [value] = held
  return held.length !== 1 || value === undefined
    ? null
    : { value, because: `names: this one holds ${quote(value)}`, isSolid: false }
}

/**
 * Combines the evidence from a name pattern with the evidence from the name itself. If both suggest the same value, the
 * combined evidence is solid.
 */
function joinNames(pattern: Evidence | null, held: Evidence | null): (Evidence | null)[] {
  if (pattern === null || held === null || pattern.value !== held.value) return [pattern, held]
  const because = `${pattern.because}, and this one holds ${quote(held.value)}`
  return [{ ...pattern, because, isSolid: true }]
}

function fromSubnets(counts: ReadonlyMap<string, Counted>, subnets: readonly string[], key: string): Evidence | null {
  const found = subnets.flatMap((subnet) => {
    const majority = majorityOf(counts.get(subnet)?.get(key))
    return majority === null ? [] : [{ subnet, ...majority }]
  })
  const best = found.sort((a, b) => b.agree / b.of - a.agree / a.of || b.of - a.of)[0]
  if (best === undefined) return null
  const { subnet, value, agree, of, isSolid } = best
  return { value, because: `addresses: ${agree} of ${of} in ${subnet} have it`, isSolid }
}

function fromPeers(values: ReadonlyMap<string, ReadonlySet<string>> | undefined): Evidence | null {
  const majority = majorityOf(new Map([...(values ?? [])].map(([value, peers]) => [value, peers.size])))
  if (majority === null) return null
  const { value, agree, of } = majority
  // The users of an application also communicate with it, so traffic alone does not make a workload part of it.
  return { value, because: `traffic: ${agree} of ${of} workloads that it talks to have it`, isSolid: false }
}

/**
 * Rates the evidence. `strong`: two sources agree, at least one of them is solid, and none contradicts. `fair`: one
 * solid source without contradiction, or two sources that agree. `weak`: anything less.
 */
function weigh(key: string, found: Record<Source, (Evidence | null)[]>): Suggestion[] {
  const byValue = new Map<string, { sources: Set<Source>; evidence: Evidence[] }>()
  for (const source of SOURCES)
    for (const evidence of found[source]) {
      if (evidence === null) continue
      const known = orMake(byValue, evidence.value, () => ({ sources: new Set<Source>(), evidence: [] as Evidence[] }))
      known.sources.add(source)
      known.evidence.push(evidence)
    }
  const isContradicted = byValue.size > 1
  return [...byValue]
    .map(([value, { sources, evidence }]): Suggestion => {
      const isSolid = evidence.some((one) => one.isSolid)
      const agree = sources.size > 1
      const strength =
        agree && isSolid && !isContradicted ? 'strong' : agree || (isSolid && !isContradicted) ? 'fair' : 'weak'
      return { key, value, strength, because: evidence.map(({ because }) => because) }
    })
    .sort(
      (a, b) =>
        STRENGTHS.indexOf(a.strength) - STRENGTHS.indexOf(b.strength) ||
        b.because.length - a.because.length ||
        compareTexts(a.value, b.value),
    )
}

import ipaddr from 'ipaddr.js'
import type { PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import { ToolError } from '../../schemas/errors.js'
import { findByHref } from '../inventory/find-object.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { Steps } from '../text/pace-work.js'
import type { SuggestedEnd, SuggestedRule } from './choose-rule.js'
import { findMembers, hostOf, type Member, type Members } from './find-members.js'
import { MOST_KINDS, classify, countPairs, pairOf, pairsOf } from './judge-members.js'
import type { PairJudge, PairVerdict } from './judge-pair.js'
import type { AskedEnd } from './resolve-end.js'

/** A pair of source and destination about which a suggested rule would change the decision. */
export interface OpenedPair {
  source: string
  destination: string
  before: PairVerdict['decision']
  after: PairVerdict['decision']
}

/** What a suggested rule would change between the sources and destinations that exist today. */
export interface Opened {
  /** Numbers of sources and destinations that the rule selects. */
  sources: number
  destinations: number
  /** Number of pairs whose decision would change, including pairs that the caller asked about. */
  pairs: number
  /**
   * Number of pairs among `pairs` for which it is uncertain whether the rule changes the decision, because the decision
   * before or after the rule is itself uncertain.
   */
  uncertain: number
  /** Number of these pairs that the caller asked about. */
  asked: number
  /** True if the rule permits traffic between at least one pair that the caller asked about. */
  helps: boolean
  /** Examples of changed pairs that the caller did not ask about, up to the requested number. */
  examples: readonly OpenedPair[]
  /**
   * Those pairs that the caller asked about and that, even with the rule, are not certainly allowed; null if there are
   * none.
   */
  remaining: { pairs: number; example: PairVerdict } | null
  /**
   * True if more pairs exist than were compared, so that counts are lower bounds: `asked` for the pairs that the caller
   * asked about (and so for `remaining`), `beyond` for all other pairs.
   */
  isCut: { asked: boolean; beyond: boolean }
  /**
   * Notes about pairs that were not compared: those that the caller asked about (`asked`), and all others (`beyond`).
   */
  notes: { asked: readonly string[]; beyond: readonly string[] }
}

/**
 * Finds all sources and destinations that a suggested rule selects. An address that the caller asked about is kept
 * apart from the other addresses of its IP list.
 */
export async function findNamed(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  { consumers, providers, scope, unscoped }: SuggestedRule,
  ends: { source: AskedEnd; destination: AskedEnd },
  index: LabelIndex,
  lists: readonly IpList[],
): Promise<{ sources: Members; destinations: Members }> {
  const members = async (end: SuggestedEnd, of: AskedEnd, within: readonly Label[]): Promise<Members> => {
    const asked = await asAsked(pce, end, within, signal)
    try {
      return await findMembers(pce, asked, index, [...lists, ...listAlone(of)], signal)
    } catch (error) {
      if (error instanceof ToolError && error.code === 'no_workloads') return { members: [], isCut: false, notes: [] }
      throw error
    }
  }
  return {
    sources: await members(consumers, ends.source, unscoped ? [] : scope),
    destinations: await members(providers, ends.destination, scope),
  }
}

/**
 * Builds an IP list that contains only the address that the caller asked about, so that it forms a group of its own.
 */
const listAlone = (end: AskedEnd): IpList[] =>
  end.kind === 'address' && end.workload === null
    ? [{ href: '', name: end.name, ip_ranges: [{ from_ip: spellAddress(end.address) }] }]
    : []

const spellAddress = (address: string) => ipaddr.process(address).toString()

async function asAsked(
  pce: PceClient,
  end: SuggestedEnd,
  within: readonly Label[],
  signal: AbortSignal,
): Promise<AskedEnd> {
  switch (end.kind) {
    case 'ams':
      return { kind: 'labels', name: 'the scope', labels: within }
    case 'labels':
      return { kind: 'labels', name: 'these labels', labels: [...within, ...end.labels] }
    case 'workload':
      return {
        kind: 'workload',
        name: end.name,
        workload: await findByHref(pce, 'workloads', end.href, 'draft', signal),
      }
    case 'ip_list':
      return { kind: 'ip_list', name: end.name, list: end.list }
  }
}

/** Compares the decisions without and with a rule, for every pair of source and destination that the rule selects. */
export function* findOpened(
  before: PairJudge,
  after: PairJudge,
  named: { sources: Members; destinations: Members },
  asked: { sources: Members; destinations: Members },
  most: number,
): Steps<Opened> {
  const judges = [before, after]
  const [isSource, isDestination] = [memberTest(asked.sources.members), memberTest(asked.destinations.members)]
  const from = splitBy(yield* classify(judges, named.sources.members), isSource)
  const to = splitBy(yield* classify(judges, named.destinations.members), isDestination)
  const notAsked = to.filter(({ isAsked: is }) => !is)
  const examples: OpenedPair[] = []
  const [beyond, kinds] = [
    { pairs: 0, uncertain: 0 },
    { done: 0, total: 0 },
  ]
  for (const source of from) {
    // The pairs that the caller asked about are compared separately, because the rule may not select all of them.
    const others = source.isAsked ? notAsked : to
    kinds.total += others.length
    for (const destination of others) {
      if (kinds.done === MOST_KINDS) break
      const pair = pairOf(source, destination)
      if (pair === null) continue
      kinds.done += 1
      const [was, is] = [before(pair.source, pair.destination), after(pair.source, pair.destination)]
      yield
      if (was.decision === is.decision) continue
      tally(beyond, was, is, pair.count)
      addExamples(examples, source.members, destination.members, was, is, most)
    }
  }
  const { notes, changed, isAskedCut, ...compared } = yield* compareAsked(before, after, asked)
  const unnamed = [...named.sources.notes, ...named.destinations.notes]
  return {
    sources: sizeOf(named.sources.members),
    destinations: sizeOf(named.destinations.members),
    pairs: beyond.pairs + changed.pairs,
    uncertain: beyond.uncertain + changed.uncertain,
    asked: changed.pairs,
    examples,
    ...compared,
    isCut: { asked: isAskedCut, beyond: isCut(kinds) || named.sources.isCut || named.destinations.isCut },
    notes: { asked: notes, beyond: [...new Set([...unnamed, ...cutNote(kinds, 'pairs beyond them')])] },
  }
}

interface Changed {
  pairs: number
  uncertain: number
}

function tally(changed: Changed, was: PairVerdict, is: PairVerdict, count: number): void {
  changed.pairs += count
  if (was.decision === 'uncertain' || is.decision === 'uncertain') changed.uncertain += count
}

const isCut = ({ done, total }: { done: number; total: number }) => done === MOST_KINDS && done < total

const cutNote = ({ done, total }: { done: number; total: number }, of: string): string[] =>
  isCut({ done, total }) ? [`Only ${done} of ${total} kinds of ${of} were compared.`] : []

const sizeOf = (members: readonly Member[]) => members.reduce((sum, { size }) => sum + size, 0)

/**
 * Builds a test that accepts only the members that the caller asked about: the same workloads, or the same addresses.
 */
function memberTest(asked: readonly Member[]): (member: Member) => boolean {
  const idOf = ({ workload, isUnsure, ip, size }: Member) =>
    workload !== null && isUnsure !== true ? workload : `${ip === null ? '' : spellAddress(ip)} ${size}`
  const known = new Set(asked.map(idOf))
  return (member) => known.has(idOf(member))
}

type AskedClass = { members: readonly Member[]; size: number; isAsked: boolean }

function splitBy(
  classes: readonly { members: readonly Member[]; size: number }[],
  isAsked: (member: Member) => boolean,
): AskedClass[] {
  return classes.flatMap(({ members }) => {
    const parts = [true, false].map((asked) => ({
      members: members.filter((member) => isAsked(member) === asked),
      isAsked: asked,
    }))
    return parts.flatMap((part) => (part.members.length === 0 ? [] : [{ ...part, size: sizeOf(part.members) }]))
  })
}

function addExamples(
  examples: OpenedPair[],
  sources: readonly Member[],
  destinations: readonly Member[],
  { decision: before }: PairVerdict,
  { decision: after }: PairVerdict,
  most: number,
): void {
  for (const source of sources) {
    for (const destination of destinations) {
      if (examples.length >= most) return
      if (hostOf(source) !== null && hostOf(source) === hostOf(destination)) continue
      examples.push({ source: source.name, destination: destination.name, before, after })
    }
  }
}

function* compareAsked(
  before: PairJudge,
  after: PairJudge,
  asked: { sources: Members; destinations: Members },
): Steps<Pick<Opened, 'helps' | 'remaining'> & { changed: Changed; isAskedCut: boolean; notes: string[] }> {
  const from = yield* classify([before, after], asked.sources.members)
  const to = yield* classify([before, after], asked.destinations.members)
  const changed = { pairs: 0, uncertain: 0 }
  const total = countPairs(from, to).kinds
  let [remaining, done, helps] = [0, 0, false]
  let example: PairVerdict | null = null
  for (const { source, destination, count } of pairsOf(from, to)) {
    if (done === MOST_KINDS) break
    done += 1
    const [was, is] = [before(source, destination), after(source, destination)]
    yield
    if (was.decision !== is.decision) tally(changed, was, is, count)
    if (is.decision === 'allowed') {
      helps ||= was.decision !== 'allowed'
      continue
    }
    remaining += count
    example ??= is
  }
  return {
    changed,
    helps,
    remaining: example === null ? null : { pairs: remaining, example },
    isAskedCut: isCut({ done, total }) || asked.sources.isCut || asked.destinations.isCut,
    notes: cutNote({ done, total }, 'pairs asked about'),
  }
}

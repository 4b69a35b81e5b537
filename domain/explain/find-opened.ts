import type { PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import { ToolError } from '../../schemas/errors.js'
import { findByHref } from '../inventory/find-object.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { Steps } from '../text/pace-work.js'
import type { SuggestedEnd, SuggestedRule } from './choose-rule.js'
import { findMembers, type Member, type Members } from './find-members.js'
import { classify, pairOf } from './judge-members.js'
import type { PairJudge, PairVerdict } from './judge-pair.js'
import type { AskedEnd } from './resolve-end.js'

/** A pair of ends whose traffic a suggested rule would let through. */
export interface OpenedPair {
  source: string
  destination: string
  before: PairVerdict['decision']
  after: PairVerdict['decision']
}

/** What a suggested rule would change, between the ends that exist today. */
export interface Opened {
  /** Ends that the rule names. */
  sources: number
  destinations: number
  /** Pairs whose decision would be another, those asked about among them. */
  pairs: number
  /** Of these, pairs whose decision is uncertain, without the rule or with it: it may be the same. */
  uncertain: number
  /** Of these, pairs that were asked about. */
  asked: number
  /** Pairs that were not asked about; all of them where there are no more than asked for. */
  examples: readonly OpenedPair[]
  /** Pairs asked about that it would not let through, for certain or perhaps. */
  remaining: { pairs: number; example: PairVerdict } | null
  notes: readonly string[]
}

/** More kinds of pairs are not compared. */
const MOST_KINDS = 4_000

/** Everyone whom the two sides of a suggested rule name. */
export async function findNamed(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  { consumers, providers, scope, unscoped }: SuggestedRule,
  index: LabelIndex,
  lists: readonly IpList[],
): Promise<{ sources: Members; destinations: Members }> {
  const members = async (end: SuggestedEnd, within: readonly Label[]): Promise<Members> => {
    const asked = await asAsked(pce, end, within, signal)
    try {
      return await findMembers(pce, asked, index, lists, signal)
    } catch (error) {
      if (error instanceof ToolError && error.code === 'no_workloads') return { members: [], notes: [] }
      throw error
    }
  }
  return {
    sources: await members(consumers, unscoped ? [] : scope),
    destinations: await members(providers, scope),
  }
}

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

/** Compares what becomes of every pair that a rule names, without it and with it. */
export function* findOpened(
  before: PairJudge,
  after: PairJudge,
  named: { sources: Members; destinations: Members },
  asked: { sources: readonly Member[]; destinations: readonly Member[] },
  most: number,
): Steps<Opened> {
  const judges = [before, after]
  const [isSource, isDestination] = [memberTest(asked.sources), memberTest(asked.destinations)]
  const from = splitBy(yield* classify(judges, named.sources.members), isSource)
  const to = splitBy(yield* classify(judges, named.destinations.members), isDestination)
  const notes = [...named.sources.notes, ...named.destinations.notes]
  const examples: OpenedPair[] = []
  const counts = { pairs: 0, uncertain: 0 }
  let kinds = 0
  for (const source of from) {
    for (const destination of to) {
      const pair = pairOf(source, destination)
      if (pair === null) continue
      kinds += 1
      if (kinds > MOST_KINDS) continue
      const [was, is] = [before(pair.source, pair.destination), after(pair.source, pair.destination)]
      yield
      if (was.decision === is.decision) continue
      counts.pairs += pair.count
      if (was.decision === 'uncertain' || is.decision === 'uncertain') counts.uncertain += pair.count
      if (!source.isAsked || !destination.isAsked)
        addExamples(examples, source.members, destination.members, was, is, most)
    }
  }
  if (kinds > MOST_KINDS) notes.push(`Only ${MOST_KINDS} of ${kinds} kinds of pairs were compared.`)
  return {
    sources: sizeOf(named.sources.members),
    destinations: sizeOf(named.destinations.members),
    ...counts,
    examples,
    ...(yield* compareAsked(before, after, asked)),
    notes: [...new Set(notes)],
  }
}

const sizeOf = (members: readonly Member[]) => members.reduce((sum, { size }) => sum + size, 0)

/** Whether a member is one of those that were asked about: the same workload, or the same addresses. */
function memberTest(asked: readonly Member[]): (member: Member) => boolean {
  const idOf = ({ workload, name }: Member) => workload ?? name
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
      if (source.workload !== null && source.workload === destination.workload) continue
      examples.push({ source: source.name, destination: destination.name, before, after })
    }
  }
}

function* compareAsked(
  before: PairJudge,
  after: PairJudge,
  asked: { sources: readonly Member[]; destinations: readonly Member[] },
): Steps<Pick<Opened, 'asked' | 'remaining'>> {
  const from = yield* classify([before, after], asked.sources)
  const to = yield* classify([before, after], asked.destinations)
  let [changed, remaining] = [0, 0]
  let example: PairVerdict | null = null
  for (const source of from) {
    for (const destination of to) {
      const pair = pairOf(source, destination)
      if (pair === null) continue
      const is = after(pair.source, pair.destination)
      if (is.decision !== before(pair.source, pair.destination).decision) changed += pair.count
      yield
      if (is.decision === 'allowed') continue
      remaining += pair.count
      example ??= is
    }
  }
  return { asked: changed, remaining: example === null ? null : { pairs: remaining, example } }
}

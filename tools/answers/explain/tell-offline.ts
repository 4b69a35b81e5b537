import { judgeWhileOffline } from '../../../domain/explain/judge-offline.js'
import type { JudgedFlow } from '../../../domain/explain/prepare-flow.js'
import type { Version } from '../../../domain/inventory/find-object.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import type { ToldVerdict, ToldVerdicts } from './tell-verdict.js'

type Flow = Pick<JudgedFlow, 'sources' | 'destinations' | 'verdict' | 'judges'>

const MOST_NAMED = 3
const LEFT_OUT = 'addresses out of the policy of others'

/**
 * Adds a sentence to the reason of each verdict on a single pair: the decision while one of its ends is offline, if it
 * differs from the verdict. The verdict itself does not change, because it follows from the rules (D206).
 */
export function tellWhileOffline(told: ToldVerdicts, flow: Flow): Record<Version, ToldVerdict> {
  const [active, draft] = [sayWhileOffline(flow, 'active'), sayWhileOffline(flow, 'draft')]
  const isTold = draft === active && told.isSame
  return {
    active: { ...told.active, why: `${told.active.why}${active}` },
    draft: isTold ? told.draft : { ...told.draft, why: `${told.draft.why}${draft}` },
  }
}

function sayWhileOffline({ verdict, judges }: Flow, version: Version): string {
  const pair = verdict.pairs === 1 ? verdict.outcomes[0]?.examples[0] : undefined
  if (pair === undefined) return ''
  const { source, destination } = pair
  const meanwhile = judgeWhileOffline(judges[version], source, destination)
  if (meanwhile === null || meanwhile.decision === pair[version].decision) return ''
  const who = [source, destination].flatMap(({ isOffline, name }) => (isOffline === true ? [quote(name)] : []))
  const [is, its] = who.length === 1 ? ['is', 'its'] : ['are', 'their']
  return ` But ${who.join(' and ')} ${is} offline: until that changes it is ${meanwhile.possible.join(' or ')}, since the PCE leaves ${its} ${LEFT_OUT}.`
}

/**
 * Names the ends that are offline (`isOffline` true), online (false) or in an unknown state (null), such as `3 of 5
 * sources (web-1, web-2 …)`; undefined if there are none.
 */
function nameEnds(
  { sources, destinations }: Flow,
  isOffline: boolean | null,
): { who: string; count: number } | undefined {
  const sides = [
    { noun: 'source', members: sources.members },
    { noun: 'destination', members: destinations.members },
  ].flatMap(({ noun, members }) => {
    const found = members.filter((member) => member.isOffline === isOffline)
    const [first] = found
    if (first === undefined) return []
    if (members.length === 1) return [{ text: quote(first.name), count: 1 }]
    const named = found.slice(0, MOST_NAMED).map(({ name }) => quote(name))
    const more = found.length > MOST_NAMED ? ' …' : ''
    const text = `${found.length} of ${countOf(members.length, noun)} (${named.join(', ')}${more})`
    return [{ text, count: found.length }]
  })
  const count = sides.reduce((sum, side) => sum + side.count, 0)
  return count === 0 ? undefined : { who: sides.map(({ text }) => text).join(' and '), count }
}

/**
 * Returns the beginning of a sentence about the ends that are offline (`3 of 5 sources (web-1, web-2 …) are offline, so
 * …`), and their number; undefined if there are none.
 */
function nameOffline(flow: Flow): { text: string; count: number } | undefined {
  const named = nameEnds(flow, true)
  if (named === undefined) return undefined
  const { who, count } = named
  const [is, its] = count === 1 ? ['is', 'its'] : ['are', 'their']
  return { text: `${who} ${is} offline, so the PCE leaves ${its} ${LEFT_OUT}`, count }
}

/** Returns sentences that name the ends that are, or may be, offline, and say that the verdicts ignore this. */
export function listOffline(flow: Flow): string[] {
  const offline = nameOffline(flow)
  const untold = nameEnds(flow, null)
  const they = (count: number) => (count === 1 ? 'it' : 'they')
  return [
    ...(offline === undefined
      ? []
      : [
          `${offline.text}. The verdicts, and the PCE's own check, are by the rules as if ${they(offline.count)} were online.`,
        ]),
    ...(untold === undefined
      ? []
      : [
          `Whether ${untold.who} ${untold.count === 1 ? 'is' : 'are'} online is not known. The verdicts are by the rules as if ${they(untold.count)} were.`,
        ]),
  ]
}

/** Warns that no rule will help while an end of the flow is offline. */
export function warnOfOffline(flow: Flow): string[] {
  const offline = nameOffline(flow)
  if (offline === undefined) return []
  const they = offline.count === 1 ? 'it is' : 'they are'
  return [`${offline.text}: no rule about workloads or labels helps there until ${they} online again.`]
}

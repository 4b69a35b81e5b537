import { writeLabel } from '../../schemas/label-reference.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import type { TwinEvidence } from './evidence-of-twins.js'
import { shareAddress, type Twins } from './find-twins.js'
import type { Machine } from './known-machines.js'

/** The advice on which of several workloads for one machine to keep. */
export interface Choice {
  /** The href of the workload to keep; null if it is not clear which one, or if all of them should stay. */
  keep: string | null
  why: string
  /** Sentences that say what has to be done before the other workloads can be deleted. */
  first: string[]
}

/** Maximum number of workloads in a group for which the answer says what to do before they can be deleted. */
const MOST_TOLD = 5

/**
 * Chooses which of several workloads to keep, by what depends on each of them: rules, virtual services and traffic
 * (D263). The choice is only advice; nothing is written. None is chosen if the workloads have only a name in common, or
 * if a part of the evidence is missing.
 */
export function chooseTwin(twins: Twins, evidenceOf: (href: string) => TwinEvidence): Choice {
  const { kind, members } = twins
  const open = (why: string): Choice => ({ keep: null, why, first: [] })
  if (kind === 'managed')
    return open(
      shareAddress(twins)
        ? 'Each has a VEN: an address of several is often that of a bridge or a cluster, or one is a clone. Keep them.'
        : 'Each has a VEN: one may be a clone, or have been paired twice. The one that is offline may be the older pairing.',
    )
  if (!shareAddress(twins))
    return open(
      'They share no address, so they may be two machines. If it is one, let one workload have all addresses.',
    )
  const evidence = new Map(members.map(({ href }) => [href, evidenceOf(href)]))
  if (
    [...evidence.values()].some(({ rules, named, bindings }) => rules === null || named === null || bindings === null)
  )
    return open('What policy hangs on them is not known, so none can be given up.')
  if (kind === 'shadow') {
    const managed = members.filter((one) => one.managed)
    const [host] = managed
    if (host === undefined || managed.length > 1)
      return open('Several of them have a VEN, so it is not clear which machine the unmanaged one stands for.')
    const why = 'A VEN runs on it, which reports its addresses and enforces its policy.'
    return { keep: host.href, why, first: listFirst(host, members, evidence) }
  }
  const { best, why } = pickBest(members, evidence)
  return { keep: best.href, why, first: listFirst(best, members, evidence) }
}

interface Criterion {
  of: (machine: Machine, evidence: TwinEvidence) => number
  why: (value: number) => string
}

/** The criteria in order of priority. The first criterion by which one workload is better than all others decides. */
const CRITERIA: readonly Criterion[] = [
  {
    of: (_, { named, bindings }) => (named ?? 0) + (bindings ?? 0),
    why: (value) => `${countOf(value, 'rule')} or virtual services name it by itself, more than the others.`,
  },
  {
    of: (_, { rules }) => rules?.applying ?? 0,
    why: (value) => `${countOf(value, 'rule')} in force apply to it, more than to the others.`,
  },
  {
    of: (_, { traffic }) => traffic?.connections ?? 0,
    why: (value) => `Traffic is recorded under it (${countOf(value, 'connection')}), more than under the others.`,
  },
  { of: ({ labels }) => labels.length, why: () => 'It has more labels than the others.' },
  { of: ({ keeper }) => Number(keeper !== null), why: () => 'An integration keeps it, and might create it again.' },
  { of: ({ createdAt }) => -(Date.parse(createdAt ?? '') || Infinity), why: () => 'It is the oldest of them.' },
]

function pickBest(members: readonly Machine[], evidence: ReadonlyMap<string, TwinEvidence>) {
  let left = [...members]
  for (const { of, why } of CRITERIA) {
    const values = new Map(left.map((one) => [one, of(one, evidence.get(one.href)!)]))
    const most = Math.max(...values.values())
    const best = left.filter((one) => values.get(one) === most)
    if (best.length === 1 && left.length > 1) return { best: best[0]!, why: why(most) }
    left = best
  }
  return { best: left[0]!, why: 'They are alike in all that was looked at, so any of them will do.' }
}

/** Returns sentences that say what depends on the workloads that would be deleted. */
function listFirst(kept: Machine, members: readonly Machine[], evidence: ReadonlyMap<string, TwinEvidence>): string[] {
  return members
    .filter(({ href, managed }) => href !== kept.href && !managed)
    .flatMap((machine) => {
      const { named, bindings } = evidence.get(machine.href)!
      const had = new Map(kept.labels.map(({ key, href }) => [key, href]))
      const lacking = machine.labels.filter(({ key, href }) => had.get(key) !== href)
      const labels = lacking.flatMap(({ key, value }) =>
        key == null || value == null ? [] : [writeLabel({ key, value })],
      )
      const addresses = machine.addresses.filter((address) => !kept.addresses.includes(address))
      const tasks = [
        ...((named ?? 0) > 0 ? [`${countOf(named ?? 0, 'rule')} name it: put the kept one in its place`] : []),
        ...((bindings ?? 0) > 0 ? [`${countOf(bindings ?? 0, 'virtual service')} bound to it: bind the kept one`] : []),
        ...(labels.length > 0 ? [`it has ${labels.map(quote).join(', ')}, which the kept one has not`] : []),
        ...(addresses.length > 0 ? [`it alone has ${addresses.slice(0, 3).join(', ')}`] : []),
        ...(machine.keeper === null ? [] : [`${quote(machine.keeper)} keeps it, and may create it again`]),
      ]
      return tasks.length === 0 ? [] : [`${quote(machine.name)}: ${tasks.join('; ')}.`]
    })
    .slice(0, MOST_TOLD)
}

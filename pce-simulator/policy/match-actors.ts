import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import { sameObjectKey } from '../model.js'

/** The facts about the source or destination of a connection by which rules can select it. */
export interface EndFacts {
  /** The href of the workload; null for an address that does not belong to one. */
  workload: string | null
  labels: ReadonlySet<string>
  /**
   * The IP lists that contain the address or host name, as hrefs without policy version. Lists that contain the address
   * of a workload are included.
   */
  ipLists: ReadonlySet<string>
}

/** A lookup of the key of a label, and of the members of a label group. */
export interface LabelLookup {
  keyOf(labelHref: string): string | undefined
  members(labelGroupHref: string): readonly string[]
}

/**
 * Two tests of whether the providers or the consumers of a rule include the source or destination of a connection. If
 * it is included as a workload, the rule is enforced on it. If it is included only as an address, the rule can only be
 * enforced on the workload that it communicates with.
 */
export interface ActorTest {
  asWorkload(facts: EndFacts): boolean
  asAddress(facts: EndFacts): boolean
}

type LabelEntry = Pick<Actor, 'label' | 'label_group' | 'exclusion'>
type LabelTest = (labels: ReadonlySet<string>) => boolean

/**
 * Builds a test for the labels of a workload. Labels with the same key are combined with OR, and different keys with
 * AND. An excluded label or group rejects all workloads that have it, and accepts every other workload, including those
 * without a label of the key. A label group stands for its members.
 */
export function compileLabels(entries: readonly LabelEntry[], lookup: LabelLookup): LabelTest {
  const wanted = new Map<string, Set<string>>()
  const unwanted = new Set<string>()
  for (const entry of entries) {
    const hrefs = entry.label === undefined ? lookup.members(entry.label_group?.href ?? '') : [entry.label.href]
    if (entry.exclusion === true) {
      for (const href of hrefs) unwanted.add(href)
      continue
    }
    const key = entry.label?.key ?? entry.label_group?.key ?? lookup.keyOf(hrefs[0] ?? '') ?? ''
    const ofKey = wanted.get(key) ?? new Set()
    for (const href of hrefs) ofKey.add(href)
    wanted.set(key, ofKey)
  }
  const keys = [...wanted.values()].map((hrefs) => [...hrefs])
  const excluded = [...unwanted]
  return (labels) =>
    !excluded.some((href) => labels.has(href)) && keys.every((hrefs) => hrefs.some((href) => labels.has(href)))
}

/** Builds a test for one scope of a rule set. An empty scope matches everything. */
export const compileScope = (entries: readonly ScopeEntry[], lookup: LabelLookup): LabelTest =>
  compileLabels(entries, lookup)

/**
 * Builds a test for the providers or the consumers of a rule within one scope (which is `everywhere` for the consumers
 * of an extra-scope rule). All labels together form one condition. That condition, "all workloads", individual
 * workloads and IP lists are alternatives. A scope only restricts workloads, since IP lists have no labels. Virtual
 * services are handled elsewhere, and container hosts match nothing.
 *
 * @param resolveLabels false if the labels only stand for virtual services (`resolve_labels_as`).
 */
export function compileActors(
  actors: readonly Actor[],
  scope: LabelTest,
  lookup: LabelLookup,
  resolveLabels: boolean,
): ActorTest {
  const labelled = actors.filter(({ label, label_group }) => label !== undefined || label_group !== undefined)
  const matchesLabels = compileLabels(labelled, lookup)
  const all = resolveLabels && actors.some((actor) => actor.actors === 'ams')
  const byLabels = resolveLabels && labelled.length > 0
  const workloads = new Set(actors.flatMap(({ workload }) => workload?.href ?? []))
  const lists = actors.flatMap(({ ip_list }) => (ip_list === undefined ? [] : sameObjectKey(ip_list.href)))
  return {
    asWorkload: ({ workload, labels }) =>
      workload !== null && scope(labels) && (all || workloads.has(workload) || (byLabels && matchesLabels(labels))),
    asAddress: ({ ipLists }) => lists.some((list) => ipLists.has(list)),
  }
}

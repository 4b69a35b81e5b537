import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import { sameObjectKey } from '../model.js'

/** What rules look at in one end of a connection. */
export interface EndFacts {
  /** null for an address that is no workload. */
  workload: string | null
  labels: ReadonlySet<string>
  /** The IP lists (by object) that cover its address or name; a workload's address counts as well. */
  ipLists: ReadonlySet<string>
}

/** Finds what labels and label groups stand for. */
export interface LabelLookup {
  keyOf(labelHref: string): string | undefined
  members(labelGroupHref: string): readonly string[]
}

/** How a rule names an end. As a workload, the rule is written to it; as an address, it only stands in someone else's rule. */
export interface ActorTest {
  asWorkload(facts: EndFacts): boolean
  asAddress(facts: EndFacts): boolean
}

type LabelEntry = Pick<Actor, 'label' | 'label_group' | 'exclusion'>
type LabelTest = (labels: ReadonlySet<string>) => boolean

/**
 * Labels of one key OR together and different keys AND; an excluded label or group shuts its bearers out, and lets
 * everything else of that key in, workloads without the key included. Label groups count as their members.
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

/** One alternative of a rule set's scopes; an empty one is everything. */
export const compileScope = (entries: readonly ScopeEntry[], lookup: LabelLookup): LabelTest =>
  compileLabels(entries, lookup)

/**
 * One side of a rule inside one scope (`everywhere` for the consumers of an extra-scope rule). The labels of a side form one
 * condition; it, all workloads, single workloads and IP lists are alternatives. A scope narrows what names workloads; an IP
 * list has no labels, so no scope concerns it. Virtual services are looked for elsewhere, container hosts name nothing.
 *
 * @param resolveLabels false where labels stand for virtual services alone (`resolve_labels_as`)
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

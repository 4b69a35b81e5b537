import type { PceClient } from '../../pce-client/index.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'

/** Every label of an organisation, ready to be looked up. */
export interface LabelIndex {
  get(href: string): Label | undefined
  /** Exact and case-sensitive on both. */
  find(key: string, value: string): Label | undefined
  /** Labels that differ from (key, value) in case alone. */
  caseVariants(key: string, value: string): Label[]
  /** Values of a key, in the PCE's order; empty for an unknown key. */
  values(key: string): string[]
  keys(): string[]
  /** Keys that have a label of exactly this value. */
  keysOf(value: string): string[]
}

/** Seconds of age after which a label list is read again (T3). */
const MAX_AGE_MS = 60_000

/** Per client, so that no caller ever resolves against the labels of another's PCE. */
const cache = new WeakMap<PceClient, { index: LabelIndex; loadedAt: number }>()

/** The part of a call's context that reading needs. */
export type ReadContext = Pick<ToolContext, 'now' | 'signal'>

/** `fresh` reads the PCE even when a recent list is at hand: before a write, a label renamed meanwhile would be the wrong one. */
export type Freshness = 'recent' | 'fresh'

/** The label index of this client's PCE, at most 60 s old. Throws what the PCE client throws. */
export async function loadLabels(
  pce: PceClient,
  context: ReadContext,
  freshness: Freshness = 'recent',
): Promise<LabelIndex> {
  const cached = cache.get(pce)
  if (freshness === 'recent' && cached !== undefined && context.now() - cached.loadedAt < MAX_AGE_MS)
    return cached.index
  const loadedAt = context.now()
  const index = indexLabels(await pce.labels.getAll('draft', null, { signal: context.signal }))
  cache.set(pce, { index, loadedAt })
  return index
}

/** To be called after every label write of ours, failed ones too: the write may have happened. */
export function forgetLabels(pce: PceClient): void {
  cache.delete(pce)
}

/** Builds the index; deleted labels are left out, because nothing can refer to them any more. */
export function indexLabels(labels: readonly Label[]): LabelIndex {
  const live = labels.filter(({ deleted }) => deleted !== true)
  const byHref = new Map(live.map((label) => [label.href, label]))
  const byKey = new Map<string, Map<string, Label>>()
  for (const label of live) {
    const values = byKey.get(label.key) ?? new Map<string, Label>()
    byKey.set(label.key, values.set(label.value, label))
  }
  return {
    get: (href) => byHref.get(href),
    find: (key, value) => byKey.get(key)?.get(value),
    caseVariants: (key, value) =>
      live.filter((label) => (label.key !== key || label.value !== value) && sameButForCase(label, key, value)),
    values: (key) => [...(byKey.get(key)?.keys() ?? [])],
    keys: () => [...byKey.keys()].sort(),
    keysOf: (value) => [...byKey].filter(([, values]) => values.has(value)).map(([key]) => key),
  }
}

function sameButForCase(label: Label, key: string, value: string): boolean {
  return label.key.toLowerCase() === key.toLowerCase() && label.value.toLowerCase() === value.toLowerCase()
}

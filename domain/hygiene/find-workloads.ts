import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { EnforcementMode, Workload } from '../../schemas/pce/workload.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { isKubernetes, KUBERNETES_LIMITS, readKubernetesWorkloads } from '../inventory/kubernetes-workloads.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { parseHref } from '../inventory/parse-href.js'
import { tellApart, type Namesake } from '../inventory/tell-apart.js'
import { isManaged } from '../inventory/workloads.js'
import { nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'

/** The fields of a workload that are needed to change its labels. */
export interface FoundWorkload {
  href: string
  /** The name of the workload, or its host name if it has no name. */
  name: string
  ownName: string | null
  hostname: string | null
  managed: boolean
  mode: EnforcementMode | null
  labels: readonly LabelRef[]
}

/**
 * A reference to a workload as callers write it. `name` may be the workload's name, its host name, or its host name
 * without the domain. If several workloads match, a `hostname` next to `name` selects one of them.
 */
export type WorkloadReference = { href: string } | { name: string; hostname?: string } | { hostname: string }

/**
 * The workload, or the reason why it was not found. `candidates` lists the workloads to which an ambiguous name may
 * refer.
 */
export type Lookup = FoundWorkload | { problem: string; candidates?: readonly object[] }

/** Maximum number of workloads that are looked up individually. If there are more, the whole list is read. */
const ASKED_ONE_BY_ONE = 10
const IN_FLIGHT = 4
/** Maximum number of candidates named in a message about an ambiguous reference. */
const MOST_CANDIDATES = 5
/** Maximum number of names that are kept for hints, and maximum number of references for which hints are computed. */
const MOST_NAMES = 5000
const MOST_HINTS = 20

export const isFound = (lookup: Lookup): lookup is FoundWorkload => 'href' in lookup

export function toFound(workload: Workload): FoundWorkload {
  const { href, name, hostname, labels, enforcement_mode: mode } = workload
  return {
    href,
    name: name || hostname || href,
    ownName: name ?? null,
    hostname: hostname ?? null,
    managed: isManaged(workload),
    mode: mode ?? null,
    labels: labels ?? [],
  }
}

type Api = Pick<PceClient, 'workloads' | 'kubernetesWorkloads' | 'containerClusters' | 'orgId'>

/**
 * Finds the referenced workloads by exact match, in the caller's order. For a reference that matches no workload or
 * several workloads, the result is a description of the problem. A few references are looked up individually; for many,
 * the whole list is read once.
 */
export async function findWorkloads(
  pce: Api,
  references: readonly WorkloadReference[],
  signal: AbortSignal,
): Promise<Lookup[]> {
  const index = createIndex(references)
  if (references.length <= ASKED_ONE_BY_ONE) {
    const params = references.flatMap((reference): Record<string, string>[] => {
      if ('href' in reference) return []
      return 'name' in reference
        ? [{ name: reference.name }, { hostname: reference.name }]
        : [{ hostname: reference.hostname }]
    })
    await mapBounded(params, IN_FLIGHT, (asked) => readInto(index, pce, { ...asked, include: 'labels' }, signal))
    const hrefs = references.flatMap((reference) => ('href' in reference ? [reference.href] : []))
    await mapBounded(hrefs, IN_FLIGHT, async (href) => {
      if (!isOwnHref(pce, href)) return
      const found = await orUndefined(pce.workloads.getByReference(href, { signal }))
      if (found !== undefined && found.deleted !== true) index.see(found)
    })
  } else {
    await readInto(index, pce, { include: 'labels' }, signal)
  }
  const lookups = references.map((reference) => index.lookUp(pce, reference))
  return lookups.every(isFound) ? lookups : explainPods(pce, references, lookups, signal)
}

/**
 * Returns the lookups. For a reference that matched nothing because it names a Kubernetes workload, the explanation
 * says so.
 */
async function explainPods(
  pce: Api,
  references: readonly WorkloadReference[],
  lookups: readonly Lookup[],
  signal: AbortSignal,
): Promise<Lookup[]> {
  const names = new Set<string>()
  await readKubernetesWorkloads({ pce, signal }, {}, ({ name }) => void (name != null && names.add(name)))
  return lookups.map((lookup, at) => {
    const [text = ''] = Object.values<string>(references[at] ?? {})
    const isPod =
      !isFound(lookup) && lookup.candidates === undefined && (names.has(text) || isKubernetes({ href: text }))
    return isPod ? { problem: `${quote(text)} is a Kubernetes workload: ${KUBERNETES_LIMITS}` } : lookup
  })
}

async function readInto(
  index: ReturnType<typeof createIndex>,
  { workloads: api }: Api,
  params: Record<string, string>,
  signal: AbortSignal,
) {
  await scanWhole({ api, params, signal }, { onItems: (items) => items.forEach((item) => index.see(item)) })
}

/**
 * Creates an index of the referenced workloads. Pass every workload that is read to its method `see`, which keeps only
 * the referenced ones. Passing the same workload twice does no harm.
 */
function createIndex(references: readonly WorkloadReference[]) {
  const wanted = { href: new Set<string>(), name: new Set<string>(), hostname: new Set<string>() }
  for (const reference of references) {
    if ('href' in reference) wanted.href.add(reference.href)
    else if ('name' in reference) wanted.name.add(reference.name)
    else wanted.hostname.add(reference.hostname)
  }
  const found = { href: new Map<string, Kept>(), name: new Map<string, Kept>(), hostname: new Map<string, Kept>() }
  const keep = (field: keyof typeof found, value: string, workload: Workload) => {
    if (!wanted[field].has(value)) return
    const kept: Kept = found[field].get(value) ?? new Map<string, KeptOne>()
    found[field].set(value, kept.set(workload.href, { found: toFound(workload), namesake: toNamesake(workload) }))
  }
  const names = new Set<string>()
  let hints = 0
  return {
    see: (workload: Workload) => {
      for (const field of ['href', 'name', 'hostname'] as const) {
        const value = workload[field]
        if (value == null) continue
        if (field !== 'href' && names.size < MOST_NAMES) names.add(value)
        keep(field, value, workload)
      }
      const { hostname } = workload
      if (hostname == null) return
      keep('name', hostname, workload)
      if (!isAddress(hostname)) keep('name', shortFormOf(hostname), workload)
    },
    lookUp(pce: Api, reference: WorkloadReference): Lookup {
      const [field, text] = Object.entries(reference)[0] as [keyof typeof found, string]
      if (field === 'href' && !isOwnHref(pce, text))
        return { problem: `${quote(text)} is not the href of a workload here` }
      const named = [...(found[field].get(text)?.values() ?? [])]
      const [one, ...others] = named.length > 1 ? chooseByHost(named, reference) : named
      if (one === undefined) {
        if (field === 'href') return { problem: `no workload has the href ${quote(text)}` }
        hints += 1
        const near = hints > MOST_HINTS ? [] : nearNames(text, names, 3)
        const meant = near.length === 0 ? '' : `; did you mean ${near.map(quote).join(' or ')}?`
        const has = field === 'name' ? 'is named' : 'has the host name'
        return { problem: `no workload ${has} exactly ${quote(text)}${meant}` }
      }
      if (others.length === 0) return one.found
      const namesakes = [one, ...others].slice(0, MOST_CANDIDATES).map(({ namesake }) => namesake)
      const candidates = tellApart(namesakes)
      const said = namesakes.map(({ href, name, hostname }) => {
        const names = [name, hostname === name ? null : hostname].filter((known) => known != null)
        return `${href} (${names.map(quote).join(' on ')})`
      })
      const problem = `${others.length + 1} workloads are named ${quote(text)}: ${said.join(', ')}; give the href`
      return { problem, candidates }
    },
  }
}

/** A workload with the fields that distinguish it from others of the same name. */
interface KeptOne {
  found: FoundWorkload
  namesake: Namesake
}
type Kept = Map<string, KeptOne>

const toNamesake = ({
  href,
  name,
  hostname,
  managed,
  interfaces,
  description,
  created_at: at,
}: Workload): Namesake => ({
  href,
  name,
  hostname,
  managed,
  interfaces,
  description,
  created_at: at,
})

/** Returns a host name without its domain. */
export const shortFormOf = (hostname: string): string => hostname.split('.', 1)[0] ?? hostname

/**
 * Returns those of the given workloads that have the host name in the reference. If the reference has no host name, or
 * no workload matches it, returns all given workloads.
 */
function chooseByHost(named: readonly KeptOne[], reference: WorkloadReference): readonly KeptOne[] {
  const wanted = 'name' in reference ? reference.hostname : undefined
  const having = wanted === undefined ? [] : named.filter(({ found }) => found.hostname === wanted)
  return having.length > 0 ? having : named
}

function isOwnHref({ orgId }: Api, href: string): boolean {
  const parsed = parseHref(href)
  return parsed?.kind === 'workloads' && parsed.org === orgId && parsed.id !== undefined
}

async function orUndefined<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof PceApiError && error.isGone) return undefined
    throw error
  }
}

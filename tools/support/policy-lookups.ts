import { PceApiError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import { fetchEvery } from './fetch-slice.js'
import type { LabelIndex } from './load-labels.js'
import { nearNames } from './near-names.js'
import { parseHref, toActiveHref, toDraftHref } from './parse-href.js'

/** What a PCE object of these kinds has for us. */
export interface NamedObject {
  href: string
  name?: string | null
  hostname?: string | null
}

/** Kinds that rules and filters point at, by the path segment of their hrefs. */
const KINDS = {
  ip_lists: { api: 'ipLists', noun: 'IP list' },
  services: { api: 'services', noun: 'service' },
  label_groups: { api: 'labelGroups', noun: 'label group' },
  workloads: { api: 'workloads', noun: 'workload' },
  virtual_services: { api: 'virtualServices', noun: 'virtual service' },
  virtual_servers: { api: 'virtualServers', noun: 'virtual server' },
} as const
export type LookupKind = keyof typeof KINDS

export function isLookupKind(kind: string): kind is LookupKind {
  return Object.hasOwn(KINDS, kind)
}

/** Exact lookups of one call, each object asked for once. Nothing here writes. */
export interface PolicyLookups {
  readonly labels: LabelIndex
  /** Exact name (for workloads name, else host name). Throws not_found with near names, or ambiguous_name with candidates. */
  byName(kind: LookupKind, name: string): Promise<NamedObject>
  /** The object an href names, in this lookup's policy version. Throws not_found, or invalid_href for another organisation's. */
  byHref(kind: LookupKind, href: string): Promise<NamedObject>
}

/** `version`: draft for what rules will say, active for what traffic is compared with. */
export function createPolicyLookups(
  pce: PceClient,
  labels: LabelIndex,
  version: 'draft' | 'active',
  signal: AbortSignal,
): PolicyLookups {
  const asked = new Map<string, Promise<NamedObject>>()
  const once = (id: string, ask: () => Promise<NamedObject>) => {
    const known = asked.get(id) ?? ask()
    asked.set(id, known)
    return known
  }
  const api = (kind: LookupKind) => pce[KINDS[kind].api] as ObjectApi<NamedObject>
  return {
    labels,
    byName: (kind, name) => once(`${kind}:${name}`, () => findByName(api(kind), kind, name, version, signal)),
    byHref: (kind, href) => once(href, () => findByHref(pce, api(kind), kind, href, version, signal)),
  }
}

async function findByName(
  api: ObjectApi<NamedObject>,
  kind: LookupKind,
  name: string,
  policyVersion: 'draft' | 'active',
  signal: AbortSignal,
): Promise<NamedObject> {
  const fields = kind === 'workloads' ? (['name', 'hostname'] as const) : (['name'] as const)
  const seen: NamedObject[] = []
  for (const field of fields) {
    const { items } = await fetchEvery({ api, policyVersion, params: { [field]: name }, signal })
    // The PCE searches substrings, so the exact comparison is ours.
    const exact = items.filter((item) => item[field] === name)
    if (exact.length > 1) throw ambiguous(kind, name, exact)
    if (exact[0] !== undefined) return exact[0]
    seen.push(...items)
  }
  // Workloads are too many to read them all for a hint; every other kind is small enough.
  const candidates = kind === 'workloads' ? seen : (await fetchEvery({ api, policyVersion, params: {}, signal })).items
  const near = nearNames(
    name,
    candidates.flatMap((item) => item.name ?? item.hostname ?? []),
  )
  throw new ToolError('not_found', `No ${KINDS[kind].noun} is named exactly "${name}".`, {
    kind,
    name,
    near_names: near,
  })
}

function ambiguous(kind: LookupKind, name: string, found: NamedObject[]): ToolError {
  return new ToolError(
    'ambiguous_name',
    `${found.length} objects of kind ${KINDS[kind].noun} are named "${name}".`,
    { kind, name, candidates: found.slice(0, 20).map(({ href }) => ({ href, name })) },
    { hint: 'Name it by its href.' },
  )
}

async function findByHref(
  pce: PceClient,
  api: ObjectApi<NamedObject>,
  kind: LookupKind,
  href: string,
  version: 'draft' | 'active',
  signal: AbortSignal,
): Promise<NamedObject> {
  const parsed = parseHref(href)
  if (parsed === null || parsed.kind !== kind || parsed.id === undefined) {
    throw new ToolError('invalid_href', `"${href}" is not the href of a ${KINDS[kind].noun}.`, { href })
  }
  if (parsed.org !== pce.orgId) {
    throw new ToolError(
      'invalid_href',
      `"${href}" belongs to organisation ${parsed.org}; this connection works in ${pce.orgId}.`,
      { href },
    )
  }
  try {
    return await api.getByReference(version === 'draft' ? toDraftHref(href) : toActiveHref(href), { signal })
  } catch (error) {
    if (error instanceof PceApiError && error.status === 404) {
      throw new ToolError('not_found', `No ${KINDS[kind].noun} has the href ${href}.`, { kind, href }, { cause: error })
    }
    throw error
  }
}

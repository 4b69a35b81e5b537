import { ToolError } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'

/** An object that has the same name as others, with the fields by which people can tell them apart. */
export interface Namesake extends PceObject {
  name?: string | null
  hostname?: string | null
  key?: string | null
  description?: string | null
  managed?: boolean
  interfaces?: readonly ({ address?: string | null } | null)[] | null
  /** The namespace and cluster of a Kubernetes workload. */
  place?: { namespace: string | null; cluster: string | null }
}

/** Maximum number of candidates listed in an error. */
const MOST_CANDIDATES = 20
/** Maximum number of addresses listed for one candidate. */
const MOST_ADDRESSES = 3

/**
 * Creates the error for a name that several objects have. Each candidate is listed with its href, its name, its host
 * name if it has one, and all other fields in which the candidates differ.
 */
export function ambiguousName(
  text: string,
  found: readonly Namesake[],
  details: Readonly<Record<string, unknown>>,
  hint = 'Give its href.',
): ToolError {
  const shown = found.slice(0, MOST_CANDIDATES)
  return new ToolError('ambiguous_name', text, { ...details, candidates: tellApart(shown) }, { hint })
}

/** Describes objects with the same name so that a reader can tell them apart and choose one. */
export function tellApart(found: readonly Namesake[]): object[] {
  const described = found.map(describe)
  const differs = (field: string) => new Set(described.map((one) => JSON.stringify(one.more[field] ?? null))).size > 1
  return described.map(({ known, more }) => ({
    ...known,
    ...Object.fromEntries(Object.entries(more).filter(([field, value]) => value != null && differs(field))),
  }))
}

function describe({ href, name = null, hostname, interfaces, place, ...others }: Namesake) {
  const addresses = (interfaces ?? []).flatMap((one) => one?.address ?? []).slice(0, MOST_ADDRESSES)
  const more: Record<string, unknown> = {
    key: others.key,
    managed: others.managed,
    addresses: addresses.length > 0 ? addresses : undefined,
    description: others.description === '' ? undefined : others.description,
    pending: others.update_type,
    created_at: others['created_at'],
  }
  return { known: { href, name, ...(hostname != null && { hostname }), ...place }, more }
}

import { ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { FlowNode } from '../../schemas/pce/traffic.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { OffNetwork } from '../inventory/off-network.js'

/** The source or destination of a flow. Missing values are null; an empty string counts as missing. */
export interface FlowEnd {
  ip: string | null
  fqdn: string | null
  /**
   * The workload's host name, or its name if it has no host name. For a virtual service or virtual server, the name of
   * that object.
   */
  hostname: string | null
  /** The name to display: the name of the workload, or the same as `hostname` if it has none. */
  name: string | null
  /** The href of the workload, managed or not. */
  workload: string | null
  /** True for a workload with a VEN that is paired with this PCE. */
  managed: boolean
  /** The enforcement mode of the workload, if the row contains it. */
  mode: string | null
  /** The names of the IP lists that contain the address, as reported by the PCE. */
  lists: readonly string[]
  /**
   * Label values by key, in an object without a prototype. Virtual services, virtual servers and cloud resources have
   * labels too.
   */
  labels: Readonly<Record<string, string>>
  /** The hrefs of the labels, by key. */
  labelHrefOf: Readonly<Record<string, string>>
  /** Whether the host was off the corporate network, according to the rows that it reported (P107). */
  offNetwork?: OffNetwork
  /**
   * The name of the managed workload that has this address, although the row does not report this workload as the end.
   * The PCE cannot tell, because the reporting end was off the corporate network, where another machine may have the
   * same address (P107). Null if no workload has the address.
   */
  bearer?: string | null
}

/** What a row reveals about whether one of its ends is off the corporate network (P107). */
export type Place = 'not said' | 'off' | 'perhaps off' | 'seen from outside'

/**
 * Returns a phrase for a source or destination that has the address of a managed workload but was seen only from off
 * the corporate network; null for all others.
 */
export const seenFromOutside = ({ bearer }: FlowEnd): string | null =>
  bearer == null ? null : `address of ${bearer}, seen from outside`

/**
 * Returns the name of a source or destination for lists of endpoints: its FQDN, or else its name, or else its address
 * with the IP lists that contain it, or else `app (env)`. The address is included so that two hosts in one IP list
 * remain two endpoints.
 */
export function endpointLabel(end: FlowEnd): string {
  const seen = seenFromOutside(end)
  if (seen !== null) return `${end.ip} (${seen})`
  if (end.fqdn !== null) return end.fqdn
  if (end.name !== null) return end.name
  const lists = listsThatName(end)
  if (end.ip !== null) return lists === null ? end.ip : `${end.ip} (${lists})`
  return lists ?? identityFromLabels(end, ['app', 'env']) ?? 'unknown'
}

/**
 * Returns the identity of a source or destination in an application map: the values of its labels with the given keys,
 * such as `app (env)`. If it has no such label, the identity is the phrase from `seenFromOutside`, or else
 * `external:<name>` with its FQDN or IP lists, or else `unlabelled`.
 */
export function endpointIdentity(end: FlowEnd, keys: readonly string[]): string {
  const labelled = identityFromLabels(end, keys)
  if (labelled !== null) return labelled
  const seen = seenFromOutside(end)
  if (seen !== null) return seen
  const outside = end.fqdn ?? listsThatName(end)
  return outside === null ? 'unlabelled' : `external:${outside}`
}

/**
 * Joins the names of all IP lists that contain a source or destination with ", "; returns null if there are none (T8).
 */
export const joinedLists = ({ lists }: FlowEnd): string | null => (lists.length === 0 ? null : lists.join(', '))

function identityFromLabels(end: FlowEnd, keys: readonly string[]): string | null {
  const [first, ...rest] = keys.flatMap((key) => end.labels[key] ?? [])
  if (first === undefined) return null
  return rest.length === 0 ? first : `${first} (${rest.join(', ')})`
}

/**
 * Returns the IP lists that contain a source or destination, except the Any list, which contains every address and so
 * carries no information.
 */
export const tellingLists = ({ lists }: FlowEnd): string[] => lists.filter((name) => !ANY_IP_LIST_NAMES.includes(name))

/**
 * Names a source or destination by the IP lists that contain it. The Any list is used only if no other list contains
 * it.
 */
function listsThatName(end: FlowEnd): string | null {
  const telling = tellingLists(end)
  return telling.length > 0 ? telling.join(', ') : joinedLists(end)
}

/**
 * Iterates over the sources and destinations of all groups. A source or destination that occurs in several groups is
 * yielded once for each of these groups.
 */
export function* endsOf(
  ...groupings: Iterable<{ keys: { source: FlowEnd; destination: FlowEnd } }>[]
): Generator<FlowEnd> {
  for (const groups of groupings) {
    for (const { keys } of groups) {
      yield keys.source
      yield keys.destination
    }
  }
}

/** A registry that assigns a number to each distinct source or destination in a result. */
export interface FlowEnds {
  /**
   * Returns the number of a source or destination. Two of them with the same address get different numbers if they
   * differ in name, object, label, IP list, or network location.
   */
  code(node: FlowNode, place?: Place): number
  end(code: number): FlowEnd
  /**
   * Returns true for an open end: it was seen only from off the corporate network, and it is not yet known whether a
   * workload has its address.
   */
  isOpen(code: number): boolean
  /** Returns the addresses of all open ends. */
  openAddresses(): ReadonlySet<string>
  /**
   * Sets `bearer` of all open ends (see `isOpen`), which are then no longer open. `bearerOf` returns the name of the
   * workload that has an address, or null.
   */
  close(bearerOf: (address: string) => string | null): void
}

interface Entry extends FlowEnd {
  place: Place
  /**
   * The href of the workload or other object at this end. An end is identified by this href, its address, its domain
   * name, its `place`, and the hrefs of its labels and IP lists.
   */
  object: string | null
  labelHrefs: readonly string[]
  listHrefs: readonly string[]
  /** The number of the next entry with the same address; -1 if there is none. */
  next: number
}

/** An object other than a workload that can have labels (P49). */
type OtherObject = { href?: string; resource_uuid?: string; name?: string | null; labels?: LabelRef[] | null }

const OFF = { off: 'yes', 'perhaps off': 'perhaps' } as const

/**
 * Maximum number of entries with the same address that are compared one by one. An address with more entries is looked
 * up in an index.
 */
const COMPARED = 8

/**
 * Creates the registry of sources and destinations. `index` resolves labels that the PCE sends by href only; labels
 * that are not in the index are left out.
 */
export function createFlowEnds(index: LabelIndex | null): FlowEnds {
  const entries: Entry[] = []
  const byIp = new Map<string, number>()
  /** The index for addresses that have many entries, such as a CDN address that serves thousands of names. */
  const crowded = new Map<string, number>()
  const labelSets = new Map<string, Pick<Entry, 'labels' | 'labelHrefOf' | 'labelHrefs'>>()
  const listSets = new Map<string, Pick<Entry, 'lists' | 'listHrefs'>>()

  const labelsOf = (refs: readonly LabelRef[]) => {
    const hrefs = refs.map(({ href }) => href)
    const id = hrefs.join(' ')
    let set = labelSets.get(id)
    if (set === undefined) {
      // The object has no prototype, so that any string is safe as a label key.
      const labels = Object.create(null) as Record<string, string>
      const hrefOf = Object.create(null) as Record<string, string>
      for (const label of refs) {
        const named = label.key !== undefined && label.value !== undefined ? label : index?.get(label.href)
        if (named?.key === undefined || named.value === undefined) continue
        labels[named.key] = named.value
        hrefOf[named.key] = label.href
      }
      labelSets.set(id, (set = { labels, labelHrefOf: hrefOf, labelHrefs: hrefs }))
    }
    return set
  }
  const listsOf = ({ ip_lists: lists }: FlowNode) => {
    const hrefs = lists?.map(({ href }) => href) ?? []
    const id = hrefs.join(' ')
    let set = listSets.get(id)
    if (set === undefined) {
      set = { lists: lists?.map(({ name, href }) => present(name) ?? href) ?? [], listHrefs: hrefs }
      listSets.set(id, set)
    }
    return set
  }
  let open: Entry[] = []
  const add = (node: FlowNode, place: Place, next: number) => {
    const { workload } = node
    const other = otherOf(node)
    const { labels, labelHrefOf, labelHrefs } = labelsOf(labelRefsOf(node))
    const { lists, listHrefs } = listsOf(node)
    const entry: Entry = {
      place,
      ...(place === 'off' || place === 'perhaps off' ? { offNetwork: OFF[place] } : {}),
      ip: present(node.ip),
      fqdn: present(fqdnOf(node)),
      hostname: present(workload?.hostname) ?? present(workload?.name) ?? present(other?.name),
      name: present(workload?.name) ?? present(workload?.hostname) ?? present(other?.name),
      workload: workload?.href ?? null,
      managed: workload !== undefined && workload !== null && workload.managed !== false,
      mode: present(workload?.enforcement_mode),
      lists,
      listHrefs,
      labels,
      labelHrefOf,
      labelHrefs,
      object: objectOf(node),
      next,
    }
    if (place === 'seen from outside') open.push(entry)
    return entries.push(entry) - 1
  }

  return {
    code(node, place = 'not said') {
      const ip = node.ip ?? ''
      const first = byIp.get(ip) ?? -1
      let compared = 0
      for (let code = first; code !== -1; code = (entries[code] as Entry).next) {
        if (isSame(entries[code] as Entry, node, place)) return code
        compared += 1
      }
      if (compared < COMPARED) {
        const code = add(node, place, first)
        byIp.set(ip, code)
        return code
      }
      const id = identityOf(ip, node, place)
      const known = crowded.get(id)
      if (known !== undefined) return known
      const code = add(node, place, -1)
      crowded.set(id, code)
      return code
    },
    end: (code) => entries[code] as Entry,
    isOpen(code) {
      const { place, bearer } = entries[code] as Entry
      return place === 'seen from outside' && bearer === undefined
    },
    openAddresses: () => new Set(open.flatMap(({ ip }) => ip ?? [])),
    close(bearerOf) {
      for (const end of open) {
        end.bearer = end.ip === null ? null : bearerOf(end.ip)
        end.name ??= seenFromOutside(end)
      }
      open = []
    },
  }
}

/**
 * Returns true if an entry stands for the same source or destination as a node with the same address. All other
 * identifying values are compared one by one, which is faster than building a key from them.
 */
function isSame(entry: Entry, node: FlowNode, place: Place): boolean {
  return (
    entry.place === place &&
    entry.object === objectOf(node) &&
    entry.fqdn === present(fqdnOf(node)) &&
    isSameList(entry.labelHrefs, labelRefsOf(node)) &&
    isSameList(entry.listHrefs, node.ip_lists)
  )
}

function identityOf(ip: string, node: FlowNode, place: Place): string {
  const hrefs = (list: readonly { href: string }[] | null | undefined) => list?.map(({ href }) => href).join(' ') ?? ''
  return [ip, place, fqdnOf(node)?.trim(), objectOf(node), hrefs(labelRefsOf(node)), hrefs(node.ip_lists)].join('\n')
}

function isSameList(hrefs: readonly string[], objects: readonly { href: string }[] | null | undefined): boolean {
  if (objects === undefined || objects === null) return hrefs.length === 0
  if (hrefs.length !== objects.length) return false
  for (let at = 0; at < hrefs.length; at++) if (hrefs[at] !== objects[at]?.href) return false
  return true
}

function otherOf(node: FlowNode): OtherObject | null {
  if (node.workload !== undefined && node.workload !== null) return null
  const { virtual_service: service, virtual_server: server } = node
  return (
    ((service ?? server ?? (node as { cloud_resource?: unknown }).cloud_resource) as OtherObject | undefined) ?? null
  )
}

/** Returns true if the PCE reported only an address for an end, because it found no object with this address. */
export const isBare = (node: FlowNode): boolean => objectOf(node) === null

const objectOf = (node: FlowNode): string | null => {
  if (node.workload !== undefined && node.workload !== null) return node.workload.href
  const other = otherOf(node)
  return other?.href ?? other?.resource_uuid ?? null
}

const NO_LABELS: readonly LabelRef[] = []
const labelRefsOf = (node: FlowNode): readonly LabelRef[] => (node.workload ?? otherOf(node))?.labels ?? NO_LABELS

/** Returns the domain name of a source or destination. Release 26.3 renamed the field to fqdn_name (P25). */
const fqdnOf = ({ fqdn, fqdn_name: newer }: FlowNode) =>
  fqdn === undefined || fqdn === null || fqdn === '' ? newer : fqdn

function present(text: string | null | undefined): string | null {
  const trimmed = text?.trim()
  return trimmed === undefined || trimmed === '' ? null : trimmed
}

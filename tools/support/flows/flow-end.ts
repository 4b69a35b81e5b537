import { ANY_IP_LIST_NAME } from '../../../schemas/pce/ip-list.js'
import type { FlowNode } from '../../../schemas/pce/traffic.js'
import type { LabelIndex } from '../load-labels.js'

/** One end of a flow. Missing values are null; an empty string counts as missing. */
export interface FlowEnd {
  ip: string | null
  fqdn: string | null
  /** The workload's host name, else its name. */
  hostname: string | null
  /** Href of the workload, managed or not. */
  workload: string | null
  /** A workload with an agent of this PCE. */
  managed: boolean
  /** Enforcement mode of a workload, where the row says. */
  mode: string | null
  /** Names of the IP lists the PCE says the address is in. */
  lists: readonly string[]
  labels: Readonly<Record<string, string>>
}

/** The ends of a result, each distinct one once, by number. */
export interface FlowEnds {
  /** The number of an end; the same address with another name, workload, label or IP list is another end. */
  code(node: FlowNode): number
  end(code: number): FlowEnd
}

interface Entry extends FlowEnd {
  labelHrefs: readonly string[]
  listHrefs: readonly string[]
  /** Number of another end with the same address. */
  next: number
}

/** Labels that the PCE names by href alone are looked up; one that is unknown even there is left out. */
export function createFlowEnds(index: LabelIndex | null): FlowEnds {
  const entries: Entry[] = []
  const byIp = new Map<string, number>()
  const labelSets = new Map<string, Pick<Entry, 'labels' | 'labelHrefs'>>()
  const listSets = new Map<string, Pick<Entry, 'lists' | 'listHrefs'>>()

  const labelsOf = ({ workload }: FlowNode) => {
    const hrefs = workload?.labels?.map(({ href }) => href) ?? []
    const id = hrefs.join(' ')
    let set = labelSets.get(id)
    if (set === undefined) {
      const labels: Record<string, string> = {}
      for (const label of workload?.labels ?? []) {
        const named = label.key !== undefined && label.value !== undefined ? label : index?.get(label.href)
        if (named?.key !== undefined && named.value !== undefined) labels[named.key] = named.value
      }
      labelSets.set(id, (set = { labels, labelHrefs: hrefs }))
    }
    return set
  }
  const listsOf = ({ ip_lists: lists }: FlowNode) => {
    const hrefs = lists?.map(({ href }) => href) ?? []
    const id = hrefs.join(' ')
    let set = listSets.get(id)
    if (set === undefined) {
      set = { lists: lists?.flatMap(({ name }) => present(name) ?? []) ?? [], listHrefs: hrefs }
      listSets.set(id, set)
    }
    return set
  }
  const add = (node: FlowNode, next: number) => {
    const { workload } = node
    const { labels, labelHrefs } = labelsOf(node)
    const { lists, listHrefs } = listsOf(node)
    return (
      entries.push({
        ip: present(node.ip),
        fqdn: present(fqdnOf(node)),
        hostname: present(workload?.hostname) ?? present(workload?.name),
        workload: workload?.href ?? null,
        managed: workload !== undefined && workload !== null && workload.managed !== false,
        mode: present(workload?.enforcement_mode),
        lists,
        listHrefs,
        labels,
        labelHrefs,
        next,
      }) - 1
    )
  }

  return {
    code(node) {
      const ip = node.ip ?? ''
      const first = byIp.get(ip) ?? -1
      for (let code = first; code !== -1; code = (entries[code] as Entry).next) {
        if (isSame(entries[code] as Entry, node)) return code
      }
      const code = add(node, first)
      byIp.set(ip, code)
      return code
    },
    end: (code) => entries[code] as Entry,
  }
}

/** Whether an end of this address is the node: the rest of what identifies it, compared without building a key. */
function isSame(entry: Entry, node: FlowNode): boolean {
  const { workload } = node
  return (
    entry.workload === (workload?.href ?? null) &&
    entry.fqdn === present(fqdnOf(node)) &&
    isSameList(entry.labelHrefs, workload?.labels) &&
    isSameList(entry.listHrefs, node.ip_lists)
  )
}

function isSameList(hrefs: readonly string[], objects: readonly { href: string }[] | null | undefined): boolean {
  if (objects === undefined || objects === null) return hrefs.length === 0
  if (hrefs.length !== objects.length) return false
  for (let at = 0; at < hrefs.length; at++) if (hrefs[at] !== objects[at]?.href) return false
  return true
}

/** Release 26.3 calls it fqdn_name (pce-api e.12). */
const fqdnOf = ({ fqdn, fqdn_name: newer }: FlowNode) =>
  fqdn === undefined || fqdn === null || fqdn === '' ? newer : fqdn

function present(text: string | null | undefined): string | null {
  const trimmed = text?.trim()
  return trimmed === undefined || trimmed === '' ? null : trimmed
}

/**
 * What one end is called in lists of endpoints: its FQDN, else its host name, else its address with the IP lists it is in,
 * else `app (env)`. Two hosts of one IP list stay two endpoints.
 */
export function endpointLabel(end: FlowEnd): string {
  if (end.fqdn !== null) return end.fqdn
  if (end.hostname !== null) return end.hostname
  const lists = listsThatName(end)
  if (end.ip !== null) return lists === null ? end.ip : `${end.ip} (${lists})`
  return lists ?? identityFromLabels(end, ['app', 'env']) ?? 'unknown'
}

/** What one end is to an application map: `app (env)` by the chosen label keys, else `external:<name>`, else `unlabelled`. */
export function endpointIdentity(end: FlowEnd, keys: readonly string[]): string {
  const labelled = identityFromLabels(end, keys)
  if (labelled !== null) return labelled
  const outside = end.fqdn ?? listsThatName(end)
  return outside === null ? 'unlabelled' : `external:${outside}`
}

/** Names of all IP lists of an end joined with ", ", or null (tools contract, A8). */
export const joinedLists = ({ lists }: FlowEnd): string | null => (lists.length === 0 ? null : lists.join(', '))

function identityFromLabels(end: FlowEnd, keys: readonly string[]): string | null {
  const [first, ...rest] = keys.flatMap((key) => end.labels[key] ?? [])
  if (first === undefined) return null
  return rest.length === 0 ? first : `${first} (${rest.join(', ')})`
}

/** Names of the IP lists that say anything about an end: every address is in the Any list. */
export const tellingLists = ({ lists }: FlowEnd): string[] => lists.filter((name) => name !== ANY_IP_LIST_NAME)

/** The Any list names an end only when no other list does. */
function listsThatName(end: FlowEnd): string | null {
  const telling = tellingLists(end)
  return telling.length > 0 ? telling.join(', ') : joinedLists(end)
}

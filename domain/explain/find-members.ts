import ipaddr from 'ipaddr.js'
import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { pickEvery } from '../inventory/fetch-every.js'
import { isKubernetes, readKubernetesWorkloads, tellUnread } from '../inventory/kubernetes-workloads.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isOffNetwork, type OffNetwork } from '../inventory/off-network.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { isManaged, modeOf, osType } from '../inventory/workloads.js'
import {
  LAST,
  classifyAddress,
  compileIpList,
  readRange,
  type Addressed,
  type Family,
  type Range,
} from '../policy/addresses.js'
import { joinIntervals } from '../policy/classify-numbers.js'
import { isWithin } from '../policy/intervals.js'
import type { End } from '../policy/match-rules.js'
import type { Answer } from '../policy/three-valued.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { sortInSteps, workInTurns, type Steps } from '../text/pace-work.js'
import { nameOf, type AskedEnd } from './resolve-end.js'

/**
 * A member of the source or destination of the requested flow: one workload, or a group of addresses that all rules
 * treat alike.
 */
export interface Member extends End {
  name: string
  mode: EndMode
  /**
   * True if the PCE has lost contact with the member's VEN and has therefore removed the member's addresses from the
   * policy of other workloads (P78). Null if the PCE does not report whether the VEN is online.
   */
  isOffline: boolean | null
  os: string | null
  /** All addresses that the member may use in the flow. */
  addresses: readonly string[]
  /** Number of hosts or addresses in the member: 1 for a workload, possibly many for a group of addresses. */
  size: number
}

/**
 * Returns the href of the member's host, by which callers make sure that no host is both source and destination of a
 * connection. Returns null for addresses, and for Kubernetes workloads, because the pods of one workload may connect to
 * each other.
 */
export const hostOf = ({ workload, isUnsure }: Member): string | null =>
  workload === null || isUnsure === true || isKubernetes({ href: workload }) ? null : workload

/** The workloads and addresses that make up the source or destination of the requested flow. */
export interface Members {
  members: readonly Member[]
  /** True if there are more members than can be evaluated. */
  isCut: boolean
  /** Notes about members that were left out or are not certain. */
  notes: readonly string[]
}

/** Maximum number of workloads that are evaluated as sources. The same maximum applies to destinations. */
export const MOST_WORKLOADS = 20_000
/** Maximum number of parts of an IP list that are evaluated; see `divideList`. */
const MOST_PARTS = 2_000
/** Number of ranges that are compared with an IP list in one step. */
const RANGES_PER_STEP = 500

/**
 * Finds all members of the source or destination of the requested flow. For an IP list, these are the workloads with an
 * address in the list, and all its other addresses. The addresses are grouped so that each IP list used in rules
 * (`lists`) contains either all addresses of a group or none. Kubernetes workloads are treated like other workloads.
 *
 * @throws {ToolError} no_workloads if no workload has the requested labels.
 */
export async function findMembers(
  pce: PceClient,
  asked: AskedEnd,
  labels: LabelIndex,
  lists: readonly IpList[],
  signal: AbortSignal,
): Promise<Members> {
  const toMember = (workload: Workload, addresses?: readonly string[]) => describeWorkload(workload, labels, addresses)
  if (asked.kind === 'workload') return { members: [toMember(asked.workload)], isCut: false, notes: [] }
  if (asked.kind === 'address') return membersAt(asked, (workload) => toMember(workload, [asked.address]))
  const found: Member[] = []
  let total = 0
  const take = (member: Member): undefined => {
    total += 1
    if (found.length < MOST_WORKLOADS) found.push(member)
  }
  if (asked.kind === 'labels') {
    const hrefs = asked.labels.map(({ href }) => href)
    const query = { api: pce.workloads, params: { labels: [hrefs] }, signal }
    await pickEvery(query, (workload: Workload) => (workload.deleted === true ? undefined : take(toMember(workload))))
    const { unread } = await readKubernetesWorkloads({ pce, signal }, { labels: hrefs }, (workload) =>
      take(toMember(workload)),
    )
    const notes = tellUnread(unread)
    if (total === 0) {
      const text = [`No workload has ${quote(asked.name)}.`, ...notes].join(' ')
      throw new ToolError('no_workloads', text, { labels: asked.name })
    }
    return {
      members: found,
      isCut: total > found.length || unread !== null,
      notes: [...cutNote(total, 'workloads'), ...notes],
    }
  }
  const covers = compileIpList(asked.list)
  const taken = new Set<string>()
  const takeInside = (workload: Workload): undefined => {
    const inside = addressesOf(workload).filter((ip) => covers({ ip, fqdn: null }) === 'yes')
    if (workload.deleted === true || inside.length === 0) return undefined
    for (const ip of inside) taken.add(ip)
    return take(toMember(workload, inside))
  }
  await pickEvery({ api: pce.workloads, params: {}, signal }, takeInside)
  let silent = 0
  const { unread } = await readKubernetesWorkloads({ pce, signal }, {}, (workload) => {
    if (workload.interfaces === null) silent += 1
    return takeInside(workload)
  })
  const rest = await workInTurns(divideList(asked.list, lists, taken), signal)
  const names = (asked.list.fqdns ?? []).length
  return {
    members: [...found, ...rest.members],
    isCut: total > found.length || rest.isCut || rest.isUnread || unread !== null || silent > 0,
    notes: [
      ...cutNote(total, 'workloads'),
      ...tellUnread(unread),
      ...(silent > 0 ? [`The addresses of ${countOf(silent, 'Kubernetes workload')} are not known.`] : []),
      ...(rest.isCut ? [`Only the first ${MOST_PARTS} parts of ${quote(asked.name)} were judged.`] : []),
      ...(names > 0
        ? [`The ${countOf(names, 'domain name')} of ${quote(asked.name)} ${names === 1 ? 'was' : 'were'} not judged.`]
        : []),
      ...(rest.isUnread ? [`Some ranges of ${quote(asked.name)} could not be read and were not judged.`] : []),
    ],
  }
}

/**
 * Finds the members for an address: the workloads that have it or, if there are none, the bare address, which may
 * belong to a pod.
 */
function membersAt(
  { address, bearers, mayBePod }: AskedEnd & { kind: 'address' },
  toMember: (workload: Workload) => Member,
): Members {
  const named = bearers.map(
    (workload) => `${isKubernetes(workload) ? 'Kubernetes workload' : 'workload'} ${quote(nameOf(workload))}`,
  )
  if (named.length === 1)
    return { members: bearers.map(toMember), isCut: false, notes: [`${address} is the ${named.join('')}.`] }
  if (named.length > 1) {
    const text = `${address} is the ${named.join(' and the ')}; which of them a connection belongs to is not known, so all are judged.`
    return { members: bearers.map(toMember), isCut: false, notes: [text] }
  }
  const member = addressMember(address, 1, address)
  if (mayBePod === null) return { members: [member], isCut: false, notes: [] }
  const notes = [`${address} may be that of a Kubernetes workload: ${mayBePod}.`]
  return { members: [{ ...member, workload: '', isSome: true, isUnsure: true, mode: 'unknown' }], isCut: false, notes }
}

const cutNote = (total: number, noun: string): string[] =>
  total > MOST_WORKLOADS ? [`Only ${MOST_WORKLOADS} of ${total} ${noun} were judged.`] : []

/**
 * Converts a workload to the form that is used for matching rules.
 * @param addresses the addresses that the workload uses in this flow; by default all its addresses.
 */
export function describeWorkload(
  workload: Workload,
  labels: LabelIndex,
  addresses: readonly string[] = addressesOf(workload),
): Member {
  const own = (workload.labels ?? []).flatMap(({ href, key, value }) => {
    const known = labels.get(href) ?? (key === undefined || value === undefined ? undefined : { key, value })
    return known === undefined ? [] : [[known.key, known.value] as const]
  })
  return {
    name: nameOf(workload),
    workload: workload.href,
    labels: Object.fromEntries(own),
    ip: addresses[0] ?? null,
    fqdn: null,
    addresses,
    mode: modeOf(workload),
    isOffline: isOffline(workload),
    offNetwork: isManaged(workload) ? offNetworkOf(workload, addresses) : 'no',
    os: osType(workload),
    size: 1,
  }
}

/**
 * Returns whether a workload is offline; null if the PCE does not report it. A Kubernetes workload is never offline,
 * because it has no VEN of its own.
 */
function isOffline(workload: Workload): boolean | null {
  if (!isManaged(workload) || isKubernetes(workload)) return false
  return workload.online == null ? null : !workload.online
}

/** Returns whether a workload is off the corporate network while it uses these addresses. */
function offNetworkOf({ interfaces, ven }: Workload, addresses: readonly string[]): OffNetwork {
  const used = (interfaces ?? []).filter(({ address }) => address !== undefined && addresses.includes(address))
  return isOffNetwork(
    used.map(({ network }) => network),
    ven?.ven_type === 'endpoint',
  )
}

/** Lists the addresses at which other hosts can reach a workload: all except loopback and link-local addresses. */
export function addressesOf({ interfaces }: Workload): string[] {
  const all = (interfaces ?? []).flatMap(({ address }) =>
    address !== undefined && isAddress(address) ? [address] : [],
  )
  return [...new Set(all)].filter(
    (ip) => classifyAddress(ip) !== 'special' && ipaddr.process(ip).range() !== 'linkLocal',
  )
}

const addressMember = (name: string, size: number, address: string): Member => ({
  name,
  workload: null,
  labels: {},
  ip: address,
  fqdn: null,
  addresses: [address],
  mode: 'none',
  isOffline: false,
  os: null,
  size,
})

/**
 * Divides the addresses of an IP list into groups, so that each list in `others` contains either all addresses of a
 * group or none. Addresses in `taken`, which belong to workloads, are left out.
 */
function* divideList(
  list: IpList,
  others: readonly IpList[],
  taken: Iterable<string>,
): Steps<{ members: Member[]; isCut: boolean; isUnread: boolean }> {
  const own = (list.ip_ranges ?? []).map(readRange)
  const ranges: Range[] = []
  const tests: ((end: Addressed) => Answer)[] = []
  for (const { ip_ranges: listed } of [list, ...others]) {
    yield
    tests.push(compileIpList({ ip_ranges: listed ?? [], fqdns: [] }))
    yield
    for (const range of listed ?? []) {
      const read = readRange(range)
      if (read !== null) ranges.push(read)
    }
  }
  /** Returns a string that identifies the group of an address, or null if the address is not in the list. */
  const classOf = (ip: string, family: Family): string | null => {
    const [inside, ...rest] = tests.map((covers) => covers({ ip, fqdn: null }))
    return inside === 'yes' ? `${family} ${JSON.stringify(rest)}` : null
  }
  const classes = new Map<string, AddressClass>()
  let parts = 0
  const readable = own.filter((range): range is Range => range !== null)
  for (const family of ['ipv4', 'ipv6'] as const) {
    for (const [from, to] of yield* cutAt(family, readable, ranges)) {
      yield
      const ip = textOf(from, family)
      const id = classOf(ip, family)
      if (id === null) continue
      parts += 1
      if (parts > MOST_PARTS) break
      const known = classes.get(id) ?? { first: ip, last: textOf(to, family), size: 0n }
      classes.set(id, { ...known, size: known.size + to - from + 1n })
    }
  }
  for (const ip of taken) {
    const known = classes.get(classOf(ip, ipaddr.process(ip).kind()) ?? '')
    if (known !== undefined) known.size -= 1n
  }
  const left = [...classes.values()].filter(({ size }) => size > 0n)
  return { members: toMembers(left), isCut: parts > MOST_PARTS, isUnread: own.includes(null) }
}

/**
 * A group of addresses that are in the same IP lists. `first` and `last` are the bounds of the group's first range;
 * `size` is the number of all its addresses.
 */
interface AddressClass {
  first: string
  last: string
  size: bigint
}

const toMembers = (classes: readonly AddressClass[]): Member[] =>
  classes.map(({ first, last, size }) =>
    addressMember(first === last ? first : `${first} to ${last}`, Number(size), first),
  )

/**
 * Cuts the ranges `own` of one address family wherever any range of `all`, which contains them, begins or ends inside
 * of them.
 */
function* cutAt(family: Family, own: readonly Range[], all: readonly Range[]): Steps<[bigint, bigint][]> {
  const included = joinIntervals(own.filter((range) => range.family === family && !range.exclusion))
  const found: bigint[] = []
  for (const [at, range] of all.entries()) {
    if (at % RANGES_PER_STEP === 0) yield
    if (range.family !== family) continue
    if (isWithin(included, range.from)) found.push(range.from)
    // The part before the range's end is cut off, even if the next address is not included.
    if (isWithin(included, range.to)) found.push(range.to + 1n)
  }
  const sorted = yield* sortInSteps(found, (a, b) => (a < b ? -1 : a > b ? 1 : 0))
  // No set is used to remove duplicates, because V8 hashes a BigInt by its lowest 64 bits, which are the same in all
  // IPv6 networks.
  const points = sorted.filter((point, at) => point !== sorted[at - 1])
  return points.flatMap((from, at): [bigint, bigint][] =>
    isWithin(included, from) ? [[from, (points[at + 1] ?? LAST[family] + 1n) - 1n]] : [],
  )
}

function textOf(value: bigint, family: Family): string {
  const length = family === 'ipv4' ? 4 : 16
  const bytes = Array.from({ length }, (_, at) => Number((value >> BigInt(8 * (length - 1 - at))) & 255n))
  return ipaddr.fromByteArray(bytes).toString()
}

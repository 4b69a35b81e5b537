import ipaddr from 'ipaddr.js'
import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { pickEvery } from '../inventory/fetch-every.js'
import { findByHref, writeByPrefix, type NamedObject, type PolicyLookups } from '../inventory/find-object.js'
import { findNamedWorkload } from '../inventory/find-named-workload.js'
import { readKubernetesWorkloads, toWorkload } from '../inventory/kubernetes-workloads.js'
import {
  adviseOn,
  describeReference,
  isLabelReference,
  isUnresolved,
  looksLikeLabel,
  resolveLabel,
  type LabelReference,
} from '../inventory/labels.js'
import { addressFilter } from '../inventory/match-exactly.js'
import { createAddressTest, isAddress } from '../inventory/parse-addresses.js'
import { parseHref } from '../inventory/parse-href.js'
import { ambiguousName } from '../inventory/tell-apart.js'
import { classifyAddress } from '../policy/addresses.js'
import { countOf } from '../text/describe-numbers.js'
import { quote, trimBlanks } from '../text/escape-text.js'

/**
 * A caller's reference to the source or destination of a flow: a workload, an address, one label, several labels
 * (ANDed), or an IP list. A list with one entry means the same as the entry.
 */
export type EndReference = LabelReference | readonly LabelReference[]

/** The source or destination of the flow that a caller asks about. `name` is its name in answers. */
export type AskedEnd =
  | { kind: 'workload'; name: string; workload: Workload }
  | ({ kind: 'address'; name: string; address: string } & Bearers)
  | { kind: 'labels'; name: string; labels: readonly Label[] }
  | { kind: 'ip_list'; name: string; list: IpList }

/** The workloads that have the address of the requested source or destination. */
export interface Bearers {
  /** The only workload with the address; null if there is none or more than one. */
  workload: Workload | null
  /**
   * All workloads that have the address. Several Kubernetes workloads may have the same address, for example in
   * different clusters or because they use the address of their node.
   */
  bearers: readonly Workload[]
  /**
   * If `bearers` is empty, the reason why the address may nevertheless belong to a Kubernetes workload; null if it
   * cannot.
   */
  mayBePod: string | null
}

const FORMS =
  'Give a workload (its name or href), an IP address, a label (key=value) or a list of labels, or iplist:NAME.'

/**
 * Finds the workloads, address or IP list that a reference names. Names are compared exactly, never partially.
 * @throws {ToolError} invalid_argument if the reference cannot be the source or destination of a flow; not_found or
 * label_not_found with similar names; ambiguous_name with candidates; invalid_href. Each error contains the `argument`.
 */
export async function resolveEnd(
  pce: PceClient,
  lookups: PolicyLookups,
  reference: EndReference,
  argument: string,
  signal: AbortSignal,
): Promise<AskedEnd> {
  try {
    const references = isList(reference) ? reference : [reference]
    const [only] = references
    if (only === undefined || references.length > 1)
      return endOfLabels(references.map((one) => findLabel(lookups, one)))
    const text = textOf(only)
    if (text !== null && isAddress(text)) {
      return { kind: 'address', name: text, address: text, ...(await findByAddress(pce, text, signal)) }
    }
    const object = text === null ? null : await findNamed({ pce, lookups, signal }, text)
    return object ?? endOfLabels([findLabel(lookups, only)])
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    const { code, message, details, hint } = error
    throw new ToolError(code, `${argument}: ${message}`, { argument, ...details }, { cause: error, hint })
  }
}

const isList = (reference: EndReference): reference is readonly LabelReference[] => Array.isArray(reference)

/** Returns the reference itself if it is a string, or its href if it is an object without a key; otherwise null. */
function textOf(reference: LabelReference): string | null {
  if (typeof reference === 'string') return trimBlanks(reference)
  return isLabelReference(reference) && reference.key === undefined ? (reference.href ?? null) : null
}

interface Finder {
  pce: PceClient
  lookups: PolicyLookups
  signal: AbortSignal
}

/**
 * Finds the object that a string names. Returns null if the string must be a label. A string in no other known form
 * counts as the name of a workload.
 */
async function findNamed(finder: Finder, text: string): Promise<AskedEnd | null> {
  const { pce, lookups, signal } = finder
  const [, prefix = '', name = ''] = /^(iplist|workload):(.+)$/su.exec(text) ?? []
  if (prefix === 'iplist') return endOfList(await lookups.byName('ip_lists', trimBlanks(name)))
  if (prefix === 'workload') return endOfWorkload(await findNamedWorkload(pce, trimBlanks(name), signal))
  if (looksLikeLabel(text)) return null
  if (!text.startsWith('/')) {
    if (text === '' || /^\d+(?:\.\d+)+\/\d+$|^[\da-f:]+\/\d+$/iu.test(text))
      throw new ToolError('invalid_argument', `${quote(text)} cannot be an end of a flow. ${FORMS}`)
    return findWorkload(finder, text)
  }
  const kind = parseHref(text)?.kind
  if (kind === 'workloads') return endOfWorkload((await lookups.byHref(kind, text)) as Workload)
  if (kind === 'kubernetes_workloads')
    return endOfWorkload(toWorkload(await findByHref(pce, kind, text, 'draft', signal)))
  if (kind === 'ip_lists') return endOfList(await lookups.byHref(kind, text))
  throw new ToolError('invalid_href', `${quote(text)} is not the href of a workload, a label or an IP list.`, {
    href: text,
  })
}

/** Finds a workload by its exact name. If there is none, the error also suggests what else the string may mean. */
async function findWorkload(finder: Finder, text: string): Promise<AskedEnd> {
  try {
    return endOfWorkload(await findNamedWorkload(finder.pce, text, finder.signal))
  } catch (error) {
    if (!(error instanceof ToolError) || error.code !== 'not_found') throw error
    const why = await adviseOnForm(finder.lookups, text)
    if (why === '') throw error
    throw new ToolError(error.code, `${error.message} ${why}`, error.details, { cause: error, hint: error.hint })
  }
}

async function adviseOnForm(lookups: PolicyLookups, text: string): Promise<string> {
  if (text === 'ams') return `All workloads (ams) cannot be an end of a flow. ${FORMS}`
  if (/^[\d.]+$/u.test(text) && text.split('.').length === 4) return 'It is not a valid IP address either.'
  if (/^[\da-f]*(?::[\da-f.]*){2,}$/iu.test(text)) return 'It is not a valid IP address either.'
  const keys = lookups.labels.keysOf(text)
  const written = keys.length > 0 ? keys.map((key) => `${key}=${text}`) : await writeByPrefix(lookups, text, ['iplist'])
  return written.length === 0 ? '' : `Did you mean ${written.map(quote).join(' or ')}?`
}

const endOfWorkload = (workload: Workload): AskedEnd => ({ kind: 'workload', name: nameOf(workload), workload })

const endOfList = (found: NamedObject): AskedEnd => ({
  kind: 'ip_list',
  name: found.name ?? found.href,
  list: found as IpList,
})

function endOfLabels(labels: readonly Label[]): AskedEnd {
  const twice = labels.find(({ key }, at) => labels.findIndex((other) => other.key === key) !== at)
  if (labels.length === 0) throw new ToolError('invalid_argument', `An empty list names nobody. ${FORMS}`)
  if (twice !== undefined) {
    const text = `No workload has two labels of the key ${quote(twice.key)}; labels are ANDed.`
    throw new ToolError('invalid_argument', text, {}, { hint: 'Ask once per value.' })
  }
  return { kind: 'labels', name: labels.map(({ key, value }) => `${key}=${value}`).join(' '), labels }
}

function findLabel({ labels }: PolicyLookups, reference: LabelReference): Label {
  const found = resolveLabel(labels, reference)
  if (!isUnresolved(found)) return found
  const text = `No label matches ${quote(describeReference(reference))} exactly. ${adviseOn(found)}`.trimEnd()
  throw new ToolError('label_not_found', text, { label: found.ref, valid_values: found.valid })
}

/**
 * Finds the workloads that have an interface with this address, including Kubernetes workloads.
 * @throws {ToolError} ambiguous_name if several workloads have the address and none of them is a Kubernetes workload.
 */
async function findByAddress(pce: PceClient, address: string, signal: AbortSignal): Promise<Bearers> {
  const isSame = createAddressTest(address)
  const has = ({ interfaces }: Workload) =>
    (interfaces ?? []).some((one) => one.address !== undefined && isSame(one.address))
  const params = { ip_address: addressFilter(true, address) }
  const hosts = await pickEvery({ api: pce.workloads, params, signal }, (workload: Workload) =>
    workload.deleted !== true && has(workload) ? workload : undefined,
  )
  const pods = canBePod(address) ? await findPods({ pce, signal }, has) : NO_PODS
  const bearers = [...hosts, ...pods.items]
  if (hosts.length > 1 && pods.items.length === 0) throw ambiguousAddress(address, bearers)
  const [only = null, ...others] = bearers
  return { workload: others.length > 0 ? null : only, bearers, mayBePod: bearers.length > 0 ? null : pods.unknown }
}

interface Pods {
  items: readonly Workload[]
  /** The reason why further Kubernetes workloads may have the address; null if none can. */
  unknown: string | null
}
const NO_PODS: Pods = { items: [], unknown: null }

/**
 * Returns true if a Kubernetes workload may have this address. The PCE knows only private addresses of Kubernetes
 * workloads (P106), so a public IPv4 address needs no search.
 */
const canBePod = (address: string): boolean =>
  ipaddr.process(address).kind() === 'ipv6' || classifyAddress(address) === 'private'

async function findPods(
  source: { pce: PceClient; signal: AbortSignal },
  has: (workload: Workload) => boolean,
): Promise<Pods> {
  let silent = 0
  const { items, unread } = await readKubernetesWorkloads(source, {}, (workload) => {
    if (workload.interfaces === null) silent += 1
    return has(workload) ? workload : undefined
  })
  if (unread !== null) return { items, unknown: `Kubernetes workloads could not be read: ${unread}` }
  return { items, unknown: silent === 0 ? null : `of ${countOf(silent, 'Kubernetes workload')} no address is known` }
}

/** Creates the error for an address that several workloads have although only one workload is allowed. */
export function ambiguousAddress(address: string, bearers: readonly Workload[]): ToolError {
  const text = `${bearers.length} workloads have the address ${address}.`
  return ambiguousName(text, bearers, {})
}

/** Returns the name by which answers refer to a workload: its name, its host name or its href. */
export const nameOf = ({ name, hostname, href }: Workload): string => name ?? hostname ?? href

import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { findNamedWorkload } from '../inventory/find-named-workload.js'
import { findObject } from '../inventory/find-object.js'
import { isKubernetes, readKubernetesWorkloads, tellUnread, toWorkload } from '../inventory/kubernetes-workloads.js'
import { ambiguousName } from '../inventory/tell-apart.js'
import { isUnresolved, resolveLabel, type LabelIndex, type LabelReference } from '../inventory/labels.js'
import { isAddress, sameAddress } from '../inventory/parse-addresses.js'
import { namesAt, someWorkloadWith, type End, type PolicyObjects } from '../policy/match-rules.js'
import { anyOf, type Answer } from '../policy/three-valued.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import type { Side } from './name-tests.js'
import type { PlacedRule } from './read-rules.js'

/**
 * The target of a search for rules that apply to it: a workload with all its addresses, a single address, or any
 * workload with certain labels.
 */
export interface Target {
  name: string
  ends: readonly End[]
  isWorkload: boolean
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal'>
const WHERE = { argument: 'applies_to' }
/**
 * The prefix with which other tools name a workload. A name after it counts as a name even if it looks like a label or
 * an address.
 */
const WORKLOAD = 'workload:'

/**
 * Finds the target that a caller names. It may be a workload, by href, name or host name, with or without `workload:`.
 * It may be an address, which stands for the workload that has it, if there is one. Or it may be labels. A list with
 * one entry means the same as the entry. Throws not_found with similar names, ambiguous_name if several workloads have
 * the name or address, label_not_found, and invalid_argument for a reference to anything else, because no rule can
 * apply to it.
 */
export async function findTarget(
  ctx: Context,
  labels: LabelIndex,
  asked: string | readonly LabelReference[],
): Promise<Target> {
  const [first] = typeof asked === 'string' || asked.length > 1 ? [asked] : asked
  if (typeof first !== 'string') return targetOfLabels(labels, asked as readonly LabelReference[])
  const text = first.trim()
  if (text.startsWith(WORKLOAD)) {
    const name = trimBlanks(text.slice(WORKLOAD.length))
    return targetOfWorkload(labels, await findNamedWorkload(ctx.pce, name, ctx.signal))
  }
  if (text === 'ams' || /^(?:iplist|labelgroup):/u.test(text)) {
    const say = `applies_to ${quote(text)}: give workload:NAME, an href or address of a workload, or labels (key=value). Rules that name ${quote(text)} are found by actor, provider or consumer.`
    throw new ToolError('invalid_argument', say, WHERE)
  }
  if (isAddress(text)) return targetOfAddress(ctx, labels, text)
  if (!text.startsWith('/') && text.includes('=')) return targetOfLabels(labels, [text])
  if (!text.startsWith('/')) return targetOfWorkload(labels, await findNamedWorkload(ctx.pce, first, ctx.signal))
  const found = isKubernetes({ href: text })
    ? toWorkload(await findObject(ctx.pce, 'kubernetes_workloads', { href: text }, ctx.signal))
    : await findObject(ctx.pce, 'workloads', { href: text }, ctx.signal)
  return targetOfWorkload(labels, found)
}

function targetOfLabels(labels: LabelIndex, references: readonly LabelReference[]): Target {
  const found = references.map((reference) => {
    const label = resolveLabel(labels, reference)
    if (!isUnresolved(label)) return label
    const details = { argument: 'applies_to', label: label.ref, valid_values: label.valid }
    throw new ToolError('label_not_found', `applies_to: no label matches ${quote(label.ref)} exactly.`, details)
  })
  const keys = found.map(({ key }) => key)
  const twice = keys.find((key, at) => keys.indexOf(key) !== at)
  if (twice !== undefined) {
    const text = `applies_to names the key ${quote(twice)} twice; a workload has one label of a key.`
    throw new ToolError('invalid_argument', text, { argument: 'applies_to' })
  }
  return { name: `workloads with ${quote(describeLabels(found))}`, ends: [someWorkloadWith(found)], isWorkload: false }
}

const describeLabels = (labels: readonly Pick<Label, 'key' | 'value'>[]) =>
  labels.map(({ key, value }) => `${key}=${value}`).join(', ')

/**
 * Finds the workload that has an address. The PCE's filter also matches parts of addresses (P8), so this server
 * compares the whole addresses.
 */
async function targetOfAddress({ pce, signal }: Context, labels: LabelIndex, address: string): Promise<Target> {
  const params = address.includes(':') ? {} : { ip_address: address }
  let having: Workload[] = []
  await scanWhole(
    { api: pce.workloads, params, signal },
    {
      onBegin: () => void (having = []),
      onItems(items) {
        for (const item of items) if (addressesOf(item).some((own) => sameAddress(own, address))) having.push(item)
      },
    },
  )
  const pods = await readKubernetesWorkloads({ pce, signal }, {}, (one) =>
    addressesOf(one).some((own) => sameAddress(own, address)) ? one : undefined,
  )
  having.push(...pods.items)
  const [first, ...others] = having
  if (others.length > 0)
    throw ambiguousName(`applies_to: ${having.length} workloads have the address ${address}.`, having, WHERE)
  if (first !== undefined) return targetOfWorkload(labels, first)
  return {
    name: [`${address}, which no workload has`, ...tellUnread(pods.unread)].join('. '),
    ends: [{ workload: null, labels: {}, ip: address, fqdn: null }],
    isWorkload: false,
  }
}

const addressesOf = ({ interfaces }: Workload) => (interfaces ?? []).flatMap(({ address }) => address ?? [])

function targetOfWorkload(labels: LabelIndex, workload: Workload): Target {
  const own = (workload.labels ?? []).map((label) => labels.get(label.href) ?? label)
  const byKey = Object.fromEntries(own.flatMap(({ key, value }) => (key === undefined ? [] : [[key, value ?? '']])))
  const addresses: (string | null)[] = addressesOf(workload)
  const { href, name, hostname } = workload
  const shown = own.length === 0 ? 'no labels' : describeLabels(own as Label[])
  return {
    name: `${quote(name ?? hostname ?? href)} (${own.length === 0 ? shown : quote(shown)})`,
    ends: (addresses.length === 0 ? [null] : addresses).map((ip) => ({
      workload: href,
      labels: byKey,
      ip,
      fqdn: null,
    })),
    isWorkload: true,
  }
}

/**
 * Returns two answers: whether a side of a rule names the target as a workload, and whether it names the target at all.
 * If the target has several addresses, one of them is enough.
 */
export function namesTarget(
  { rule, holder: { scopes } }: PlacedRule,
  side: Side,
  { ends }: Target,
  objects: PolicyObjects,
): { asWorkload: Answer; any: Answer } {
  const namings = ends.map((end) => namesAt({ scopes, rule }, side, end, objects))
  const asWorkload = anyOf(namings.map((one) => one.asWorkload))
  // A target that is known only by its labels may have any address, so IP lists are not considered.
  const byAddress = ends.some(({ isSome }) => isSome === true) ? [] : namings.map((one) => one.byAddress)
  return { asWorkload, any: anyOf([asWorkload, ...byAddress]) }
}

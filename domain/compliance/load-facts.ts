import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, isUnread } from '../inventory/fetch-every.js'
import { requireIpListShapes } from '../inventory/require-rule-shape.js'
import { fetchWorkloads, isKubernetes, tellUnread } from '../inventory/kubernetes-workloads.js'
import { isManaged, modeOf } from '../inventory/workloads.js'
import { indexLabels, labelExpander, loadLabels, type LabelIndex } from '../inventory/labels.js'
import { createRowDecider } from '../policy/decide-rows.js'
import { loadSnapshot, withDenyRules } from '../policy/load-snapshot.js'
import { createPresentModes } from '../policy/present-modes.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { describeBothWays, hasLabels, readBothWays } from '../traffic/read-both-ways.js'
import { createConversationReader, describeReading, type Reading } from '../traffic/read-flows.js'
import { classifyEnd, createExposureMeter, findBroadLists, type EndFacts, type TrafficExposure } from './exposure.js'
import {
  MOST_EVENTS,
  type Assessment,
  type AssessedWorkload,
  type EventLog,
  type ComplianceFacts,
  type Loaded,
  type Source,
  type SourceName,
} from './facts.js'

const DAY_SECONDS = 86_400

type Context = ToolContext<true>

/**
 * Loads the facts that the checks need, except traffic. If the PCE refuses or fails to send one, this is recorded, and
 * only the checks that need this fact cannot be assessed. Rejects only if the call is cancelled.
 */
export async function loadFacts(
  ctx: Context,
  assessment: Assessment,
  needs: ReadonlySet<SourceName>,
): Promise<ComplianceFacts['sources']> {
  const { signal, pce } = ctx
  const { window } = assessment
  const every = { params: {}, signal }
  const read = <K extends SourceName>(name: K, work: () => Promise<Loaded[K]>) =>
    needs.has(name) ? attempt(work, signal) : undefined
  let unread: string | null = null
  const [workloads, policy, drafts, ipLists, events, scans] = await Promise.all([
    read('workloads', async () => {
      const loaded = await loadWorkloads(ctx, assessment)
      unread = loaded.unread
      return loaded.workloads
    }),
    read('policy', async () => {
      const snapshot = await loadSnapshot(ctx, 'active', await loadLabels(pce, ctx))
      return withDenyRules(ctx, snapshot)
    }),
    read('drafts', async () => (await fetchEvery({ api: pce.ruleSets, ...every })).items),
    read('ipLists', async () => {
      const { items } = await fetchEvery({ api: pce.ipLists, policyVersion: 'active', ...every })
      requireIpListShapes(items)
      return items
    }),
    read('events', () => loadEvents(ctx, window.start)),
    read('scans', async () => (await fetchEvery({ api: pce.vulnerabilityReports, ...every })).items),
  ])
  return {
    ...(workloads && { workloads: { ...workloads, ...(unread !== null && { partly: tellUnread(unread).join('') }) } }),
    ...(policy && { policy }),
    ...(drafts && { drafts }),
    ...(ipLists && { ipLists }),
    ...(events && { events }),
    ...(scans && { scans }),
  }
}

async function attempt<T>(work: () => Promise<T>, signal: AbortSignal): Promise<Source<T>> {
  try {
    return { value: await work() }
  } catch (error) {
    if (!isUnread(error) || signal.aborted) throw error
    return { unavailable: error.message }
  }
}

async function loadWorkloads(
  ctx: Context,
  { app, env }: Assessment,
): Promise<{ workloads: AssessedWorkload[]; unread: string | null }> {
  const wanted = [app, env].flatMap((label) => label ?? [])
  const { items, unread } = await fetchWorkloads(ctx, wanted)
  const expand = await labelExpander(
    ctx.pce,
    items.flatMap((workload) => workload.labels ?? []),
    ctx,
  )
  const workloads = items.map((workload): AssessedWorkload => {
    const managed = isManaged(workload)
    const expanded = (workload.labels ?? [])
      .map(expand)
      .filter((label): label is Label => label.key !== undefined && label.value !== undefined)
    const [appLabel, envLabel] = ['app', 'env'].map((key) => expanded.find((label) => label.key === key))
    return {
      href: workload.href,
      name: workload.hostname ?? workload.name ?? workload.href,
      managed,
      isKubernetes: isKubernetes(workload),
      online: workload.online ?? null,
      mode: managed ? (workload.enforcement_mode ?? 'unknown') : null,
      judgedMode: modeOf(workload),
      reportsFlows: workload.visibility_level == null ? null : workload.visibility_level !== 'flow_off',
      labels: Object.fromEntries(expanded.map(({ key, value }) => [key, value])),
      application: appLabel === undefined || envLabel === undefined ? null : [appLabel, envLabel],
      addresses: (workload.interfaces ?? []).flatMap(({ address }) => address ?? []),
    }
  })
  return { workloads, unread }
}

async function loadEvents({ pce, signal }: Context, since: string): Promise<EventLog> {
  const params = { 'timestamp[gte]': since, max_results: MOST_EVENTS }
  const [page, destinations, settings] = await Promise.all([
    pce.events.getPage('draft', null, { params, signal }),
    attempt(() => pce.syslogDestinations.getAll('draft', null, { signal }), signal),
    attempt(() => pce.eventSettings.get('draft', null, { signal }), signal),
  ])
  const audit =
    'value' in destinations
      ? destinations.value.filter((one) => one.audit_event_logger.configuration_event_included)
      : null
  const seconds = 'value' in settings ? settings.value[0]?.audit_event_retention_seconds : undefined
  return {
    events: page.items,
    more: page.items.length >= MOST_EVENTS,
    destinations: audit && { all: audit.length, remote: audit.filter(({ type }) => type === 'remote_syslog').length },
    retentionDays: seconds === undefined ? null : seconds / DAY_SECONDS,
  }
}

/**
 * Reads the traffic with two queries (into and out of the workloads with the given labels) or, for the whole
 * organisation, with one. Every policy decision is requested, because flows about which no VEN decided pass too. Each
 * row is then decided by the policy in force and the present modes of its ends, whatever decision was recorded (D78),
 * and counts once. If the list of labels cannot be read, the traffic is decided only if its rows contain the key and
 * value of their labels.
 *
 * @param complete the option `complete` of `createConversationReader`
 * @throws the errors of the flow reader
 */
export async function readExposure(
  ctx: ToolContext<true>,
  assessment: Assessment,
  sources: ComplianceFacts['sources'],
  ports: ReadonlySet<number>,
  complete?: boolean,
): Promise<{ traffic: Source<TrafficExposure>; reading: Reading; modes: readonly string[] }> {
  const labels = watchLabels(await attempt(() => loadLabels(ctx.pce, ctx), ctx.signal))
  const encoder = createFlowEncoder(labels.index)
  const wanted = [assessment.app, assessment.env].filter((label) => label !== null)
  const lists = valueOf(sources.ipLists) ?? []
  const { workloads } = sources
  const known = new Map((valueOf(workloads) ?? []).map(({ href, judgedMode }) => [href, judgedMode]))
  // True if `known` contains all workloads: everything is assessed, and Kubernetes workloads could be read as well.
  const isWhole =
    wanted.length === 0 && workloads !== undefined && 'value' in workloads && workloads.partly === undefined
  const present = createPresentModes(ctx, { known, isWhole })
  const facts: EndFacts = {
    isAssessed: (end) => (wanted.length === 0 ? end.workload !== null : hasLabels(end, wanted)),
    broadLists: findBroadLists(lists),
  }
  const policy = valueOf(sources.policy) ?? null
  const meter = createExposureMeter(
    encoder,
    (end) => classifyEnd(end, facts),
    createRowDecider(encoder, policy, present.modeOf),
    ports,
  )
  const read = createConversationReader(ctx, encoder, complete)
  const request = { name: 'mcp-compliance-check', window: assessment.window, prepare: present.look }
  const finish = (reading: Reading) => {
    const unavailable = labels.whyMissed()
    const traffic = unavailable === null ? { value: meter.finish(reading.flows_truncated) } : { unavailable }
    return { traffic, reading, modes: present.notes() }
  }
  if (wanted.length === 0) return finish(describeReading(await read(request, (row) => meter.add(row))))
  const reads = await readBothWays(read, encoder, wanted, request, (row, path) =>
    meter.add(row, { inbound: path !== 'outbound', outbound: path !== 'inbound' }),
  )
  return finish(describeBothWays(reads))
}

/**
 * Returns the index of labels. If they could not be read, the index is empty, so every lookup fails. Once a label was
 * looked up in the empty index by href, `whyMissed` returns the reason why it was not found; until then, and otherwise,
 * it returns null.
 */
function watchLabels(source: Source<LabelIndex>): { index: LabelIndex; whyMissed: () => string | null } {
  if ('value' in source) return { index: source.value, whyMissed: () => null }
  let isMissed = false
  const get = () => {
    isMissed = true
    return undefined
  }
  const why = `its ends have labels by href alone, and of the list of labels: ${source.unavailable}`
  return { index: { ...indexLabels([]), get }, whyMissed: () => (isMissed ? why : null) }
}

const valueOf = <T>(source: Source<T> | undefined): T | undefined =>
  source !== undefined && 'value' in source ? source.value : undefined

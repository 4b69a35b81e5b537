import type { Label } from '../../../schemas/pce/label.js'
import type { ToolContext } from '../../define.js'
import { anything, withLabels } from '../flows/applications.js'
import { createFlowEncoder } from '../flows/encode-flow.js'
import type { FlowEnd } from '../flows/flow-end.js'
import { createFlowReader, type FlowsRead } from '../flows/read-flows.js'
import { loadLabels } from '../load-labels.js'
import { toDraftHref } from '../parse-href.js'
import { classifyEnd, findBroadLists, isBroad, type EndFacts } from './classify-end.js'
import type { AssessedScope, Facts, Source } from './facts.js'
import type { Exposure } from './exposure.js'
import { createExposureMeter } from './measure-exposure.js'
import { closedKey, findClosedApplications } from './rule-reach.js'

/**
 * Reads the traffic: into and out of the labels that were named, in two queries, or all of it in one. Every decision is asked for,
 * because what nobody judged passes too. Each row counts once. Throws what the flow reader throws.
 */
export async function readExposure(
  ctx: ToolContext<true>,
  scope: AssessedScope,
  sources: Facts['sources'],
  ports: ReadonlySet<number>,
): Promise<{ exposure: Exposure; reads: [FlowsRead, ...FlowsRead[]] }> {
  const labels = await loadLabels(ctx.pce, ctx)
  const encoder = createFlowEncoder(labels)
  const wanted = [scope.app, scope.env].filter((label) => label !== null)
  const policy = valueOf(sources.policy)
  const lists = valueOf(sources.ipLists) ?? []
  const broadHrefs = new Set([
    ...(policy?.facts.anyIpLists ?? []),
    ...lists.filter(isBroad).map(({ href }) => toDraftHref(href)),
  ])
  const closed = policy === undefined ? new Map<string, never>() : findClosedApplications(policy, labels, broadHrefs)
  const modes = new Map((valueOf(sources.workloads) ?? []).map(({ href, mode }) => [href, mode]))
  const facts: EndFacts = {
    isInScope: (end) => isInScope(end, wanted),
    broadLists: findBroadLists(lists),
    modeOf: (workload) => modes.get(workload) ?? null,
    inboundDenied: ({ labels: { app, env } }) =>
      app === undefined || env === undefined ? null : (closed.get(closedKey(app, env)) ?? null),
  }
  const meter = createExposureMeter(encoder, (end) => classifyEnd(end, facts), ports)
  const read = createFlowReader(ctx, encoder)
  const request = { name: 'mcp-compliance-check', window: scope.window }
  const finish = (...reads: [FlowsRead, ...FlowsRead[]]) => ({
    exposure: meter.finish(reads.some(({ truncated }) => truncated)),
    reads,
  })
  if (wanted.length === 0) return finish(await read(request, (row) => meter.add(row)))

  // An end may be of the application without its labels, as a virtual service is: then only the query shows it.
  const destinations = new Set<number>()
  const inbound = await read(
    { ...request, filters: { sources: anything(), destinations: withLabels(wanted) } },
    (row) => {
      destinations.add(row.dst)
      meter.add(row, { inbound: true, outbound: meter.isInScope(row, 'source') })
    },
  )
  const outbound = await read(
    { ...request, filters: { sources: withLabels(wanted), destinations: anything() } },
    (row) => {
      // What runs between two ends of it was in the first answer already.
      if (!destinations.has(row.dst) && !meter.isInScope(row, 'target'))
        meter.add(row, { inbound: false, outbound: true })
    },
  )
  return finish(inbound, outbound)
}

const valueOf = <T>(source: Source<T> | undefined): T | undefined =>
  source !== undefined && 'value' in source ? source.value : undefined

function isInScope(end: FlowEnd, wanted: readonly Label[]): boolean {
  return wanted.length === 0 ? end.workload !== null : wanted.every(({ key, value }) => end.labels[key] === value)
}

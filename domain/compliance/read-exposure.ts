import type { ToolContext } from '../call.js'
import { describeReading, createFlowReader, type Reading } from '../traffic/read-flows.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { describeBothWays, hasLabels, readBothWays } from '../traffic/read-both-ways.js'
import { loadLabels } from '../inventory/load-labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
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
): Promise<{ exposure: Exposure; reading: Reading }> {
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
    isInScope: (end) => (wanted.length === 0 ? end.workload !== null : hasLabels(end, wanted)),
    broadLists: findBroadLists(lists),
    modeOf: (workload) => modes.get(workload) ?? null,
    inboundDenied: ({ labels: { app, env } }) =>
      app === undefined || env === undefined ? null : (closed.get(closedKey(app, env)) ?? null),
  }
  const meter = createExposureMeter(encoder, (end) => classifyEnd(end, facts), ports)
  const read = createFlowReader(ctx, encoder)
  const request = { name: 'mcp-compliance-check', window: scope.window }
  const finish = (reading: Reading) => ({ exposure: meter.finish(reading.flows_truncated), reading })
  if (wanted.length === 0) return finish(describeReading(await read(request, (row) => meter.add(row))))
  const reads = await readBothWays(read, encoder, wanted, request, (row, path) =>
    meter.add(row, { inbound: path !== 'outbound', outbound: path !== 'inbound' }),
  )
  return finish(describeBothWays(reads))
}

const valueOf = <T>(source: Source<T> | undefined): T | undefined =>
  source !== undefined && 'value' in source ? source.value : undefined

import { Type, type Static } from '@sinclair/typebox'
import { SectionsInput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { defineTool } from '../define.js'
import { countModes } from '../../domain/inventory/workloads.js'
import { fetchWorkloads } from '../../domain/inventory/kubernetes-workloads.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { readBothWays } from '../../domain/traffic/read-both-ways.js'
import { createConversationReader } from '../../domain/traffic/read-flows.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { collectReadiness } from '../../domain/readiness/collect-readiness.js'
import { decideByRules, createModesBeside, readPolicyInForce } from '../../domain/readiness/tally-decisions.js'
import { describeRingfence } from '../../domain/readiness/score-readiness.js'
import { applicationOfLabels } from '../../domain/traffic/applications.js'
import { chooseSections } from '../answers/choose-sections.js'
import { READINESS_PARTS, ReadinessOutput, showReadiness } from '../answers/readiness/show-readiness.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { findRingfence } from '../../domain/ringfence/find-existing.js'

const NAME = 'enforcement-readiness'
const DEFAULT_DAYS = 30

export default defineTool({
  name: NAME,
  summary: 'How ready an application is for enforcement: what would be cut, what to do.',
  effect: 'read',
  reads: 'judged',
  toolset: 'analysis',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      app_name: Type.String({ minLength: 1, description: 'app label' }),
      env_name: Type.String({ minLength: 1, description: 'env label' }),
      ...windowInput(DEFAULT_DAYS),
      ...SectionsInput(READINESS_PARTS),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output: ReadinessOutput,
  example: { app_name: 'payments', env_name: 'prod' },
  async handler(args, ctx): Promise<Static<typeof ReadinessOutput>> {
    const { pce, signal } = ctx
    const chosen = chooseSections(args.sections, READINESS_PARTS)
    const { window, days } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const labels = await resolveApplication(ctx, args)
    const [index, { items: workloads, ...pods }, draft, active] = await Promise.all([
      loadLabels(pce, ctx),
      fetchWorkloads(ctx, labels),
      findRingfence(pce, labels, 'draft', signal),
      findRingfence(pce, labels, 'active', signal),
    ])
    const encoder = createFlowEncoder(index)
    const policy = await readPolicyInForce(pce, signal, index)
    const present = createModesBeside(ctx, workloads)
    const byRules = decideByRules(encoder, policy, { present, application: labels })
    const traffic = collectReadiness(encoder)
    const read = createConversationReader(ctx, encoder, args.complete)
    const request = { name: `mcp-${NAME}`, window, prepare: present.look }
    const reads = await readBothWays(read, encoder, labels, request, (row, path) =>
      byRules.take(row, path, traffic.take),
    )
    return showReadiness({
      application: applicationOfLabels(labels),
      days,
      counts: countModes(workloads, (label) => label),
      pods,
      ringfence: describeRingfence(draft, active),
      traffic: { ...traffic.result(), reliance: byRules.result() },
      reads,
      chosen,
      limits: ctx.limits,
    })
  },
})

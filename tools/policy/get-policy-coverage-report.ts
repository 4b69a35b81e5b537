import { Type, type Static } from '@sinclair/typebox'
import type { PceClient } from '../../pce-client/index.js'
import { isUnread } from '../../domain/inventory/fetch-every.js'
import { DetailLevel } from '../../schemas/common.js'
import { SectionsInput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { defineTool } from '../define.js'
import { fetchWorkloads } from '../../domain/inventory/kubernetes-workloads.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { readBothWays } from '../../domain/traffic/read-both-ways.js'
import { createConversationReader } from '../../domain/traffic/read-flows.js'
import { readWholePolicy } from '../../domain/policy/read-whole-policy.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { collectCoverage } from '../../domain/readiness/collect-coverage.js'
import { decideByRules, createModesBeside, readPolicyInForce } from '../../domain/readiness/tally-decisions.js'
import { applicationOfLabels } from '../../domain/traffic/applications.js'
import { chooseSections } from '../answers/choose-sections.js'
import { COVERAGE_PARTS, CoverageOutput, showCoverage } from '../answers/readiness/show-coverage.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'

const DEFAULT_DAYS = 30

export default defineTool({
  name: 'get-policy-coverage-report',
  summary: "Shares of an application's traffic that policy allows or not, by direction and in draft.",
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
      ...CompleteInput,
      ...SectionsInput(COVERAGE_PARTS),
      detail_level: DetailLevel('full: more rows'),
    },
    { additionalProperties: false },
  ),
  output: CoverageOutput,
  example: { app_name: 'payments', env_name: 'prod' },
  async handler(args, ctx): Promise<Static<typeof CoverageOutput>> {
    const { pce } = ctx
    const chosen = chooseSections(args.sections, COVERAGE_PARTS)
    const hasDraft = chosen.has('draft')
    const { window, days } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const labels = await resolveApplication(ctx, args)
    const [index, { items: workloads }] = await Promise.all([loadLabels(pce, ctx), fetchWorkloads(ctx, labels)])
    const encoder = createFlowEncoder(index)
    const found = collectCoverage(encoder)
    // The pending changes are read before the policy in force. If they are provisioned in between, the policy already
    // contains them.
    const isSame = hasDraft && (await isNothingPending(ctx))
    const policy = await readPolicyInForce(pce, ctx.signal, index)
    const draft = isSame ? policy : hasDraft ? await readWholePolicy(ctx, 'draft', index) : null
    const present = createModesBeside(ctx, workloads)
    const byRules = decideByRules(encoder, policy, { present, application: labels, ...(draft && { draft }) })
    const request = {
      name: 'mcp-policy-coverage',
      window,
      draftDecisions: hasDraft,
      prepare: present.look,
    }
    const reads = await readBothWays(
      createConversationReader(ctx, encoder, args.complete),
      encoder,
      labels,
      request,
      (row, path) => byRules.take(row, path, found.take),
    )
    const application = applicationOfLabels(labels)
    const rulesUnavailable = reads.inbound.draftUnavailable ?? reads.outbound.draftUnavailable
    const coverage = found.result(application, { hasDraft: draft !== null, hasRules: rulesUnavailable === null })
    const isWithoutRules = coverage.wouldAllow > 0 && rulesUnavailable !== null
    return showCoverage({
      application,
      days,
      found: coverage,
      reliance: byRules.result(),
      draftUnavailable: !hasDraft
        ? 'sections leaves it out'
        : draft === null
          ? 'the draft policy could not be read'
          : isWithoutRules
            ? rulesUnavailable
            : null,
      reads,
      chosen,
      detail: args.detail_level ?? 'standard',
      limits: ctx.limits,
    })
  },
})

/**
 * Returns true if the draft equals the policy in force; false if it differs, or if the pending changes could not be
 * read.
 */
async function isNothingPending({ pce, signal }: { pce: PceClient; signal: AbortSignal }): Promise<boolean> {
  try {
    return (await pce.getPendingPolicyChanges({ signal })).length === 0
  } catch (error) {
    if (!isUnread(error) || signal.aborted) throw error
    return false
  }
}

import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { DRY_RUN_BINDING, DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import type { Label } from '../../schemas/pce/label.js'
import { RingfenceOutput, SourcesInput } from '../../schemas/ringfence.js'
import { ServicesInput } from '../../schemas/rule-shapes.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { requireApproved } from '../../domain/policy/require-approved.js'
import { digestWrites } from '../../domain/ringfence/digest-writes.js'
import { previewBatch } from '../answers/ringfence/show-batch.js'
import { Reading } from '../../domain/traffic/read-flows.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { chooseSources } from '../../domain/ringfence/choose-sources.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { prepareRingfence, DENY_CONSUMERS } from '../../domain/ringfence/prepare-ringfence.js'
import { reportRising, shareReads } from '../../domain/ringfence/share-reads.js'
import { noteCovered } from '../answers/ringfence/note-covered.js'
import { showRingfence } from '../answers/ringfence/show-ringfence.js'
import { writePrepared } from '../../domain/ringfence/write-ringfence.js'
import { Truncation } from '../answers/byte-budget.js'

const DEFAULT_DAYS = 30

const input = Type.Object(
  {
    app_name: Type.String({ minLength: 1, description: 'app label' }),
    env_name: Type.String({ minLength: 1, description: 'env label' }),
    ...windowInput(DEFAULT_DAYS),
    ...CompleteInput,
    ruleset_name: Type.Optional(NewName('Default RF-<app>-<env>')),
    selective: Type.Optional(Type.Boolean({ default: false, description: 'Deny other inbound' })),
    skip_allowed: Type.Optional(Type.Boolean({ default: false, description: 'No rule if allowed', listed: '' })),
    deny_service: Type.Optional(ServicesInput('Default All Services')),
    deny_consumer: Type.Optional(
      StringEnum(DENY_CONSUMERS, { default: 'any', description: 'Any address, workloads, both' }),
    ),
    ...SourcesInput,
    detail_level: DetailLevel('full: requests'),
    ...DryRunInput,
  },
  { additionalProperties: false },
)

export default defineTool({
  name: 'create-ringfence',
  summary:
    "Draft an application's ringfence from its traffic: allow inside and each source application; selective denies the rest.",
  effect: 'write',
  scope: 'objects',
  toolset: 'ringfence',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input,
  output: Type.Object({ ...RingfenceOutput, ...Reading, ...Truncation }),
  example: { app_name: 'payments', env_name: 'prod', dry_run: true },
  async preview(args, outer) {
    const { order, results, boundTo } = await plan(args, outer)
    return { ...previewBatch(outer, { order, results, warnings: [], isDryRun: args.dry_run === true }), boundTo }
  },
  async boundTo(args, outer) {
    return args.dry_run === true ? DRY_RUN_BINDING : (await plan(args, outer)).boundTo
  },
  async handler(args, outer) {
    const { pce, limits, signal, inOrder, approved } = outer
    const { prepared, boundTo } = await plan(args, outer)
    outer.beforeWriting.throwIfAborted()
    const text = 'What the ringfence would write has changed since it was confirmed. Nothing was written.'
    requireApproved(approved, boundTo, text)
    const written = args.dry_run === true ? null : await writePrepared({ pce, signal, inOrder }, prepared)
    return showRingfence(prepared, written, { detail: args.detail_level ?? 'standard', limits, orgId: pce.orgId })
  },
})

/** Plans everything that the call would do, without writing. `boundTo` is the digest of the plan (D75). */
async function plan(args: Static<typeof input>, outer: ToolContext<true>) {
  const { app_name: app, env_name: env, dry_run: isDryRun = false, detail_level: _shown, ...chosen } = args
  const { lookback_days: _days, start_date: _start, end_date: _end, ...asked } = chosen
  const { exclude_sources: excluded, environments, complete, ...options } = asked
  const window = chooseWindow(outer.now(), args, DEFAULT_DAYS)
  if (options.ruleset_name !== undefined) refuseHidden({ ruleset_name: options.ruleset_name })
  // Reading takes minutes. If the call is cancelled meanwhile, the signal `beforeWriting` ensures that nothing is
  // written.
  const planning = { ...reportRising(outer), signal: outer.beforeWriting }
  // The labels are read from the PCE, because a cached label may have been renamed and rules would then name the wrong
  // application.
  const labels = await loadLabels(planning.pce, planning, 'fresh')
  const application = (await resolveApplication(planning, { app_name: app, env_name: env })) as [Label, Label]
  const choice = chooseSources(labels, { exclude_sources: excluded, environments })
  const shared = shareReads(planning, window, choice, complete)
  const planned = await prepareRingfence(planning, application, options, shared, isDryRun)
  const prepared = await noteCovered(planned, planning.signal)
  const names = { app: application[0].value, env: application[1].value }
  const results = [{ ...names, status: 'success' as const, done: { prepared, written: null } }]
  const boundTo = isDryRun ? DRY_RUN_BINDING : digestWrites(shared.window, results)
  return { prepared, order: [{ ...names, state: 'ready' as const, application, options }], results, boundTo }
}

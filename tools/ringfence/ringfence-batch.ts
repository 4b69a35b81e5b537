import { Type, type Static } from '@sinclair/typebox'
import { Count, Flag, StringEnum, Text } from '../../schemas/common.js'
import { DRY_RUN_BINDING, DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { SourcesInput } from '../../schemas/ringfence.js'
import { ServicesInput } from '../../schemas/rule-shapes.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { listRequests } from '../answers/ringfence/describe-rules.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { chooseSources } from '../../domain/ringfence/choose-sources.js'
import { digestWrites } from '../../domain/ringfence/digest-writes.js'
import { orderBatch, resolveBatch, hasWritten, runBatch, writeBatch } from '../../domain/ringfence/run-batch.js'
import {
  prepareRingfence,
  refuseRelabelled,
  type Prepared,
  DENY_CONSUMERS,
} from '../../domain/ringfence/prepare-ringfence.js'
import { noteCovered } from '../answers/ringfence/note-covered.js'
import { previewBatch, showBatch, type Batch } from '../answers/ringfence/show-batch.js'
import { requireApproved } from '../../domain/policy/require-approved.js'
import { reportRising, type Shared, shareReads } from '../../domain/ringfence/share-reads.js'
import { type RingfenceWritten, writePrepared } from '../../domain/ringfence/write-ringfence.js'

const DEFAULT_DAYS = 30

const output = Type.Object({
  message: Type.String(),
  summary: Type.Object(
    {
      total_apps: Count('Entries of apps, duplicates included'),
      successful: Count('Planned or written'),
      errors: Count('Failed'),
      skipped: Count('Duplicates, and what was left after a stop'),
      dry_run: Flag('Nothing was written'),
      auto_ordered: Flag('Infrastructure came first'),
      rulesets_created: Count('New ones of the successful; 0 in a dry run'),
      rules_created: Count('Rules written by the successful; 0 in a dry run'),
      sources_cut: Count('Sources that lose traffic'),
    },
    { description: 'Of the whole batch' },
  ),
  order: Type.Array(
    Type.Object({
      app: Type.String(),
      env: Type.String(),
      infrastructure_score: Type.Optional(
        Type.Number({ description: '0 to 100, 0 without traffic; absent unless auto_ordered' }),
      ),
    }),
    { description: 'Processing order' },
  ),
  results: Type.Array(
    Type.Object({
      app: Type.String(),
      env: Type.String(),
      status: Text('success, error or skipped'),
      reason: Type.Optional(Text('Why skipped: duplicate or stopped')),
      result: Type.Optional(Type.Object({}, { description: 'As create-ringfence' })),
      error: Type.Optional(Type.Object({}, { description: 'As an error of create-ringfence' })),
    }),
    { description: 'One for each entry, in this order' },
  ),
  warnings: Type.Array(Type.String(), { description: 'Of the batch; each result has its own' }),
  window: TrafficCounts.window,
  note: Type.Optional(Text('What counts of shortened results cover')),
  flows_truncated: Flag('Row limit reached for a result: its counts are lower bounds'),
})

const input = Type.Object(
  {
    apps: Type.Array(
      Type.Object(
        {
          app_name: Type.String({ minLength: 1, description: 'app label' }),
          env_name: Type.String({ minLength: 1, description: 'env label' }),
          selective: Type.Optional(Type.Boolean({ description: 'Deny the rest' })),
          skip_allowed: Type.Optional(Type.Boolean({ description: 'No rule if allowed', listed: '' })),
          deny_service: Type.Optional(ServicesInput('Default All Services')),
          deny_consumer: Type.Optional(StringEnum(DENY_CONSUMERS, { description: 'Whom', listed: '' })),
          ruleset_name: Type.Optional(NewName('Default RF-<app>-<env>')),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 100, description: 'Done in turn', listed: '' },
    ),
    auto_order: Type.Optional(Type.Boolean({ default: false, description: 'Infrastructure first' })),
    stop_on_error: Type.Optional(Type.Boolean({ default: false, description: 'Skip the rest', listed: '' })),
    ...windowInput(DEFAULT_DAYS),
    ...CompleteInput,
    ...SourcesInput,
    ...DryRunInput,
  },
  { additionalProperties: false },
)

export default defineTool({
  name: 'ringfence-batch',
  summary: 'Ringfence several applications in turn.',
  effect: 'write',
  scope: 'objects',
  toolset: 'ringfence',
  idempotent: true,
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  input,
  output,
  example: { apps: [{ app_name: 'payments', env_name: 'prod' }], dry_run: true },
  async preview(args, outer) {
    const { order, results, warnings, shared } = await workThrough(args, outer, null)
    const isDryRun = args.dry_run === true
    const boundTo = isDryRun ? DRY_RUN_BINDING : digestWrites(shared.window, results)
    return { ...previewBatch(outer, { order, results, warnings, isDryRun }), boundTo }
  },
  async boundTo(args, outer) {
    if (args.dry_run === true) return DRY_RUN_BINDING
    const { results, shared } = await workThrough(args, outer, null)
    return digestWrites(shared.window, results)
  },
  async plan(args, outer) {
    const { results } = await workThrough(args, outer, null)
    return results.flatMap((outcome) =>
      outcome.status === 'success' ? listRequests(outcome.done.prepared, outer.pce.orgId) : [],
    )
  },
  async handler(args, outer): Promise<Static<typeof output>> {
    const { dry_run: dryRun = false, auto_order: autoOrder = false, stop_on_error: stopOnError = false } = args
    const { pce, signal, beforeWriting, inOrder, approved } = outer
    // A write that has begun is aborted only when the server stops, not when the client disconnects.
    const write = (prepared: Prepared) => writePrepared({ pce, signal, inOrder }, prepared)
    const isConfirmed = approved !== undefined
    const batch = await workThrough(args, outer, dryRun || isConfirmed ? null : write)
    let { results } = batch
    if (isConfirmed && !dryRun) {
      // After a confirmation, all ringfences are planned before the first write, because the confirmation covers the
      // whole plan (D75).
      const text = 'What the batch would write has changed since it was confirmed. Nothing was written.'
      requireApproved(approved, digestWrites(batch.shared.window, results), text)
      results = await writeBatch(batch.planning, results, { stopOnError }, async (prepared) => {
        refuseRelabelled(pce, prepared, await batch.shared.labels())
        return write(prepared)
      })
    }
    if (!results.some(hasWritten)) beforeWriting.throwIfAborted()
    const { order, warnings, shared } = batch
    return showBatch(outer, { order, results, warnings, window: shared.window, dryRun, autoOrder })
  },
})

/**
 * Looks up the applications, sorts them, and plans them one by one. If `write` is given, each ringfence is written as
 * soon as it is planned.
 */
async function workThrough(
  args: Static<typeof input>,
  outer: ToolContext<true>,
  write: ((prepared: Prepared) => Promise<RingfenceWritten>) | null,
): Promise<Pick<Batch, 'order' | 'results' | 'warnings'> & { planning: ToolContext<true>; shared: Shared }> {
  const { apps, dry_run: isDryRun = false } = args
  const window = chooseWindow(outer.now(), args, DEFAULT_DAYS)
  const { auto_order: autoOrder = false, stop_on_error: stopOnError = false } = args
  for (const { ruleset_name: name } of apps) if (name !== undefined) refuseHidden({ ruleset_name: name })
  // If the call is cancelled while data for the next application is read, nothing more may be written.
  const planning = { ...reportRising(outer), signal: outer.beforeWriting }
  const labels = await loadLabels(planning.pce, planning, 'fresh')
  const shared = shareReads(planning, window, chooseSources(labels, args), args.complete)
  // All applications are looked up before the first write.
  const resolved = await resolveBatch(planning, apps)
  const { order, warnings } = await orderBatch(resolved, autoOrder, shared)
  const results = await runBatch(planning, order, { stopOnError }, async (one) => {
    const planned = await prepareRingfence(planning, one.application, one.options, shared, isDryRun)
    const prepared = await noteCovered(planned, planning.signal)
    planning.signal.throwIfAborted()
    return { prepared, written: write === null ? null : await write(prepared) }
  })
  return { order, results, warnings, planning, shared }
}

import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { WorkloadLabelsInput, WorkloadOut } from '../../schemas/workload-shapes.js'
import { defineTool } from '../define.js'
import { checkAddresses } from '../../domain/inventory/parse-addresses.js'
import { findDifferences, listDifferences } from '../../domain/policy/compare-stored.js'
import {
  labelRequests,
  planWorkloadLabels,
  plannedLabels,
  writePlannedLabels,
} from '../../domain/drafts/create-labels.js'
import { loadLabels, type LabelOutput } from '../../domain/inventory/labels.js'
import { readBack } from '../../domain/drafts/change-object.js'
import { findCreated, refuseHidden } from '../../domain/drafts/create-named.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { warnOfNamesakes } from '../../domain/drafts/warn-of-namesakes.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { showCreatedWorkload } from '../answers/show-workload.js'
import { writeWithRollback } from '../../domain/drafts/write-with-rollback.js'
import { quote } from '../../domain/text/escape-text.js'
import { ToolError } from '../../schemas/errors.js'
import { DifferencesOut } from '../../schemas/update-output.js'
import { LabelOut } from '../../schemas/label-reference.js'

/** The answer of create-workload: the new workload, or the plan of a dry run. */
const WorkloadCreated = Type.Object({
  message: Type.String({ description: 'What happened' }),
  workload: Type.Optional(WorkloadOut),
  labels_created: Type.Optional(Type.Array(LabelOut, { description: 'Labels that did not exist before' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  differences: DifferencesOut,
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-workload',
  summary: 'Create an unmanaged workload and missing labels, at once.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: NewName('Also its host name'),
      ip_addresses: Type.Array(Type.String(), {
        minItems: 1,
        maxItems: 100,
        description: 'IPv4 or IPv6',
        listed: '',
      }),
      labels: WorkloadLabelsInput('One per key'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output: WorkloadCreated,
  example: { name: 'legacy-db-01', ip_addresses: ['10.200.0.15'], labels: ['app=payments'] },
  async handler(
    { name, ip_addresses: addresses, labels: asked = [], dry_run: dryRun },
    ctx,
  ): Promise<Static<typeof WorkloadCreated>> {
    refuseHidden({ name })
    checkAddresses(addresses)
    const plan = planWorkloadLabels(await loadLabels(ctx.pce, ctx, 'fresh'), asked)
    const wanted = { names: [name], addresses }
    const warnings = [
      ...warnOfSentences({ name }),
      ...(await warnOfNamesakes(ctx.pce, wanted, ctx.signal)),
      ...plan.warnings,
    ]
    const interfaces = addresses.map((address, index) => ({ name: `eth${index}`, address }))
    const toBody = (hrefs: string[]) => ({ name, hostname: name, interfaces, labels: hrefs.map((href) => ({ href })) })
    const shownWarnings = warnings.length > 0 ? { warnings } : {}
    if (dryRun === true) {
      const path = `/orgs/${ctx.pce.orgId}/workloads`
      const create = { method: 'POST', path, body: toBody(plannedLabels(plan).map(({ href }) => href)) }
      const requests = [...labelRequests(ctx.pce.orgId, plan), create]
      return { dry_run: true, message: `Would create the workload ${quote(name)}.`, requests, ...shownWarnings }
    }

    const created: LabelOutput[] = []
    // The call waits for its turn before it creates labels. A waiting call should still end when its client
    // disconnects, but a call that has written something does not.
    const { workload, body, labels } = await ctx.inOrder(orderOf('workloads', name), async ({ others, note }) => {
      refuseCreatedMeanwhile(name, others)
      return writeWithRollback(ctx.pce, {
        describe: (left) => ({ labels_created: created.filter((label) => left.includes(label.href)) }),
        write: async (written) => {
          const labels = await writePlannedLabels(ctx, plan, written, created)
          const body = toBody(labels.map(({ href }) => href))
          ctx.signal.throwIfAborted()
          const workload = await ctx.pce.workloads
            .create(body)
            .catch((error: unknown) => findCreated(error, ctx.pce, 'workloads', name, ctx.signal))
          note(workload.href)
          return { body, labels, workload }
        },
      })
    })
    const read = await readBack(workload, () => ctx.pce.workloads.getByReference(workload.href))
    warnings.push(...(read.warnings.warnings ?? []))
    return {
      message: `Created the unmanaged workload ${quote(name)}.`,
      workload: showCreatedWorkload(read.stored, labels),
      labels_created: created,
      ...listDifferences(findDifferences(body, read.stored)),
      ...(warnings.length > 0 && { warnings }),
    }
  },
})

/**
 * Throws if another call has just created a workload with this name, so that two equal concurrent calls create only
 * one.
 */
function refuseCreatedMeanwhile(name: string, others: ReadonlySet<string>): void {
  const [href] = others
  if (href === undefined) return
  const text = `Another call created a workload named ${quote(name)} during this one. Nothing was written.`
  throw new ToolError('already_exists', text, { reason: 'changed_meanwhile', existing_workload: { href, name } })
}

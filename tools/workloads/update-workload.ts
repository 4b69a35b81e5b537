import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { ByNameOrHost } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelOut } from '../../schemas/label-reference.js'
import { NewName } from '../../schemas/new-name.js'
import { ENFORCEMENT_MODES, isMode } from '../../schemas/pce/enforcement-modes.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { EffectOut, UpdateOutput } from '../../schemas/update-output.js'
import { WorkloadLabelsInput, WorkloadOut } from '../../schemas/workload-shapes.js'
import { defineTool } from '../define.js'
import { checkAddresses, sameAddress } from '../../domain/inventory/parse-addresses.js'
import {
  labelRequests,
  planWorkloadLabels,
  plannedLabels,
  writePlannedLabels,
} from '../../domain/drafts/create-labels.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { loadLabels, type LabelOutput } from '../../domain/inventory/labels.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { warnOfNamesakes, type WantedIdentity } from '../../domain/drafts/warn-of-namesakes.js'
import { showModeChange } from '../answers/readiness/show-mode-change.js'
import { showWrittenWorkload, writeWorkloadLabels } from '../answers/show-workload.js'
import { judgeModeChange } from '../../domain/readiness/judge-mode-change.js'
import type { FlowEnd } from '../../domain/traffic/flow-ends.js'
import { isManaged, modeOf } from '../../domain/inventory/workloads.js'
import { orderOfLabels } from '../../domain/drafts/order-of.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { writeWithRollback } from '../../domain/drafts/write-with-rollback.js'

const output = Type.Object({
  ...UpdateOutput,
  workload: Type.Optional(WorkloadOut),
  effect: EffectOut,
  labels_created: Type.Optional(Type.Array(LabelOut, { description: 'Labels that did not exist before' })),
})

export default defineTool({
  name: 'update-workload',
  summary: 'Change a workload, at once. A new mode can cut traffic.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run that sets a mode is heavy, because it reads the traffic that the mode would cut.
  isHeavy: ({ dry_run: dryRun, enforcement_mode: mode }) => dryRun === true && mode !== undefined,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByNameOrHost,
      new_name: Type.Optional(NewName('Rename')),
      description: Type.Optional(Type.String({ description: 'Text' })),
      hostname: Type.Optional(NewName('If unmanaged')),
      enforcement_mode: Type.Optional(
        StringEnum(ENFORCEMENT_MODES, { description: 'full blocks what no rule allows' }),
      ),
      ip_addresses: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 100,
          description: 'All; if unmanaged',
        }),
      ),
      labels: WorkloadLabelsInput('All, one per key; [] clears; new ones created'),
      ...CompleteInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'legacy-db-01', description: 'Moved to the new rack' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, new_name: newName, description, hostname, dry_run: dryRun } = args
    const { enforcement_mode: mode, ip_addresses: addresses, labels: asked } = args
    refuseHidden({ ...(newName !== undefined && { new_name: newName }), ...(hostname !== undefined && { hostname }) })
    if (addresses !== undefined) checkAddresses(addresses)
    const current = await findObject(pce, 'workloads', { href, name }, signal)
    const offered = ['new_name', 'description', 'hostname', 'enforcement_mode', 'ip_addresses', 'labels']
    requireFields({ newName, description, hostname, mode, addresses, asked }, offered)
    if (isManaged(current)) refuseReported({ hostname, ip_addresses: addresses })
    const index = await loadLabels(pce, ctx, 'fresh')
    const labels = asked === undefined ? undefined : planWorkloadLabels(index, asked)
    const toBody = (hrefs: readonly string[]) => ({
      name: newName,
      description,
      hostname,
      enforcement_mode: mode,
      interfaces: addresses?.map((address, at) => ({ name: `eth${at}`, address })),
      labels: labels && hrefs.map((label) => ({ href: label })),
    })
    const plan = {
      what: describeObject('workloads', current),
      current,
      read: (changed: string) => pce.workloads.getByReference(changed),
      order: orderOfLabels(current.href),
      warnings: [
        ...warnOfSentences({ new_name: newName, hostname }),
        ...(await warnOfNamesakes(pce, changedIdentity(current, args), signal, current.href)),
        ...(labels?.warnings ?? []),
        ...warnOfMode(current, mode),
      ],
    }
    const known = (current.labels ?? []).flatMap((label) => index.get(label.href) ?? [])
    const was = ({ previous }: { previous?: Record<string, unknown> }) =>
      previous?.labels === undefined
        ? {}
        : { previous: { ...previous, labels: writeWorkloadLabels(current.labels, known) } }
    if (dryRun === true) {
      const body = toBody(labels === undefined ? [] : plannedLabels(labels).map((label) => label.href))
      const answer = await updateObject(ctx, { ...plan, body }, true)
      const creations = labels === undefined ? [] : labelRequests(pce.orgId, labels)
      const requests = [...creations, ...(answer.requests ?? [])]
      const planned = labels === undefined ? known : plannedLabels(labels)
      const shown = {
        ...withoutStored(answer),
        ...was(answer),
        requests,
        workload: showWrittenWorkload(answer.stored, planned),
      }
      const from = isMode(current.enforcement_mode) ? current.enforcement_mode : null
      if (mode === undefined || mode === from || !isManaged(current) || ctx.isBindingOnly === true) return shown
      const { href: own } = current
      const ends = {
        filter: { include: [[{ workload: { href: own } }]], exclude: [] },
        isOwn: ({ workload }: FlowEnd) => workload === own,
      }
      const change = { from, to: mode }
      const asKnown = { ...change, ...(modeOf(current) === 'unknown' && { isUntold: true as const }) }
      const traffic = await judgeModeChange({ ...ctx, signal: ctx.beforeWriting }, ends, asKnown, args.complete)
      const { effect, warnings } = showModeChange(change, traffic)
      return { ...shown, effect, warnings: [...warnings, ...(shown.warnings ?? [])] }
    }
    const created: LabelOutput[] = []
    const write = () =>
      writeWithRollback(pce, {
        describe: (left) => ({ labels_created: created.filter((label) => left.includes(label.href)) }),
        write: async (written) => {
          const attached = labels === undefined ? [] : await writePlannedLabels(ctx, labels, written, created)
          const body = toBody(attached.map((label) => label.href))
          return { attached, answer: await updateObject(ctx, { ...plan, body }, false) }
        },
      })
    // The call waits for its turn before it creates labels. A waiting call should still end when its client
    // disconnects, but a call that has written something does not.
    const { answer, attached } = await (labels === undefined ? write() : ctx.inOrder(plan.order, write))
    return {
      ...withoutStored(answer),
      ...was(answer),
      workload: showWrittenWorkload(answer.stored, [...known, ...attached]),
      ...(created.length > 0 && { labels_created: created }),
    }
  },
})

/** Returns those names and addresses in the update that the workload does not have yet. */
function changedIdentity(
  { name, hostname, interfaces }: Workload,
  asked: { new_name?: string; hostname?: string; ip_addresses?: string[] },
): WantedIdentity {
  const known = new Set([name, hostname])
  const own = (interfaces ?? []).flatMap(({ address }) => address ?? [])
  return {
    names: [asked.new_name, asked.hostname].filter((text) => text !== undefined && !known.has(text)),
    addresses: (asked.ip_addresses ?? []).filter((address) => !own.some((one) => sameAddress(one, address))),
  }
}

/** Warns that an enforcement mode has no effect without a VEN. The PCE may store or refuse the mode. */
function warnOfMode(workload: Workload, mode: string | undefined): string[] {
  return mode === undefined || isManaged(workload) ? [] : ['It has no VEN, so its enforcement mode has no effect.']
}

/**
 * Throws if the arguments contain fields that the workload's VEN reports. They cannot be written (P16), and the PCE
 * would refuse them without saying why.
 */
function refuseReported(fields: Record<string, unknown>): void {
  const given = Object.keys(fields).filter((field) => fields[field] !== undefined)
  if (given.length === 0) return
  const text = `The workload is managed: its VEN reports ${given.join(' and ')}, so they cannot be set.`
  throw new ToolError('invalid_argument', text, { argument: given[0], managed: true })
}

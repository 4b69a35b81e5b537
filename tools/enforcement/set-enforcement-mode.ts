import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { DRY_RUN_BINDING, DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { ENFORCEMENT_MODES, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { WorkloadChoiceInput } from '../../schemas/workload-choice.js'
import type { ToolContext } from '../../domain/call.js'
import {
  chooseWorkloads,
  digestModes,
  type ChosenWorkloads,
  type WorkloadChoice,
} from '../../domain/enforcement/choose-workloads.js'
import { judgeEnforcement } from '../../domain/enforcement/judge-enforcement.js'
import { bodyOf, planRequests, setModes } from '../../domain/enforcement/set-modes.js'
import { requireApproved } from '../../domain/policy/require-approved.js'
import { MODE_CHANGE_DAYS } from '../../domain/readiness/judge-mode-change.js'
import { quote } from '../../domain/text/escape-text.js'
import { chooseWindow, windowInput, type TrafficWindow } from '../../domain/traffic/traffic-window.js'
import type { Enforcement } from '../answers/enforcement/describe-enforcement.js'
import { ModesSetOutput, previewModes, showModesSet, showPlannedModes } from '../answers/enforcement/show-modes-set.js'
import { defineTool } from '../define.js'

/** Maximum number of unmanaged workloads named in an error. */
const MAX_LISTED = 50

const input = Type.Object(
  {
    ...WorkloadChoiceInput,
    enforcement_mode: StringEnum(ENFORCEMENT_MODES, { description: 'The mode to set', listed: '' }),
    ...windowInput(MODE_CHANGE_DAYS),
    ...CompleteInput,
    ...DryRunInput,
  },
  { additionalProperties: false },
)
type Arguments = Static<typeof input>

export default defineTool({
  name: 'set-enforcement-mode',
  summary: 'Set the enforcement mode of an application, or of workloads, at once.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'explain',
  idempotent: true,
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  // The preview and the dry run are heavy, because they read the traffic that the new mode would cut or open.
  isHeavy: true,
  pceRequests: {
    atMost: 8,
    and: 'one for each further 1,000 workloads and two for each further 500, up to three for each named workload, and in a preview or a dry run what preview-enforcement-change sends',
  },
  input,
  output: ModesSetOutput,
  example: { app_name: 'payments', env_name: 'prod', enforcement_mode: 'full' },
  async boundTo(args, ctx) {
    return args.dry_run === true ? DRY_RUN_BINDING : digestModes(await choose(ctx, args))
  },
  async preview(args, ctx) {
    const isDryRun = args.dry_run === true
    const { chosen, ...rest } = await judge(ctx, args)
    const boundTo = isDryRun ? DRY_RUN_BINDING : digestModes(chosen)
    return { ...previewModes({ chosen, ...rest }, isDryRun), boundTo }
  },
  async plan({ enforcement_mode: to, ...choice }, ctx) {
    const path = `/orgs/${ctx.pce.orgId}/workloads/bulk_update`
    return planRequests(await choose(ctx, choice), to).map((chunk) => ({
      method: 'PUT',
      path,
      body: bodyOf(chunk, to),
    }))
  },
  async handler(args, ctx): Promise<Static<typeof ModesSetOutput>> {
    const { enforcement_mode: to } = args
    if (args.dry_run === true) return showPlannedModes(ctx, await judge(ctx, args))
    // Only a preview or a dry run uses the time window. A real call checks it nevertheless, so that an invalid window
    // is always rejected.
    chooseWindow(ctx.now(), args, MODE_CHANGE_DAYS)
    // The workloads are read again, directly before the first write.
    const chosen = await choose(ctx, args)
    const text = 'The workloads, or their modes, have changed since the call was confirmed. Nothing was written.'
    requireApproved(ctx.approved, digestModes(chosen), text)
    return showModesSet(ctx, { chosen, to }, await setModes(ctx, chosen, to))
  },
})

/** Returns the context for all reads before the first write. Cancelling the call ends these reads. */
const reading = (ctx: ToolContext<true>): ToolContext<true> => ({ ...ctx, signal: ctx.beforeWriting })

async function choose(ctx: ToolContext<true>, choice: WorkloadChoice): Promise<ChosenWorkloads> {
  const chosen = await chooseWorkloads(reading(ctx), choice)
  if (chosen.application === null) refuseUnmanaged(chosen)
  return chosen
}

async function judge(ctx: ToolContext<true>, args: Arguments): Promise<Enforcement> {
  const { enforcement_mode: to, complete } = args
  const { window, period } = chooseWindow(ctx.now(), args, MODE_CHANGE_DAYS)
  const chosen = await choose(ctx, args)
  const traffic = await judgeChange(ctx, chosen, to, { window, complete })
  return { chosen, to, period, traffic }
}

/** Determines the effect on observed traffic. If no workload changes its mode, no traffic is read. */
function judgeChange(
  ctx: ToolContext<true>,
  chosen: ChosenWorkloads,
  to: EnforcementMode,
  how: { window: TrafficWindow; complete: boolean | undefined },
): Promise<Enforcement['traffic']> {
  if (planRequests(chosen, to).length === 0) return Promise.resolve('No mode changes, so no traffic was read.')
  return judgeEnforcement(reading(ctx), chosen, to, how)
}

/**
 * Throws if the caller named unmanaged workloads individually, because the caller then expects their modes to change.
 * If the caller chose an application, its unmanaged workloads are only skipped and counted.
 */
function refuseUnmanaged({ workloads }: ChosenWorkloads): void {
  const unmanaged = workloads.filter(({ isManaged }) => !isManaged)
  if (unmanaged.length === 0) return
  const names = unmanaged.slice(0, MAX_LISTED).map(({ name }) => quote(name))
  const text = `No VEN runs on ${names.join(', ')}${unmanaged.length > names.length ? ' and others' : ''}, so there is no mode to set. Nothing was written.`
  const details = { argument: 'workloads', unmanaged: unmanaged.slice(0, MAX_LISTED).map(({ href }) => href) }
  throw new ToolError('invalid_argument', text, details, { hint: 'Leave them out.' })
}

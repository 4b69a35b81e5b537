import { Type, type Static } from '@sinclair/typebox'
import { DRY_RUN_BINDING, DryRunInput, type PlannedRequest } from '../../../schemas/dry-run.js'
import { MOST_NAMED_WORKLOADS } from '../../../schemas/workload-choice.js'
import { LabelsFilter } from '../../../schemas/label-reference.js'
import type { Preview, ToolContext } from '../../../domain/call.js'
import { requireApproved } from '../../../domain/policy/require-approved.js'
import { MODE_CHANGE_DAYS } from '../../../domain/readiness/judge-mode-change.js'
import { chooseWindow, type WindowChoice } from '../../../domain/traffic/traffic-window.js'
import { actOnVens, planVenRequests, toActOn, type VenAction } from '../../../domain/ven-actions/act-on-vens.js'
import {
  chooseVens,
  digestVens,
  requireBound,
  type ChosenVen,
  type VenChoice,
} from '../../../domain/ven-actions/choose-vens.js'
import { changesEnforcement, judgeVenAction } from '../../../domain/ven-actions/judge-action.js'
import { previewAction, showActedOn, showPlanned, type PlannedAction, type VenActionOutput } from './show-ven-action.js'

/** Creates the arguments that select VENs. `most` is the maximum number of VENs on which a call acts. */
export const venChoiceInput = (most: number) => ({
  workloads: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      maxItems: MOST_NAMED_WORKLOADS,
      description: 'Whose VENs: hrefs (of VENs too), or exact names or host names, if unique',
      listed: 'Names or hrefs',
    }),
  ),
  selection: Type.Optional(
    Type.Object(
      {
        online: Type.Optional(Type.Boolean({ description: 'VEN heartbeat', listed: '' })),
        labels: LabelsFilter,
      },
      { additionalProperties: false, description: 'Or all that match' },
    ),
  ),
  max_matches: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: most,
      description: 'To write: how many the selection may match',
      listed: 'To write: most matches',
    }),
  ),
  ...DryRunInput,
})

type Arguments = VenChoice & WindowChoice & { dry_run?: boolean }
type Ctx = ToolContext<true>

/** A requested action on VENs: the action, the arguments that select the VENs, and the maximum number of VENs. */
export interface VenCall {
  action: VenAction
  args: Arguments
  most: number
}

/** Carries out a call, or shows what it would do if it is a dry run. */
export async function carryOut(ctx: Ctx, call: VenCall): Promise<Static<typeof VenActionOutput>> {
  const { action, args, most } = call
  if (args.dry_run === true) {
    const planned = await plan(ctx, call)
    const matched = planned.vens.length
    const isBound = args.selection !== undefined && toActOn(action, planned.vens).length > 0
    return showPlanned(ctx, planned, isBound ? `To write, repeat it with max_matches ${matched}.` : '')
  }
  // Only a preview or a dry run uses the window; a real run checks it, so that an invalid one is always rejected.
  chooseWindow(ctx.now(), args, MODE_CHANGE_DAYS)
  // The VENs are read again directly before the first write, because they may have changed since the call was
  // confirmed.
  const vens = await chooseVens(ctx, args, most)
  requireBound(args, vens.length)
  const text = 'The VENs, or their state, have changed since the call was confirmed. Nothing was written.'
  requireApproved(ctx.approved, digestVens(action, vens), text)
  return showActedOn(ctx, { action, vens }, await actOnVens(ctx, action, vens))
}

/** Shows the person who confirms the call what it would do. */
export async function preview(ctx: Ctx, call: VenCall): Promise<Preview> {
  const isDryRun = call.args.dry_run === true
  const planned = await plan(ctx, call)
  const boundTo = isDryRun ? DRY_RUN_BINDING : digestVens(call.action, planned.vens)
  return { ...previewAction(planned, isDryRun), boundTo }
}

/** Returns the value that `boundTo` would have in a preview made now. */
export async function boundTo(ctx: Ctx, call: VenCall): Promise<string> {
  return call.args.dry_run === true ? DRY_RUN_BINDING : digestVens(call.action, await choose(ctx, call))
}

/** Returns the requests that a real call would send. */
export async function requestsOf(ctx: Ctx, call: VenCall): Promise<PlannedRequest[]> {
  return planVenRequests(call.action, await choose(ctx, call), ctx.pce.orgId)
}

async function choose(ctx: Ctx, { args, most }: VenCall): Promise<ChosenVen[]> {
  const vens = await chooseVens(ctx, args, most)
  if (args.dry_run !== true) requireBound(args, vens.length)
  return vens
}

async function plan(ctx: Ctx, call: VenCall): Promise<PlannedAction> {
  const { action, args } = call
  const { window, period } = chooseWindow(ctx.now(), args, MODE_CHANGE_DAYS)
  const vens = await choose(ctx, call)
  const acted = toActOn(action, vens)
  const isJudged = changesEnforcement(action) && acted.length > 0
  const reading = { ...ctx, signal: ctx.beforeWriting }
  return { action, vens, period, traffic: isJudged ? await judgeVenAction(reading, action, acted, { window }) : null }
}

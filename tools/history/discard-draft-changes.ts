import { Type, type Static } from '@sinclair/typebox'
import type { TypedPendingChange } from '../../pce-client/index.js'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { DRY_RUN_BINDING, DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { PendingOut, PolicyChangeOut, type JudgedChange } from '../../schemas/policy-changes.js'
import { defineTool } from '../define.js'
import type { Preview, ToolContext } from '../../domain/call.js'
import {
  type Discard,
  type Discarded,
  MOST_DESCRIBED,
  chooseDiscard,
  describeLosses,
  discardChanges,
  findStrandedDeletions,
} from '../../domain/history/discard-changes.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { bindChanges } from '../../domain/policy/bind-changes.js'
import {
  chosenNow,
  digestChanges,
  refuseMoved,
  refuseUnapproved,
  showPending,
  toChangeSubset,
  updateTypeOf,
} from '../../domain/policy/choose-changes.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { showDiscardForApproval } from '../answers/approval/show-discards.js'
import { warnOfUnreadNames } from '../answers/approval/show-referred.js'
import { answerBudget, countRowsThatFit, jsonBytes, rowsWithin } from '../answers/byte-budget.js'
import { describeCounts, namesOf } from '../answers/show-provisioning.js'
import { trimAmongOthers } from '../answers/trim-change.js'

/** Maximum size of one list in a preview, in bytes. */
const LIST_BYTES = 3_000

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  status: Type.Optional(Type.String()),
  discarded_hrefs: Type.Optional(Type.Array(Type.String(), { description: 'What was discarded, all of it' })),
  verified: Type.Optional(Type.Boolean({ description: 'Read back, none of it is pending any more' })),
  losses: Type.Optional(
    Type.Array(Type.Object({ ...PolicyChangeOut.properties, update_type: PendingOut.properties.update_type }), {
      description:
        'Field by field: draft is lost, active stays. The effect is what the change would have had once provisioned',
    }),
  ),
  ...AssumesOut,
  losses_total: Type.Optional(Type.Integer({ description: 'All of them, shown or not' })),
  dependencies_included: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        type: Type.String({ description: 'Object type' }),
        required_by: Type.Array(Type.String(), { description: 'What it needs, and what is discarded' }),
      }),
      { description: 'Not named, but left without something that is discarded' },
    ),
  ),
  still_pending: Type.Optional(Type.Array(PendingOut, { description: 'Chosen, and pending nevertheless' })),
  remaining_total: Type.Optional(Type.Integer({ description: 'Pending changes afterwards, read back' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'discard-draft-changes',
  summary: 'Discard pending draft changes: new objects are gone for good, others go back to what is in force.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'history',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 90,
    and: 'two for each change that is described (250 at most) and for each workload that their rules name (50 at most), four for each rule set where the release keeps deny rules apart, and where it is confirmed one for each workload and user group that they name (100 at most), and the same once more to redeem it',
  },
  input: Type.Object(
    {
      hrefs: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 1000,
          description: 'Draft objects; a rule is its rule set',
        }),
      ),
      all: Type.Optional(
        Type.Boolean({
          description: 'true: every pending change, whoever made it',
          listed: 'Every one, whoever made it',
        }),
      ),
      include_dependencies: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Also what would be left without them; else refused',
          listed: 'Also what needs them; else refused',
        }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { all: true, dry_run: true },
  async boundTo(args, ctx) {
    return args.dry_run === true ? DRY_RUN_BINDING : (await bind(ctx, await chooseDiscard(args, ctx))).digest
  },
  async preview(args, ctx) {
    const discard = await chooseDiscard(args, ctx)
    const isDryRun = args.dry_run === true
    const { digest, read, named } = await bind(ctx, discard)
    const losses = await describeLosses(ctx, discard.chosen, read)
    const warnings = [...warnOfUnreadNames(named), ...warnOf(discard, losses)]
    return { ...previewDiscard(discard, losses, warnings, isDryRun), boundTo: isDryRun ? DRY_RUN_BINDING : digest }
  },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { dry_run: dryRun, all } = args
    const reading = { ...ctx, signal: ctx.beforeWriting }
    const discard = await chooseDiscard(args, reading)
    const { chosen, included } = discard
    const bound = ctx.approved === undefined || dryRun === true ? null : await bind(reading, discard)
    if (bound !== null) refuseUnapproved(ctx.approved, bound.digest, 'discarded')
    if (chosen.length === 0)
      return { message: 'Nothing is pending; draft and active policy are the same.', status: 'no_changes' }
    const losses = await describeLosses(reading, chosen, bound?.read)
    const hrefs = chosen.map(({ href }) => toDraftHref(href))
    const warnings = warnOf(discard, losses)
    const common = {
      losses_total: chosen.length,
      ...showAssumedBy(losses),
      ...(included.length > 0 && { dependencies_included: included }),
    }
    if (dryRun === true) {
      const body = { change_subset: toChangeSubset(chosen) }
      const request = { method: 'PUT', path: `/orgs/${ctx.pce.orgId}/sec_policy/delete`, body }
      const message = `Would discard ${countOf(hrefs.length, 'pending change')}: ${describeCounts(chosen)}. What is enforced stays as it is, so that observed traffic was not looked at.`
      return fit({ dry_run: true, message, requests: [request], ...common }, discard, losses, warnings, ctx)
    }
    // Describing the changes took time, so the pending changes are read and checked again directly before the write.
    const pending = await ctx.pce.getPendingPolicyChanges({ signal: reading.signal })
    const now = chosenNow(chosen, pending, all === true)
    if (digestChanges(chosen) !== digestChanges(now)) refuseUnapproved(ctx.approved, '', 'discarded')
    refuseMoved(chosen, chosenNow(chosen, pending, false))
    ctx.beforeWriting.throwIfAborted()
    const done = await discardChanges(ctx.pce, discard)
    const said = [...warnings, ...warnOfOutcome(done)]
    return fit({ ...describeOutcome(chosen, done), ...common }, discard, losses, said, ctx)
  },
})

const bind = (ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>, { chosen }: Discard) =>
  bindChanges(ctx, chosen, MOST_DESCRIBED)

function describeOutcome(chosen: readonly TypedPendingChange[], { still, pending }: Discarded) {
  const kept = new Set(still.map(({ href }) => toDraftHref(href)))
  const gone = chosen.map(({ href }) => toDraftHref(href)).filter((href) => !kept.has(href))
  const others = (pending?.length ?? 0) - still.length
  const left = [
    ...(still.length > 0 ? [`${still.length} of these still pending`] : []),
    ...(others > 0 ? [`${countOf(others, 'other')} still pending`] : []),
  ]
  const message =
    pending === undefined
      ? `The PCE accepted discarding ${countOf(chosen.length, 'pending change')}; whether they are gone could not be read back.`
      : `Discarded ${countOf(gone.length, 'pending change')}${still.length === 0 ? '' : ` of ${chosen.length}`}; ${left.join(', ') || 'nothing is pending any more'}.`
  return {
    message,
    discarded_hrefs: gone,
    verified: pending !== undefined && still.length === 0,
    ...(still.length > 0 && { still_pending: still.map(showPending) }),
    ...(pending !== undefined && { remaining_total: pending.length }),
  }
}

const nameIt = ({ name, href }: TypedPendingChange) => (name === undefined || name === '' ? href : quote(name))

function warnOfOutcome({ still, moved, unread }: Discarded): string[] {
  return [
    ...(still.length > 0
      ? [`The PCE accepted the call; still pending nevertheless: ${countOf(still.length, 'change')}.`]
      : []),
    ...(moved.length > 0
      ? [
          `Meanwhile, not named by this call, these pending changes went or were edited: ${moved.slice(0, 5).map(nameIt).join(', ')}${moved.length > 5 ? ` and ${moved.length - 5} more` : ''}.`,
        ]
      : []),
    ...(unread === undefined ? [] : [`Read back failed: ${unread}`]),
  ]
}

/**
 * Returns warnings about rule sets that are discarded whole though only a rule was named, about changes that were not
 * read field by field, and about deletions that stay pending although discarding brings back objects that use the
 * deleted ones.
 */
function warnOf({ chosen, rest, throughRules }: Discard, losses: readonly JudgedChange[]): string[] {
  const whole = chosen
    .filter(({ href }) => throughRules.includes(toDraftHref(href)))
    .map((set) => {
      const rules = losses.find(({ href }) => toDraftHref(href) === toDraftHref(set.href))?.rules
      const going = rules === undefined ? 'all its pending rules' : countOf(rules.length, 'pending rule')
      return `A rule of ${nameIt(set)} was named, but a rule set is discarded whole: ${going}, and what else is pending of it.`
    })
  const stranded = findStrandedDeletions(losses, rest).map(
    ({ deletion, usedBy }) =>
      `The deletion of ${nameIt(deletion)} stays pending, though ${usedBy.slice(0, 3).map(quote).join(', ')} would use it again: discard it too.`,
  )
  const undescribed = chosen.length - losses.length
  return [
    ...whole,
    ...stranded,
    ...(undescribed > 0
      ? [`Only the first ${MOST_DESCRIBED} changes were read field by field; ${undescribed} were not.`]
      : []),
  ]
}

function previewDiscard(
  discard: Discard,
  losses: readonly JudgedChange[],
  warnings: readonly string[],
  isDryRun: boolean,
): Omit<Preview, 'boundTo'> {
  const { chosen, included, rest } = discard
  const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
  if (chosen.length === 0) return { summary: `Nothing is pending, so the call would change nothing.${dry}` }
  const rows = chosen.map(showPending)
  const shown = rowsWithin(rows, LIST_BYTES)
  const along =
    included.length === 0 ? '' : ` Not named in the call, but left without what is: ${included.length} of these.`
  return {
    summary: `Discards ${countOf(chosen.length, 'pending change')} from the draft: ${describeCounts(chosen)}. Lost: ${namesOf(chosen)}.${along} What was never provisioned is gone for good. Nothing changes for what VENs enforce. ${rest.length} ${rest.length === 1 ? 'other stays' : 'others stay'} pending.${warnings.map((text) => ` ${text}`).join('')}${dry}`,
    details: {
      changes_total: chosen.length,
      changes: shown,
      ...(shown.length < rows.length && { changes_left_out: rows.length - shown.length }),
      ...(included.length > 0 && {
        dependencies_total: included.length,
        dependencies_included: rowsWithin(included, LIST_BYTES),
      }),
    },
    page: showDiscardForApproval({
      changes: chosen,
      losses: new Map(losses.map((loss) => [loss.href, loss])),
      included,
      rest,
      warnings,
    }),
  }
}

/**
 * Returns as many descriptions of losses as fit next to the rest of the answer. The list of hrefs is never shortened.
 */
function fit<T extends object>(
  envelope: T,
  { chosen }: Discard,
  losses: readonly JudgedChange[],
  warnings: readonly string[],
  { limits }: Pick<ToolContext, 'limits'>,
) {
  const room = answerBudget(limits) - jsonBytes(envelope)
  const kinds = new Map(chosen.map((change) => [change.href, updateTypeOf(change)]))
  const rows = losses.map((loss) => {
    const updateType = kinds.get(loss.href)
    const trimmed = trimAmongOthers(loss, room)
    return { ...trimmed, ...(updateType != null && { update_type: updateType }) }
  })
  const note = (kept: number) => `losses shows ${kept} of ${losses.length}; the list of hrefs is complete.`
  const kept = countRowsThatFit(rows, [envelope, { losses: [] }, warnings, note(rows.length)], limits)
  const said = kept < rows.length ? [...warnings, note(kept)] : warnings
  return { ...envelope, losses: rows.slice(0, kept), ...(said.length > 0 && { warnings: [...said] }) }
}

import { Type, type Static } from '@sinclair/typebox'
import type { TypedPendingChange } from '../../pce-client/index.js'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { DRY_RUN_BINDING, DryRunInput, DryRunOutput, type PlannedRequest } from '../../schemas/dry-run.js'
import { PendingOut, type JudgedChange, VersionChangeOut } from '../../schemas/policy-changes.js'
import { defineTool } from '../define.js'
import type { Preview, ToolContext } from '../../domain/call.js'
import { observeForPage, type PageEvidence } from '../../domain/history/observe-for-page.js'
import {
  type Restored,
  type RestorePlan,
  describePlan,
  findGround,
  planRestore,
  requireSameGround,
  restoreVersion,
} from '../../domain/history/restore-version.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { loadAuthorNames } from '../../domain/inventory/reference-names.js'
import { showPending, toChangeSubset } from '../../domain/policy/choose-changes.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { warnOfUnreadNames } from '../answers/approval/show-referred.js'
import { assumedByEvidence, showEvidenceOnPage, warnOfEvidence } from '../answers/approval/show-page-evidence.js'
import { showDiscards } from '../answers/approval/show-discards.js'
import { showChangesForApproval } from '../answers/approval/show-policy-changes.js'
import { answerBudget, countRowsThatFit, jsonBytes, rowsWithin } from '../answers/byte-budget.js'
import { describeEffects, explainWords, worstFirst } from '../answers/explain-changes.js'
import { describeCounts, namesOf, orderForReview } from '../answers/show-provisioning.js'
import { VersionOut, showVersion, showVersionChange } from '../answers/show-versions.js'
import { trimAmongOthers } from '../answers/trim-change.js'

/** Maximum size of one list in a preview, in bytes. */
const LIST_BYTES = 3_000
/** Maximum number of objects that an answer names as still different from the restored version. */
const MOST_NAMED = 20

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  status: Type.Optional(Type.String()),
  version: Type.Partial(VersionOut, { description: 'The version that was asked for' }),
  in_force: Type.Optional(Type.Integer({ description: 'The version that VENs enforce, before and after' })),
  summary: Type.Optional(
    Type.String({ description: 'What provisioning the draft would then do to permitted traffic' }),
  ),
  meanings: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Of the words for effects and risks' }),
  ),
  ...AssumesOut,
  changes: Type.Optional(
    Type.Array(Type.Partial(VersionChangeOut), {
      description: 'The draft then, against what is in force (before: in force, after: the version); the worst first',
    }),
  ),
  changes_total: Type.Optional(Type.Integer({ description: 'All of them, shown or not' })),
  dropped: Type.Optional(Type.Array(PendingOut, { description: 'Pending changes that are lost' })),
  pending_total: Type.Optional(Type.Integer({ description: 'Pending changes afterwards, read back' })),
  verified: Type.Optional(
    Type.Boolean({ description: 'Read back, the draft is the version; false also where it could not be read' }),
  ),
  differing: Type.Optional(
    Type.Array(PendingOut, { description: 'Read back, what is not as in the version, the first ones' }),
  ),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'restore-policy-version',
  summary: 'Make the draft what a policy version was.',
  effect: 'destroy',
  scope: 'everything',
  toolset: 'history',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 62,
    and: 'two for each workload that changed rules name (50 at most), three for each rule set where the release keeps deny rules apart, in a preview for dropped changes what discard-draft-changes sends, and for an approval page one traffic query, with two for each workload in it that changed rules name (50 at most)',
  },
  input: Type.Object(
    {
      version: Type.Integer({ minimum: 1, description: 'The number of the version', listed: '' }),
      drop_pending: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 1000,
          description: 'Every pending change, by draft href: all are lost',
          listed: 'Every pending change, else refused: all are lost',
        }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { version: 1, dry_run: true },
  async boundTo(args, ctx) {
    return args.dry_run === true ? DRY_RUN_BINDING : (await findGround(ctx, args)).digest
  },
  async preview(args, ctx) {
    const plan = await planRestore(ctx, args)
    const described = await describePlan(ctx, plan)
    const { before: active, after: draft, objects } = plan.difference
    const changes = orderForReview(objects.map(({ change }) => change))
    const evidence = await observeForPage(ctx, changes, () => Promise.resolve({ active, draft }))
    return previewRestore(plan, { ...described, evidence }, args.dry_run === true)
  },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const reading = { ...ctx, signal: ctx.beforeWriting }
    const plan = await planRestore(reading, args)
    const { difference, dropped, version, inForce } = plan
    const names = await loadAuthorNames(ctx.pce, [version.facts?.created_by?.href ?? ''], reading.signal)
    const common = {
      version:
        version.facts === null
          ? { version: args.version }
          : showVersion(version.facts, inForce, (href) => names.get(href)),
      in_force: inForce,
    }
    const total = difference.objects.length
    if (total === 0 && dropped.length === 0) {
      const message = `The draft already is ${version.name}: nothing is pending, and it is what is in force.`
      return { message, status: 'no_changes', ...common }
    }
    const { changes } = await describePlan(reading, { ...plan, dropped: [] })
    const facts = {
      ...common,
      ...(changes.length > 0 && {
        summary: `${countOf(total, 'object')} would change once provisioned. ${describeEffects(changes)}`,
        meanings: explainWords(changes),
        ...showAssumedBy(changes),
      }),
      changes_total: total,
      ...(dropped.length > 0 && { dropped: dropped.map(showPending) }),
    }
    if (args.dry_run === true) {
      const message = `Would make the draft what ${version.name} was: ${countOf(total, 'pending change')}${dropping(dropped)}.`
      return fit(
        { dry_run: true, message, requests: requestsOf(ctx, plan), ...facts },
        plan,
        changes,
        [NOT_VERSIONED, NOT_OBSERVED],
        ctx,
      )
    }
    // This check that nothing has changed since the approval must come directly before the write.
    await requireSameGround(reading, args, plan, ctx.approved)
    ctx.beforeWriting.throwIfAborted()
    const done = await restoreVersion(ctx, plan)
    return fit({ ...describeOutcome(plan, done), ...facts }, plan, changes, [...warnOf(plan, done), NOT_VERSIONED], ctx)
  },
})

const NOT_VERSIONED = 'Labels, workloads and their modes have no versions: they stay as they are now.'

const NOT_OBSERVED =
  'What this cuts of observed traffic was not looked at. Restored and not yet provisioned, it shows in get-traffic-flows with decide_by draft and policy_decisions blocked; restore-policy-object with dry_run shows it beforehand for one object.'

const dropping = (dropped: readonly TypedPendingChange[]) =>
  dropped.length === 0 ? '' : `, after dropping what is pending now (${dropped.length})`

function requestsOf({ pce }: ToolContext<true>, { dropped, difference, version }: RestorePlan): PlannedRequest[] {
  const base = `/orgs/${pce.orgId}/sec_policy`
  const discard = { method: 'PUT', path: `${base}/delete`, body: { change_subset: toChangeSubset(dropped) } }
  const restore = { method: 'POST', path: `${base}/${version.selector}/restore`, body: {} }
  return [...(dropped.length > 0 ? [discard] : []), ...(difference.objects.length > 0 ? [restore] : [])]
}

function describeOutcome({ version, dropped }: RestorePlan, { pending, differing }: Restored) {
  const lost = dropped.length === 0 ? '' : ` ${countOf(dropped.length, 'pending change')} dropped before.`
  const isSame = differing?.objects.length === 0
  const what = isSame
    ? `The draft is what ${version.name} was`
    : `The PCE accepted restoring ${version.name} into the draft`
  const unverified = isSame
    ? ''
    : differing === undefined
      ? ' Whether the draft is that version could not be read back.'
      : ' Read back, the draft is not that version.'
  const count = pending === undefined ? '' : `: ${countOf(pending.length, 'pending change')}`
  return {
    message: `${what}${count}. Nothing was provisioned.${lost}${unverified}`,
    ...(pending !== undefined && { pending_total: pending.length }),
    verified: isSame,
    ...(differing !== undefined &&
      !isSame && { differing: differing.objects.slice(0, MOST_NAMED).map(({ change }) => showPending(change)) }),
  }
}

/** Warns if the draft, read back after the restore, differs from the plan or cannot be read. */
function warnOf({ difference, version }: RestorePlan, { pending, differing, unread }: Restored): string[] {
  const planned = new Set(difference.objects.map(({ change }) => change.href))
  const extra = (pending ?? []).filter(({ href }) => !planned.has(toDraftHref(href)))
  return [
    ...(unread === undefined ? [] : [`Read back failed: ${unread}`]),
    ...(differing !== undefined && differing.objects.length > 0
      ? [
          `${countOf(differing.objects.length, 'object')} in the draft differ from ${version.name}: compare before provisioning.`,
        ]
      : []),
    ...(extra.length > 0
      ? [
          `Pending, and not expected to be: ${namesOf(extra)}${extra.length > 5 ? ` and ${extra.length - 5} more` : ''}.`,
        ]
      : []),
  ]
}

function previewRestore(
  plan: RestorePlan,
  described: { changes: JudgedChange[]; losses: JudgedChange[]; evidence: PageEvidence | null },
  isDryRun: boolean,
): Preview {
  const { difference, dropped, named, version, inForce } = plan
  const { changes: judged, losses, evidence } = described
  const boundTo = isDryRun ? DRY_RUN_BINDING : plan.digest
  const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
  const changes = difference.objects.map(({ change }) => change)
  const byHref = new Map(judged.map((change) => [change.href, change]))
  const lost =
    dropped.length === 0
      ? ''
      : ` First drops ${countOf(dropped.length, 'pending change')}, lost for good: ${namesOf(dropped)}.`
  const what =
    changes.length === 0
      ? `${version.name} is what is in force: nothing else changes.`
      : `Makes the draft what ${version.name} was: ${describeCounts(changes)}. Affected: ${namesOf(changes)}. Once provisioned, which this call does not do: ${describeEffects(judged)}`
  const unread = warnOfUnreadNames(named)
  const rows = worstFirst(judged.map(({ fields: _fields, rules: _rules, assumes: _assumes, ...row }) => row))
  const shown = rowsWithin(rows, LIST_BYTES)
  const { workloads_affected: _none, ...changed } = showChangesForApproval({
    changes,
    included: [],
    judged: byHref,
    rest: [],
    impact: undefined,
  })
  const page = { ...changed, ...showEvidenceOnPage(changed.objects, evidence) }
  const facts = showAssumedBy([...judged, ...assumedByEvidence(evidence)])
  const discards = showDiscards(dropped, new Map(losses.map((loss) => [loss.href, loss])))
  return {
    summary: `${what}${lost}${unread.map((text) => ` ${text}`).join('')} ${NOT_VERSIONED}${dry}`,
    details: {
      version: version.selector,
      in_force: inForce,
      changes_total: changes.length,
      meanings: explainWords(judged),
      ...showAssumedBy(judged),
      changes: shown,
      ...(shown.length < rows.length && { changes_left_out: rows.length - shown.length }),
      ...(dropped.length > 0 && {
        dropped_total: dropped.length,
        dropped: rowsWithin(dropped.map(showPending), LIST_BYTES),
      }),
    },
    page: {
      ...page,
      ...(facts.assumes !== undefined && { facts }),
      warnings: [
        ...unread,
        ...(dropped.length > 0 ? [`First loses what is pending now: ${countOf(dropped.length, 'change')}.`] : []),
        ...warnOfEvidence(evidence),
        ...page.warnings,
        'Nothing is enforced by this: the draft still has to be provisioned.',
      ],
      objects: [...discards, ...page.objects],
      objects_total: discards.length + page.objects_total,
    },
    boundTo,
  }
}

/** Returns as many changes as the budget allows next to the rest of the answer. */
function fit<T extends object>(
  envelope: T,
  { difference }: RestorePlan,
  changes: readonly JudgedChange[],
  warnings: readonly string[],
  { limits }: Pick<ToolContext, 'limits'>,
) {
  const room = answerBudget(limits) - jsonBytes(envelope)
  const types = new Map(difference.objects.map(({ change }) => [change.href, change.update_type]))
  const rows = worstFirst(changes).map((change) =>
    showVersionChange(trimAmongOthers(change, room), types.get(change.href), 'today'),
  )
  const note = (kept: number) => `changes shows ${kept} of ${rows.length}.`
  const kept = countRowsThatFit(rows, [envelope, { changes: [] }, warnings, note(rows.length)], limits)
  return {
    ...envelope,
    changes: rows.slice(0, kept),
    warnings: kept < rows.length ? [...warnings, note(kept)] : [...warnings],
  }
}

import { Type, type Static } from '@sinclair/typebox'
import { PceError, type PceClient, type TypedPendingChange } from '../../pce-client/index.js'
import { showAssumedBy } from '../../schemas/assumes.js'
import { Nullable } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { DRY_RUN_BINDING, DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import type { PolicyVersion } from '../../schemas/pce/policy.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { completeChanges, type Dependency } from '../../domain/policy/choose-changes.js'
import { createScopeJudge } from '../../domain/scopes/judge-writes.js'
import type { PlacedObject } from '../../domain/scopes/place-object.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { chosenNow, digestChanges, refuseUnapproved } from '../../domain/policy/choose-changes.js'
import { bindChanges } from '../../domain/policy/bind-changes.js'
import { observeForPage } from '../../domain/history/observe-for-page.js'
import { judgePending, MOST_JUDGED } from '../../domain/policy/describe-changes.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { choosePending, refuseOthers, toChangeSubset, toProvisionable } from '../../domain/policy/choose-changes.js'
import { warnOfCarried } from '../../domain/policy/choose-changes.js'
import { warnOfUnreadNames } from '../answers/approval/show-referred.js'
import { assumedByEvidence, showEvidenceOnPage, warnOfEvidence } from '../answers/approval/show-page-evidence.js'
import { showChangesForApproval } from '../answers/approval/show-policy-changes.js'
import { fitChanges, namesOf, orderForReview, showProvisioning } from '../answers/show-provisioning.js'
import { requireObject } from '../../domain/drafts/change-object.js'

const DEFAULT_DESCRIPTION = 'Provisioned via MCP'
/** Maximum number of changes that are named as not provisioned. */
const MOST_LEFT_NAMED = 10
/** Time limit, in milliseconds, for finding out whether a provisioning succeeded if its answer cannot be read. */
const LOOK_MS = 10_000

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  status: Type.Optional(Type.String()),
  change_description: Type.Optional(Type.String({ description: 'As sent' })),
  version: Type.Optional(Type.Integer({ description: 'New policy version' })),
  workloads_affected: Type.Optional(
    Nullable(
      Type.Integer({ description: 'Workloads that the PCE counted afterwards; null, or 0 at first: not counted yet' }),
    ),
  ),
  href: Type.Optional(Type.String()),
  commit_message: Type.Optional(Nullable(Type.String({ description: 'As stored' }))),
  changes: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        type: Type.String({ description: 'Object type' }),
        name: Type.Optional(Type.String()),
        update_type: Type.Optional(Type.String({ description: 'create, update or delete' })),
      }),
      { description: 'The pending changes affected' },
    ),
  ),
  dependencies_included: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        type: Type.String({ description: 'Object type' }),
        required_by: Type.Array(Type.String(), { description: 'What needs it' }),
      }),
      { description: 'Not named, but needed' },
    ),
  ),
  provisioned_hrefs: Type.Optional(Type.Array(Type.String(), { description: 'What was provisioned, all of it' })),
  verified: Type.Optional(Type.Boolean({ description: 'Read back: none of it is pending as before' })),
  object_counts: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), { description: 'Active objects by type afterwards' }),
  ),
  impact: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'What the PCE expected beforehand, by kind: num_managed_workloads have a VEN, which enforces; num_unmanaged_workloads are only named in rules',
    }),
  ),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'provision-policy',
  summary: 'Make pending draft policy active: VENs enforce it.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'provisioning',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  // Only the preview and the dry run are heavy. Provisioning itself, and the check for changes before it, compare no
  // rules and must not wait for a worker thread.
  isHeavy: ({ dry_run: dryRun }, act) => act === 'preview' || (act === 'handler' && dryRun === true),
  input: Type.Object(
    {
      hrefs: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 1000,
          description: 'Draft objects; a rule is its rule set. Omit for ALL pending',
        }),
      ),
      all_pending: Type.Optional(
        Type.Boolean({ description: "Without hrefs: others' changes too; else refused, naming whose" }),
      ),
      change_description: Type.Optional(
        Type.String({
          maxLength: 255,
          default: DEFAULT_DESCRIPTION,
          description: 'For the audit trail',
          listed: '',
        }),
      ),
      include_dependencies: Type.Optional(
        Type.Boolean({ default: false, description: 'Also what they need; else refused' }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { change_description: 'Open payments to the web tier' },
  async boundTo(args, ctx) {
    return args.dry_run === true ? DRY_RUN_BINDING : (await bind(ctx, (await chooseChanges(args, ctx)).chosen)).digest
  },
  async preview(args, ctx) {
    // The confirm token is bound to the pending changes. They are read before their effects are determined, so that the
    // token becomes invalid if they change in between.
    const { chosen, included, rest, left } = await chooseChanges(args, ctx)
    const changes = orderForReview(chosen)
    const hrefs = changes.map(({ href }) => toDraftHref(href))
    const isDryRun = args.dry_run === true
    const { digest, read, named } = await bind(ctx, chosen)
    const judged = await judgePending(ctx, changes, read)
    const impact = hrefs.length === 0 ? undefined : await askImpact(ctx.pce, hrefs, [], ctx.signal)
    const notes = [...warnOfLeft(left), ...warnOfUnreadNames(named), ...(await warnOfNamed(args, ctx, chosen))]
    const page = showChangesForApproval({ changes, included, judged, rest, impact })
    const evidence = await observeForPage(ctx, changes)
    return {
      ...showProvisioning({ changes, included, judged, impact, notes, isDryRun }),
      page: {
        ...page,
        ...showEvidenceOnPage(page.objects, evidence),
        warnings: [...notes, ...warnOfEvidence(evidence), ...page.warnings],
        facts: {
          change_description: args.change_description ?? DEFAULT_DESCRIPTION,
          ...showAssumedBy([...judged.values(), ...assumedByEvidence(evidence)]),
        },
      },
      boundTo: isDryRun ? DRY_RUN_BINDING : digest,
    }
  },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { change_description: description = DEFAULT_DESCRIPTION, dry_run: dryRun } = args
    const { pce, signal } = ctx
    const { chosen, included, left } = await chooseChanges(args, ctx)
    if (chosen.length === 0) {
      if (dryRun !== true && ctx.approved !== undefined)
        refuseUnapproved(ctx.approved, (await bind(ctx, chosen)).digest)
      const message =
        left.length === 0
          ? 'Nothing is pending; draft and active policy are the same.'
          : 'Nothing is pending inside of your scopes.'
      return { message, status: 'no_changes', ...(left.length > 0 && { warnings: warnOfLeft(left) }) }
    }

    const subset = toChangeSubset(chosen)
    const targets = Object.values(subset).flatMap((references) => references.map(({ href }) => href))
    const warnings = [...warnOfLeft(left), ...(await warnOfNamed(args, ctx, chosen))]
    const impact = await askImpact(pce, targets, warnings, signal)
    const common = {
      change_description: description,
      ...(included.length > 0 && { dependencies_included: included }),
      ...(impact !== undefined && { impact }),
    }
    if (dryRun === true) {
      const body = { update_description: description, change_subset: subset }
      const request = { method: 'POST', path: `/orgs/${pce.orgId}/sec_policy`, body }
      const message = `Would provision ${countOf(targets.length, 'object')}. Which observed traffic depends on them is not looked up here: see review-draft.`
      const plan = { dry_run: true, message, requests: [request], ...common }
      return { ...plan, ...fitChanges(chosen, plan, warnings, ctx.limits) }
    }
    if (ctx.approved !== undefined) {
      // The approval is checked directly before the write, because determining the impact took time.
      const look = async () =>
        chosenNow(chosen, await pce.getPendingPolicyChanges({ signal }), args.hrefs === undefined && !isLimited(ctx))
      const now = await look()
      refuseUnapproved(ctx.approved, (await bind(ctx, now)).digest)
      // Reading the content of the changes took time, too. So the pending changes are read once more and compared with
      // those just checked against the approval.
      if (digestChanges(await look()) !== digestChanges(now)) refuseUnapproved(ctx.approved, '')
    }
    const done = await provision(pce, description, chosen, warnings)
    warnings.push(
      ...compareCounts(impact?.num_managed_workloads, 'workloads_affected' in done ? done.workloads_affected : null),
    )
    const answer = { ...done, ...common }
    return { ...answer, ...fitChanges(chosen, answer, warnings, ctx.limits) }
  },
})

interface Choice {
  hrefs?: string[]
  include_dependencies?: boolean
  all_pending?: boolean
}
type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'caller'>

const isLimited = ({ caller: { scopes } }: Context) => scopes !== undefined && !scopes.everything

/** Returns the digest that binds an approval to the part of these changes that the approving person sees. */
const bind = (ctx: Context, chosen: readonly TypedPendingChange[]) =>
  bindChanges(ctx, orderForReview(chosen), MOST_JUDGED)

/**
 * Returns three lists: the pending changes that a call selects, including dependencies (`chosen`); the dependencies
 * that the call did not name (`included`); and all other pending changes (`rest`).
 */
async function chooseChanges(
  { hrefs, include_dependencies: include, all_pending: all }: Choice,
  ctx: Context,
): Promise<{
  chosen: TypedPendingChange[]
  included: Dependency[]
  rest: TypedPendingChange[]
  left: PlacedObject[]
}> {
  const { pce, signal } = ctx
  if (hrefs !== undefined && all === true) {
    const text = 'Give hrefs or all_pending: true, not both.'
    throw new ToolError('conflicting_identifiers', text, { arguments: ['hrefs', 'all_pending'] })
  }
  const named = hrefs === undefined ? null : toProvisionable(hrefs, pce.orgId)
  const pending = await pce.getPendingPolicyChanges({ signal })
  const { inside, left } = named === null ? await leaveOutside(ctx, pending) : { inside: pending, left: [] }
  const asked = named === null ? inside : choosePending(named, pending)
  if (asked.length === 0) return { chosen: [], included: [], rest: pending, left }
  if (named === null && all !== true) await refuseOthers(pce, inside, signal)
  const { complete, included } = await completeChanges(pce, asked, pending, include === true, signal)
  const taken = new Set(complete.map(({ href }) => toDraftHref(href)))
  return { chosen: complete, included, rest: pending.filter(({ href }) => !taken.has(toDraftHref(href))), left }
}

/**
 * Splits the pending changes into those inside the caller's scopes and those that a call without hrefs leaves pending.
 * If the caller's writes are not limited, all changes are inside.
 */
async function leaveOutside(
  { pce, caller: { scopes }, signal }: Context,
  pending: TypedPendingChange[],
): Promise<{ inside: TypedPendingChange[]; left: PlacedObject[] }> {
  if (scopes === undefined || scopes.everything) return { inside: pending, left: [] }
  const placed = await createScopeJudge(pce, scopes, signal).placeChanges(pending.map(({ href }) => href))
  const isInside = (at: number) => placed[at]?.place.is === 'inside'
  return {
    inside: pending.filter((_, at) => isInside(at)),
    left: placed.flatMap((one, at) => (isInside(at) ? [] : [{ name: pending[at]?.name, ...one }])),
  }
}

/** Names the pending changes outside the caller's scopes, which a call without hrefs leaves pending. */
function warnOfLeft(left: readonly PlacedObject[]): string[] {
  if (left.length === 0) return []
  const names = left.slice(0, MOST_LEFT_NAMED).map(({ name, href = '' }) => (name === undefined ? href : quote(name)))
  const more = left.length > names.length ? ` and ${left.length - names.length} more` : ''
  return [
    `${countOf(left.length, 'pending change')} outside of your scopes stay as they are: ${names.join(', ')}${more}.`,
  ]
}

/**
 * Returns warnings about other people's changes among the changes that the call names by href. A call without hrefs
 * needs no warning: either `refuseOthers` has rejected such changes, or the argument `all_pending` accepts them.
 */
const warnOfNamed = async (
  { hrefs }: Choice,
  ctx: Context,
  chosen: readonly TypedPendingChange[],
): Promise<string[]> => (hrefs === undefined ? [] : await warnOfCarried(ctx, chosen))

/**
 * Asks the PCE for the impact of the changes. A failure is only a warning, because the impact is helpful but not
 * required.
 */
async function askImpact(pce: PceClient, hrefs: string[], warnings: string[], signal: AbortSignal) {
  try {
    return { ...(await pce.analyzePolicyImpact(hrefs, { signal })) }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    warnings.push('The PCE did not say how many workloads are affected.')
    return undefined
  }
}

/**
 * Provisions the changes and describes the result, as far as it can be read back. Once the PCE has accepted the
 * request, it counts as done (D72). If the PCE's answer cannot be read, it counts as done if none of the changes is
 * pending any more.
 */
async function provision(pce: PceClient, description: string, chosen: TypedPendingChange[], warnings: string[]) {
  const targets = chosen.map(({ href }) => toDraftHref(href))
  let accepted: PolicyVersion | undefined
  try {
    accepted = await pce.provisionPolicyChanges(description, targets)
  } catch (error) {
    if (!(error instanceof PceError && error.isAccepted)) throw error
    const left = await findLeft(pce, chosen)
    if (left?.still.length !== 0) throw error
    warnings.push("The policy was provisioned; the PCE's answer cannot be read, so its version is not known.")
    return { message: describeDone(chosen, []), ...showLeft(chosen, left, warnings) }
  }
  const stored = await readBack(pce, accepted, warnings)
  const left = await findLeft(pce, chosen)
  const { version, workloads_affected: affected, commit_message: message, object_counts: counts } = stored
  const isKnown = Number.isInteger(version)
  return {
    message: describeDone(chosen, left?.still ?? [], isKnown ? ` as policy version ${version}` : ''),
    ...(isKnown && { version }),
    workloads_affected: Number.isInteger(affected) ? affected : null,
    href: stored.href,
    commit_message: typeof message === 'string' ? message : null,
    object_counts: Object.fromEntries(Object.entries(counts ?? {}).filter(([, count]) => Number.isInteger(count))),
    ...showLeft(chosen, left, warnings),
  }
}

const describeDone = (chosen: readonly TypedPendingChange[], still: readonly TypedPendingChange[], as = '') =>
  still.length === 0
    ? `Provisioned ${countOf(chosen.length, 'object')}${as}.`
    : `The PCE accepted provisioning ${countOf(chosen.length, 'object')}${as}, but ${still.length} ${still.length === 1 ? 'is' : 'are'} pending as before.`

/** Provisioned changes that are pending afterwards, still or again. */
interface Left {
  /** Changes that are still pending in the same form as before. */
  still: TypedPendingChange[]
  /** Changes that are pending again, because their objects were edited meanwhile. */
  edited: TypedPendingChange[]
}

/** Returns the provisioned changes that are pending now; undefined if the pending changes cannot be read. */
async function findLeft(pce: PceClient, chosen: readonly TypedPendingChange[]): Promise<Left | undefined> {
  const pending = await pce.getPendingPolicyChanges({ totalTimeoutMs: LOOK_MS }).catch(() => undefined)
  if (pending === undefined) return undefined
  const now = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const found = chosen.flatMap((before) => {
    const after = now.get(toDraftHref(before.href))
    return after === undefined ? [] : [{ after, isSame: digestChanges([before]) === digestChanges([after]) }]
  })
  const of = (isSame: boolean) => found.filter((one) => one.isSame === isSame).map(({ after }) => after)
  return { still: of(true), edited: of(false) }
}

function showLeft(chosen: readonly TypedPendingChange[], left: Left | undefined, warnings: string[]) {
  if (left === undefined) {
    warnings.push('What is still pending could not be read back: that all of it is active is not verified.')
    return { provisioned_hrefs: chosen.map(({ href }) => toDraftHref(href)), verified: false }
  }
  const { still, edited } = left
  if (still.length > 0)
    warnings.push(`The PCE accepted the call; pending as before nevertheless, and not active: ${namesOf(still)}.`)
  if (edited.length > 0) warnings.push(`Changed again since, and pending again: ${namesOf(edited)}.`)
  const kept = new Set(still.map(({ href }) => toDraftHref(href)))
  return {
    provisioned_hrefs: chosen.map(({ href }) => toDraftHref(href)).filter((href) => !kept.has(href)),
    verified: still.length === 0,
  }
}

/** Returns a warning if the PCE reports a different number of affected workloads than was expected. */
function compareCounts(expected: unknown, affected: number | null | undefined): string[] {
  if (typeof expected !== 'number' || typeof affected !== 'number' || expected === affected) return []
  return [
    `The PCE expected ${countOf(expected, 'managed workload')} to be affected (impact), and counted ${affected} right afterwards (workloads_affected): it may still be counting.`,
  ]
}

/**
 * Reads the new version again, because the PCE's first answer may lack the counts (P27). A failure is only a warning,
 * because the policy is already provisioned.
 */
async function readBack(pce: PceClient, version: PolicyVersion, warnings: string[]): Promise<PolicyVersion> {
  try {
    const stored = (await pce.get(version.href, { includeOrg: false })).json<PolicyVersion>()
    return { ...version, ...requireObject(stored) }
  } catch {
    warnings.push('The policy was provisioned; its version could not be read back.')
    return version
  }
}

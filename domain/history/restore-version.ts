import type { TypedPendingChange } from '../../pce-client/index.js'
import type { Approval } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { mayHaveHappened, reasonOf, withDetails } from '../inventory/pce-errors.js'
import { type BoundChanges, bindChanges } from '../policy/bind-changes.js'
import { choosePending, digestChanges, listPending, toProvisionable } from '../policy/choose-changes.js'
import { digestContents } from '../policy/digest-content.js'
import { requireApproved } from '../policy/require-approved.js'
import { countOf } from '../text/describe-numbers.js'
import { type PolicyDifference, comparePolicies, describeDifference } from './compare-policies.js'
import { describeLosses, discardChanges, type Discarded, MOST_DESCRIBED } from './discard-changes.js'
import { type WholePolicy, loadPolicy } from './load-policy.js'
import { type ChosenVersion, chooseVersion, loadVersions } from './read-versions.js'

type Reading = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** The version and the pending changes on which a restoration is based. */
interface Ground {
  version: ChosenVersion
  /** The number of the active version. */
  inForce: number
  /** The pending changes that the restoration discards. The call must name all of them. */
  dropped: TypedPendingChange[]
  /** Labels, workloads and user groups that the discarded changes mention. Such objects have no draft. */
  named: BoundChanges['named']
  /** A digest of all fields above. It changes whenever one of them changes. */
  digest: string
}

export interface RestorePlan extends Ground {
  /** The content of the version that is restored. */
  policy: WholePolicy
  /** The differences between the active policy and the draft as it will be after the restoration. */
  difference: PolicyDifference
}

export interface RestoreArguments {
  version: number
  drop_pending?: readonly string[]
}

/**
 * Looks up the version and the pending changes that the call names. The call must name all pending changes and nothing
 * else. Throws not_found {version, oldest, newest}, not_pending {not_pending, pending} if the call names changes that
 * are not pending, and pending_changes {pending, unnamed} if it leaves some out.
 */
export async function findGround(
  ctx: Reading,
  { version: asked, drop_pending: drop = [] }: RestoreArguments,
): Promise<Ground> {
  const { pce, signal } = ctx
  const named = new Set(toProvisionable(drop, pce.orgId, { argument: 'drop_pending', deed: 'restored' }))
  const list = await loadVersions(pce, signal)
  const version = chooseVersion(list, asked)
  const inForce = list.versions[0]?.version ?? 0
  const pending = await pce.getPendingPolicyChanges({ signal })
  const dropped = choosePending([...named], pending, 'restored')
  const unnamed = pending.filter(({ href }) => !named.has(toDraftHref(href)))
  if (unnamed.length > 0) {
    const text = `The draft has ${countOf(unnamed.length, 'pending change')} that the call does not name: a restoration would mix with ${unnamed.length === 1 ? 'it' : 'them'}. Nothing was restored.`
    throw new ToolError(
      'pending_changes',
      text,
      { argument: 'drop_pending', ...listPending(unnamed) },
      {
        hint: 'Provision them first, or give their hrefs in drop_pending to lose them.',
      },
    )
  }
  const bound = await bindChanges(ctx, dropped, MOST_DESCRIBED)
  const digest = await digestContents([asked, inForce, bound.digest], signal)
  return { version, inForce, dropped, named: bound.named, digest }
}

/** Determines what the restoration would do. Throws the errors of `findGround` and those of the PCE client. */
export async function planRestore(ctx: Reading, args: RestoreArguments): Promise<RestorePlan> {
  const ground = await findGround(ctx, args)
  const policy = await loadPolicy(ctx.pce, ground.version.selector, ctx.signal)
  const active = await loadPolicy(ctx.pce, ground.inForce, ctx.signal)
  return { ...ground, policy, difference: await comparePolicies(active, policy, ctx.signal) }
}

/**
 * Describes what changes if the draft is provisioned after the restoration, and which pending changes the restoration
 * loses.
 */
export async function describePlan(
  ctx: Reading,
  { difference, dropped }: RestorePlan,
): Promise<{ changes: JudgedChange[]; losses: JudgedChange[] }> {
  return {
    changes: await describeDifference(ctx, difference, difference.objects),
    losses: dropped.length === 0 ? [] : await describeLosses(ctx, dropped),
  }
}

/**
 * Checks, before the first write, that nothing has changed since the plan was made and, if the call was approved, since
 * the approval.
 */
export async function requireSameGround(
  ctx: Reading,
  args: RestoreArguments,
  plan: RestorePlan,
  approved: Approval | undefined,
): Promise<void> {
  const { digest, dropped } = await findGround(ctx, args)
  // Reading the content of the discarded changes took time, so a change that was read early may have been edited since.
  const last = dropped.length === 0 ? [] : await ctx.pce.getPendingPolicyChanges({ signal: ctx.signal })
  const isSame = digestChanges(last) === digestChanges(dropped)
  requireApproved(
    approved,
    isSame ? digest : '',
    'The draft or the active policy has changed since the call was confirmed. Nothing was restored.',
  )
  if (isSame && digest === plan.digest) return
  const text = 'Somebody edited the draft or provisioned while it was read. Nothing was changed by this call.'
  throw new ToolError('pending_changes', text, {}, { hint: 'Call again.' })
}

/** The state of the draft after a restoration, as it was read back. */
export interface Restored {
  /** The changes that are pending after the restoration; undefined if they could not be read. */
  pending?: TypedPendingChange[]
  /** The differences between the draft and the version; undefined if they could not be read. */
  differing?: PolicyDifference
  /** The reason why the result could not be read back. */
  unread?: string
}

/**
 * Discards the pending changes, asks the PCE to restore the version into the draft, and compares the draft with the
 * version. Nothing is provisioned. Throws the errors of the PCE client. These have the `dropped_hrefs` of the changes
 * discarded so far, and `read_back` if the PCE left open what it did.
 */
export async function restoreVersion(ctx: Reading, plan: RestorePlan): Promise<Restored> {
  const { pce } = ctx
  const { dropped, difference, version, policy } = plan
  const droppedHrefs = dropped.map(({ href }) => toDraftHref(href))
  if (dropped.length > 0) {
    const { still, unread } = await dropBefore(pce, dropped)
    if (still.length > 0) {
      const text = `The PCE accepted dropping the pending changes, and ${countOf(still.length, 'change')} of ${dropped.length} stayed. Nothing was restored.`
      throw new ToolError('pending_changes', text, {
        dropped_hrefs: without(droppedHrefs, still),
        ...listPending(still),
      })
    }
    if (unread !== undefined)
      throw new ToolError(
        'invalid_response',
        `The pending changes were dropped, and could not be read back: ${unread}. Nothing was restored.`,
        { dropped_hrefs: droppedHrefs },
      )
  }
  // If the active policy and the draft already equal the version to restore, the restoration would change nothing and
  // is not requested.
  if (difference.objects.length === 0) return lookBack(ctx, policy)
  try {
    await pce.restorePolicy(version.selector)
  } catch (error) {
    const lost = droppedHrefs.length > 0 ? { dropped_hrefs: droppedHrefs } : {}
    const gone =
      droppedHrefs.length > 0 ? ` ${countOf(droppedHrefs.length, 'pending change')} had been dropped before.` : ''
    if (!mayHaveHappened(error)) throw withDetails(error, { ...lost, restored: false }, `Nothing was restored.${gone}`)
    const found = await lookBack(ctx, policy)
    if (found.differing?.objects.length === 0) return found
    throw withDetails(
      error,
      { ...lost, read_back: describeLook(found) },
      `Compare the draft with the version before repeating the call.${gone}`,
    )
  }
  return lookBack(ctx, policy)
}

/** Discards the pending changes. If this fails, the error also says that nothing was restored. */
async function dropBefore(pce: Reading['pce'], dropped: TypedPendingChange[]): Promise<Discarded> {
  try {
    return await discardChanges(pce, { chosen: dropped, rest: [] })
  } catch (error) {
    const next = error instanceof ToolError && error.hint !== undefined ? `${error.hint} ` : ''
    throw withDetails(error, { restored: false }, `${next}Nothing was restored.`)
  }
}

const without = (hrefs: readonly string[], some: readonly TypedPendingChange[]) =>
  hrefs.filter((href) => !some.some((one) => toDraftHref(one.href) === href))

const describeLook = ({ pending, differing }: Restored) => ({
  state:
    pending === undefined || differing === undefined ? 'unreadable' : pending.length === 0 ? 'unchanged' : 'differs',
  ...(pending !== undefined && { pending_total: pending.length }),
  ...(differing !== undefined && { differing_total: differing.objects.length }),
})

/**
 * Reads back the result of a restoration that has taken place. If the call is cancelled, reading stops, so that it does
 * not delay the shutdown of a server.
 */
async function lookBack({ pce, signal }: Pick<Reading, 'pce' | 'signal'>, policy: WholePolicy): Promise<Restored> {
  try {
    const pending = await pce.getPendingPolicyChanges({ signal })
    return { pending, differing: await comparePolicies(policy, await loadPolicy(pce, 'draft', signal), signal) }
  } catch (error) {
    return { unread: reasonOf(error) }
  }
}

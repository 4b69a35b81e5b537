import { createHash } from 'node:crypto'
import { PceError, type PceClient, type TypedPendingChange } from '../../pce-client/index.js'
import type { Approval } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { ChangeSubset, PolicyDependency } from '../../schemas/pce/policy.js'
import { CHANGE_SUBSET_TYPES, type ChangeSubsetType } from '../../schemas/pce/words.js'
import { describeOthers, findOthers, MOST_LISTED } from '../inventory/find-others.js'
import { readAuthors } from '../inventory/pending-authors.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { requireApproved } from './require-approved.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'

/** Maximum number of pending changes listed in an error. */
const MAX_LISTED = 50

/** The participle that says what a call does with pending changes, for messages such as `Nothing was provisioned.` */
export type Deed = 'provisioned' | 'discarded' | 'restored'

/**
 * Converts the hrefs that a caller gave to distinct draft hrefs of objects that can be provisioned. An active href
 * becomes the draft href of the same object, and the href of a rule becomes that of its rule set.
 * @throws {ToolError} invalid_argument with `invalid`, listing every href that cannot be provisioned and therefore
 * cannot have a pending change.
 */
export function toProvisionable(
  hrefs: readonly string[],
  orgId: string,
  { argument = 'hrefs', deed = 'provisioned' }: { argument?: string; deed?: Deed } = {},
): string[] {
  const targets = hrefs.map((href) => ({ href, target: targetOf(href.trim(), orgId) }))
  const invalid = targets.filter(({ target }) => target === null).map(({ href }) => href)
  if (invalid.length > 0) {
    throw new ToolError(
      'invalid_argument',
      deed === 'provisioned'
        ? `Cannot be provisioned: ${invalid.map(quote).join(', ')}.`
        : `Cannot be pending: ${invalid.map(quote).join(', ')}.`,
      { argument, invalid },
      { hint: `Give hrefs of ${CHANGE_SUBSET_TYPES.join(', ')} in organisation ${orgId}.` },
    )
  }
  return [...new Set(targets.flatMap(({ target }) => target ?? []))]
}

function targetOf(text: string, orgId: string): string | null {
  const parsed = parseHref(text)
  if (parsed === null || parsed.org !== orgId || (parsed.version !== 'draft' && parsed.version !== 'active'))
    return null
  const draft = toDraftHref(text)
  // A rule cannot be provisioned without its rule set (P34).
  if (parsed.parent !== undefined) {
    const isRule = parsed.parent.kind === 'rule_sets' && ['sec_rules', 'deny_rules'].includes(parsed.kind)
    return isRule ? toDraftHref(parsed.parent.href) : null
  }
  const known = (CHANGE_SUBSET_TYPES as readonly string[]).includes(parsed.kind)
  return known && (parsed.id !== undefined || parsed.kind === 'firewall_settings') ? draft : null
}

/**
 * Returns the pending changes of exactly these objects.
 * @throws {ToolError} not_pending with `not_pending` and `pending` if one of them has no pending change.
 */
export function choosePending(
  hrefs: readonly string[],
  pending: readonly TypedPendingChange[],
  deed: Deed = 'provisioned',
): TypedPendingChange[] {
  const byHref = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const missing = hrefs.filter((href) => !byHref.has(href))
  if (missing.length === 0) return hrefs.flatMap((href) => byHref.get(href) ?? [])
  throw new ToolError('not_pending', `No pending change: ${missing.map(quote).join(', ')}. Nothing was ${deed}.`, {
    not_pending: missing,
    ...listPending(pending),
  })
}

/** Maximum numbers of changes that an error lists: for each other author, and for the caller. */
const MOST_OF_EACH = 5
const MOST_OWN = 20

/**
 * Checks that every pending object and its rules were last edited by the caller, that is, by the user of this API key.
 *
 * @throws {ToolError} pending_changes with `others` (the other authors and their changes), `others_total`, and `yours`
 * (the changes that the caller alone made). A change by an unknown author counts as a change by another author.
 */
export async function refuseOthers(
  pce: PceClient,
  pending: readonly TypedPendingChange[],
  signal: AbortSignal,
): Promise<void> {
  const others = await findOthers(pce, await readAuthors(pce, pending, signal), signal)
  if (others.list.length === 0) return
  const text = `${describeOthers(countOf(pending.length, 'pending change'), others)} Nothing was provisioned.`
  const theirs = new Set(others.list.flatMap(({ changes }) => changes))
  const yours = pending.filter((change) => !theirs.has(change))
  const details = {
    argument: 'all_pending',
    others: others.list.slice(0, MOST_LISTED).map(({ author, changes, doubt }) => ({
      author,
      ...(doubt !== undefined && { doubt }),
      changes_total: changes.length,
      changes: changes.slice(0, MOST_OF_EACH).map(showPending),
    })),
    others_total: others.total,
    ...(yours.length > 0 && { yours: yours.slice(0, MOST_OWN).map(showPending), yours_total: yours.length }),
    pending_total: pending.length,
  }
  const hint = 'Give hrefs to provision those alone, or all_pending: true for everything, whoever made it.'
  throw new ToolError('pending_changes', text, details, { hint })
}

/** Returns a warning if the changes chosen for provisioning include changes made by other people. */
export async function warnOfCarried(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  chosen: readonly TypedPendingChange[],
): Promise<string[]> {
  const others = await findOthers(pce, await readAuthors(pce, chosen, signal), signal)
  if (others.list.length === 0) return []
  return [describeOthers(`${countOf(chosen.length, 'pending change')} in this call`, others)]
}

/** Returns the first few pending changes and the total number of pending changes, for the details of an error. */
export const listPending = (pending: readonly TypedPendingChange[]) => ({
  pending: pending.slice(0, MAX_LISTED).map(showPending),
  pending_total: pending.length,
})

/** Returns a pending change in the form that answers use. */
export function showPending({ href, type, name, update_type: updateType }: TypedPendingChange) {
  return {
    href,
    type,
    ...(name !== undefined && { name }),
    ...(updateType !== undefined && { update_type: updateType }),
  }
}

/** Groups references to the drafts of changed objects by type, as POST /sec_policy expects them. */
export function toChangeSubset(changes: readonly TypedPendingChange[]): ChangeSubset {
  const subset: Partial<Record<ChangeSubsetType, { href: string }[]>> = {}
  for (const { type, href } of changes) (subset[type] ??= []).push({ href: toDraftHref(href) })
  return subset
}

/** A pending object that must be added to the chosen changes, with the objects that require it. */
export interface Dependency {
  href: string
  type: string
  required_by: string[]
}

/**
 * Maximum number of rounds of requests for dependencies. The first round asks for the dependencies of the chosen
 * changes, and each later round for those of the changes found before. Some PCEs list all dependencies in their first
 * answer, others do not.
 */
const MOST_ROUNDS = 20

/**
 * Finds the pending changes that must be provisioned or discarded together with the chosen ones and, if `include` is
 * true, adds them. When provisioning, these are the pending objects that a chosen change needs; when discarding, the
 * pending changes that need a discarded one (P36). Changes that an added change requires are found and added in the
 * same way.
 *
 * @throws {ToolError} dependencies_required with `required` if such a change is missing and `include` is false, or if
 * the PCE names further changes in every round. The PCE would reject an incomplete set (P35).
 */
export async function completeChanges(
  pce: PceClient,
  chosen: readonly TypedPendingChange[],
  pending: readonly TypedPendingChange[],
  include: boolean,
  signal: AbortSignal,
  deed: 'provisioned' | 'discarded' = 'provisioned',
): Promise<{ complete: TypedPendingChange[]; included: Dependency[] }> {
  const known = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const complete = [...chosen]
  const included: Dependency[] = []
  for (let round = 1; ; round++) {
    const hrefs = complete.map(({ href }) => toDraftHref(href))
    const json = { operation: deed === 'provisioned' ? 'commit' : 'revert' }
    const dependencies = await pce.getPolicyDependencies(hrefs, 'draft', { signal, json })
    const required = toRequired(dependencies).filter(({ href }) => !hrefs.includes(href))
    if (required.length === 0) return { complete, included }
    if (!include || round > MOST_ROUNDS) throw incomplete(required, deed)
    included.push(...required)
    for (const { href, type } of required) complete.push(known.get(href) ?? { href, type: type as ChangeSubsetType })
  }
}

function incomplete(required: Dependency[], deed: 'provisioned' | 'discarded'): ToolError {
  const count = countOf(required.length, 'more pending object')
  const [why, everything] =
    deed === 'provisioned'
      ? [`These changes need ${count}.`, 'leave hrefs out to provision everything']
      : [`Other pending changes need these: ${count} would have to go too.`, 'give all: true']
  const hint = `Repeat with include_dependencies: true, add the required hrefs, or ${everything}.`
  return new ToolError('dependencies_required', `${why} Nothing was ${deed}.`, { required }, { hint })
}

/**
 * Lists each required object once, with all objects that require it.
 * @throws {PceError} invalid_response if the dependencies have an unexpected shape. Ignoring them would provision an
 * incomplete set.
 */
function toRequired(dependencies: readonly PolicyDependency[]): Dependency[] {
  if (!dependencies.every(isDependency))
    throw new PceError('invalid_response', 'The PCE answered dependencies of a shape that is not known.')
  const required = new Map<string, Dependency>()
  for (const { dependency, required_by: requiredBy } of dependencies) {
    const needing = Object.values(requiredBy ?? {}).flatMap((references) => references.map(({ href }) => href))
    for (const [type, reference] of Object.entries(dependency)) {
      const href = toDraftHref(reference.href)
      const before = required.get(href)?.required_by ?? []
      required.set(href, { href, type, required_by: [...new Set([...before, ...needing])] })
    }
  }
  return [...required.values()]
}

/**
 * Returns true if a value has the shape `{dependency: {type: {href}}, required_by: {type: [{href}]}}` (P27);
 * `required_by` may be missing.
 */
function isDependency({ dependency, required_by: requiredBy }: Partial<PolicyDependency>): boolean {
  const values = (object: unknown) =>
    typeof object === 'object' && object !== null && !Array.isArray(object) ? Object.values(object) : null
  const isReference = (value: unknown) => typeof (value as { href?: unknown } | null)?.href === 'string'
  const needed: unknown[] = values(dependency) ?? []
  const needing: unknown[] | null = values(requiredBy ?? {})
  if (needed.length === 0 || !needed.every(isReference) || needing === null) return false
  return needing.every((references) => Array.isArray(references) && references.every(isReference))
}

/**
 * Returns a digest (lowercase hex SHA-256) of the current state of some pending changes: each object's href, update
 * type and time of its last edit, sorted by href (D21). An edit of a rule counts as an edit of its rule set (P4).
 */
export function digestChanges(changes: readonly TypedPendingChange[]): string {
  const rows = changes
    .map((change) => [toDraftHref(change.href), updateTypeOf(change), change.updated_at ?? null] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return createHash('sha256').update(JSON.stringify(rows)).digest('hex')
}

/** Returns the update type (`create`, `update` or `delete`) of a change. Some releases name the field change_type. */
export function updateTypeOf(change: TypedPendingChange): string | null {
  return change.update_type ?? (change as { change_type?: string | null }).change_type ?? null
}

/**
 * Finds the chosen changes in a newer list of pending changes. A change that is no longer pending is kept, but without
 * the time of its edit, so the digest changes. If `isAll` is true, all other changes in the newer list are added.
 */
export function chosenNow(
  chosen: readonly TypedPendingChange[],
  pending: readonly TypedPendingChange[],
  isAll: boolean,
): TypedPendingChange[] {
  const rest = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const now = chosen.map(({ href, type }) => {
    const draft = toDraftHref(href)
    const change = rest.get(draft) ?? { href, type }
    rest.delete(draft)
    return change
  })
  return isAll ? [...now, ...rest.values()] : now
}

/**
 * Checks that a person approved the changes with this digest (see `bindChanges` and `requireApproved`).
 *
 * @throws {ToolError} confirm_required with `reason: stale` and `params_hash`.
 */
export function refuseUnapproved(approved: Approval | undefined, digest: string, deed: Deed = 'provisioned'): void {
  const text = `The pending changes have changed since the call was confirmed. Nothing was ${deed}.`
  requireApproved(approved, digest, text)
}

/**
 * Checks that the changes have not been edited since they were read. Otherwise the call would discard edits that nobody
 * has seen.
 *
 * @throws {ToolError} pending_changes with `pending` and `pending_total`.
 */
export function refuseMoved(chosen: readonly TypedPendingChange[], now: readonly TypedPendingChange[]): void {
  if (digestChanges(chosen) === digestChanges(now)) return
  const text = 'Somebody edited the draft while it was read. Nothing was changed by this call.'
  throw new ToolError('pending_changes', text, listPending(now), { hint: 'Call again.' })
}

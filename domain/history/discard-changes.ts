import { PceError, type PceClient, type TypedPendingChange } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { parseHref, toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { mayHaveHappened, reasonOf, withDetails } from '../inventory/pce-errors.js'
import {
  type Dependency,
  choosePending,
  completeChanges,
  digestChanges,
  toProvisionable,
  updateTypeOf,
} from '../policy/choose-changes.js'
import { describeChanges, type ReadVersions } from '../policy/describe-changes.js'

/** Time limit, in milliseconds, for reading back whether a discard took effect. */
const LOOK_MS = 10_000

type Reading = Pick<ToolContext<true>, 'pce' | 'signal'>

/** The pending changes that a call would discard. */
export interface Discard {
  /** All changes to discard, including those that depend on the changes named by the call. */
  chosen: TypedPendingChange[]
  /** The changes that the call did not name, but that depend on the named ones. */
  included: Dependency[]
  /** The changes that stay pending. */
  rest: TypedPendingChange[]
  /** The draft hrefs of the rule sets of which the call named only rules. The PCE discards them as a whole (P34). */
  throughRules: string[]
}

/**
 * Determines the changes to discard: those that the caller names, or all pending changes if `all` is true. Throws
 * missing_identifier, conflicting_identifiers, invalid_argument {invalid}, not_pending {not_pending, pending} and
 * dependencies_required {required}.
 */
export async function chooseDiscard(
  { hrefs, all, include_dependencies: include }: { hrefs?: string[]; all?: boolean; include_dependencies?: boolean },
  { pce, signal }: Reading,
): Promise<Discard> {
  if (hrefs !== undefined && all === true) {
    const text = 'Give hrefs or all: true, not both.'
    throw new ToolError('conflicting_identifiers', text, { arguments: ['hrefs', 'all'] })
  }
  if (hrefs === undefined && all !== true) {
    const text = 'Say what to discard: give hrefs, or all: true for every pending change.'
    throw new ToolError('missing_identifier', text, { arguments: ['hrefs', 'all'] })
  }
  const named = hrefs === undefined ? null : toProvisionable(hrefs, pce.orgId, { deed: 'discarded' })
  const pending = await pce.getPendingPolicyChanges({ signal })
  const asked = named === null ? pending : choosePending(named, pending, 'discarded')
  if (asked.length === 0) return { chosen: [], included: [], rest: pending, throughRules: [] }
  const { complete, included } =
    named === null
      ? { complete: pending, included: [] }
      : await completeChanges(pce, asked, pending, include === true, signal, 'discarded')
  return { chosen: complete, included, rest: without(pending, complete), throughRules: onlyThroughRules(hrefs ?? []) }
}

function onlyThroughRules(hrefs: readonly string[]): string[] {
  const named = new Set(hrefs.map((href) => toDraftHref(href.trim())))
  const parents = [...named].flatMap((href) => parseHref(href)?.parent?.href ?? [])
  return [...new Set(parents.map(toDraftHref))].filter((href) => !named.has(href))
}

function without(pending: readonly TypedPendingChange[], some: readonly TypedPendingChange[]): TypedPendingChange[] {
  const taken = new Set(some.map(({ href }) => toDraftHref(href)))
  return pending.filter(({ href }) => !taken.has(toDraftHref(href)))
}

/** Maximum number of changes that are described. For each of them, two objects must be read while the caller waits. */
export const MOST_DESCRIBED = 250

/**
 * Describes the first MOST_DESCRIBED of the changes that would be lost, and the effect that they would have had. Throws
 * the errors of the PCE client. Objects in `read` are not read again.
 */
export const describeLosses = (
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  chosen: readonly TypedPendingChange[],
  read?: ReadonlyMap<TypedPendingChange, ReadVersions>,
): Promise<JudgedChange[]> => describeChanges(ctx, chosen.slice(0, MOST_DESCRIBED), read)

/**
 * Finds pending deletions that the PCE would refuse to provision after the discard, because the discard restores
 * objects that use the object to be deleted. Each deletion comes with the names of these objects.
 */
export function findStrandedDeletions(
  losses: readonly JudgedChange[],
  rest: readonly TypedPendingChange[],
): { deletion: TypedPendingChange; usedBy: string[] }[] {
  const deletions = rest.filter((change) => updateTypeOf(change) === 'delete')
  return deletions.flatMap((deletion) => {
    const hrefs = [toDraftHref(deletion.href), toActiveHref(deletion.href)]
    const users = losses.filter(({ fields = [], rules = [] }) =>
      [...fields, ...rules.flatMap((rule) => rule.fields ?? [])].some(({ active }) => pointsAt(active, hrefs)),
    )
    return users.length === 0 ? [] : [{ deletion, usedBy: users.map(({ name, href }) => name || href) }]
  })
}

function pointsAt(value: unknown, hrefs: readonly string[]): boolean {
  if (Array.isArray(value)) return value.some((item) => pointsAt(item, hrefs))
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([field, inner]) =>
    field === 'href' && typeof inner === 'string' ? hrefs.includes(inner) : pointsAt(inner, hrefs),
  )
}

/** The result of a discard, determined from the changes that are pending afterwards. */
export interface Discarded {
  /** The chosen changes that are still pending. */
  still: TypedPendingChange[]
  /** Other changes that disappeared or were edited during the discard, presumably by somebody else. */
  moved: TypedPendingChange[]
  /** All changes that are still pending after the discard; undefined if they could not be read. */
  pending?: TypedPendingChange[]
  /** The reason why the pending changes could not be read. */
  unread?: string
}

/**
 * Discards exactly the given changes. The request names each of them even if there are no other pending changes, so
 * that changes that somebody adds in the meantime are not lost. Throws the errors of the PCE client, with `read_back`
 * if the PCE left open whether the discard was carried out. A request that the PCE accepted counts as carried out.
 */
export async function discardChanges(
  pce: PceClient,
  { chosen, rest }: Pick<Discard, 'chosen' | 'rest'>,
): Promise<Discarded> {
  try {
    await pce.bulkDeletePolicyObjects(chosen.map(({ href }) => toDraftHref(href)))
  } catch (error) {
    if (!mayHaveHappened(error)) throw error
    const found = await lookAt(pce, chosen, rest)
    if (found.pending !== undefined && found.still.length === 0) return found
    const isNone = found.still.length === chosen.length
    const state = found.pending === undefined ? 'unreadable' : isNone ? 'unchanged' : 'differs'
    throw withDetails(
      error,
      {
        read_back: {
          state,
          ...(found.pending !== undefined && { still_pending: found.still.map(({ href }) => href) }),
        },
      },
      LOOKED[state],
    )
  }
  return lookAt(pce, chosen, rest)
}

const LOOKED = {
  unreadable: 'The pending changes could not be read back. Look at them before repeating the call.',
  unchanged: 'Read back, all of them are still pending: nothing was discarded so far.',
  differs: 'Read back, some of them are still pending. Look at them before repeating the call.',
}

async function lookAt(
  pce: PceClient,
  chosen: readonly TypedPendingChange[],
  rest: readonly TypedPendingChange[],
): Promise<Discarded> {
  let pending: TypedPendingChange[]
  try {
    pending = await pce.getPendingPolicyChanges({ totalTimeoutMs: LOOK_MS })
  } catch (error) {
    if (!(error instanceof PceError)) throw error
    return { still: [], moved: [], unread: reasonOf(error) }
  }
  const now = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const isSame = (change: TypedPendingChange) => {
    const found = now.get(toDraftHref(change.href))
    return found !== undefined && digestChanges([found]) === digestChanges([change])
  }
  return {
    still: chosen.filter(({ href }) => now.has(toDraftHref(href))),
    moved: rest.filter((change) => !isSame(change)),
    pending,
  }
}

import { type PceClient, PceError, type TypedPendingChange } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { loadReferenceNames, nameAuthors, type ReferenceNames } from '../inventory/reference-names.js'
import { loadJudgedUsers } from '../inventory/find-uses.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { readEnds, readRuleSets } from '../inventory/require-rule-shape.js'
import type { NamedObject } from '../inventory/find-object.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { type Steps, mapBounded, workInTurns } from '../text/pace-work.js'
import { diffFields } from './diff-fields.js'
import { diffRuleSet } from './diff-rule-set.js'
import { judgeObject, needsUsers, rulesAbout, type Users } from './judge-object.js'
import { nameRule } from './name-rule.js'
import { loadContents, type LoadedContents, type Versions } from './load-contents.js'

const IN_FLIGHT = 4

/** Both versions of a changed object, as they were read. If they could not be read, both are null. */
export interface ReadVersions extends Versions {
  /** The reason why the versions could not be read. */
  error?: string
}

interface Judging {
  contents: LoadedContents
  names: ReferenceNames
  users: Users | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** An object that differs between two versions of the policy. Both versions are included. */
export interface ChangedObject {
  change: TypedPendingChange
  versions: ReadVersions
}

/**
 * Functions that read what is needed to evaluate changes: the rules that use a changed object, and the objects to which
 * rules refer.
 */
export interface Surroundings {
  /** Reads the rules and other objects that use policy objects; returns null if they cannot be read. */
  readUsers: () => Promise<Users | null>
  readContents: (policy: unknown, known: ReadonlyMap<string, Versions>) => Promise<LoadedContents>
  /** Objects whose names are already known and need not be requested. */
  named?: readonly NamedObject[]
}

/**
 * Describes the effects of pending changes (T22). If one version of an object cannot be read, the object is listed with
 * `diff_error` instead of its differences. Versions that are in `read` are not read again.
 */
export async function describeChanges(
  ctx: Context,
  changes: readonly TypedPendingChange[],
  read: ReadonlyMap<TypedPendingChange, ReadVersions> = new Map(),
): Promise<JudgedChange[]> {
  const { pce, signal } = ctx
  const objects = await mapBounded(changes, IN_FLIGHT, async (change): Promise<ChangedObject> => {
    return { change, versions: read.get(change) ?? (await readVersions(pce, change, signal)) }
  })
  return describeAgainst(ctx, objects)
}

/** Describes the objects that differ between the current draft and the active policy. */
export function describeAgainst(ctx: Context, objects: readonly ChangedObject[]): Promise<JudgedChange[]> {
  return describeObjects(ctx, objects, {
    readUsers: () => readUsers(ctx.pce, ctx.signal),
    readContents: (policy, known) => loadContents(ctx.pce, policy, known, ctx),
  })
}

/**
 * Describes the differences between any two versions of the policy. `draft` stands for the later version, `active` for
 * the earlier one. Hrefs are always draft hrefs.
 */
export async function describeObjects(
  ctx: Context,
  objects: readonly ChangedObject[],
  { readUsers: loadUsers, readContents, named = [] }: Surroundings,
): Promise<JudgedChange[]> {
  const { pce, signal } = ctx
  const bare = objects.map(({ versions }) => [withoutStamps(versions.draft), withoutStamps(versions.active)])
  const throughRules = objects.filter(({ change, versions }) => needsUsers(change.type, versions))
  const users = throughRules.length === 0 ? null : await loadUsers()
  const rules = [
    ...objects.flatMap(({ change }, at) => (HOLDERS.has(change.type) ? [bare[at]] : [])),
    ...(users === null ? [] : await workInTurns(rulesAboutEach(throughRules, users), signal)),
  ]
  const known = new Map(objects.map(({ change, versions }) => [toDraftHref(change.href), versions]))
  const contents = await readContents(rules, known)
  const names = await loadReferenceNames(pce, bare, ctx, 'draft', [...named, ...contents.workloads])
  const described = await workInTurns(describeEach(objects, { contents, names, users }), signal)
  return nameAuthors(pce, described, signal)
}

function* rulesAboutEach(objects: readonly ChangedObject[], users: Users): Steps<unknown[]> {
  const rules: unknown[] = []
  for (const { change } of objects) rules.push(yield* rulesAbout(change.href, users))
  return rules
}

function* describeEach(objects: readonly ChangedObject[], judging: Judging): Steps<JudgedChange[]> {
  const described: JudgedChange[] = []
  for (const { change, versions } of objects) {
    described.push(yield* describe(change, versions, judging))
    yield
  }
  return described
}

/** The types of objects that contain rules or, like enforcement boundaries, act as rules. */
const HOLDERS = new Set(['rule_sets', 'enforcement_boundaries'])

function* describe(
  change: TypedPendingChange,
  { draft, active: inForce, error }: ReadVersions,
  { contents, names, users }: Judging,
): Steps<JudgedChange> {
  const { href, type, updated_at: at, updated_by: by } = change
  const name = change.name ?? draft?.name ?? inForce?.name
  const shown: JudgedChange = { href, type, name: typeof name === 'string' ? name : '' }
  const stamps = {
    ...(by != null && { updated_by: { href: by.href } }),
    ...(at != null && { updated_at: at }),
  }
  if (error !== undefined) return { ...shown, ...stamps, diff_error: error }
  const fields = showNamesInside(diffFields(draft, inForce), names)
  if (type !== 'rule_sets')
    return {
      ...shown,
      ...(yield* judgeObject(type, { draft, active: inForce }, contents, users)),
      ...stamps,
      fields,
    }
  const [ours, active] = [draft, inForce] as [RuleSet | null, RuleSet | null]
  const { rules, ...judged } = yield* diffRuleSet(ours, active, contents)
  // The changed fields alone do not show which rule was changed, so a description of the rule is added. It describes
  // the draft rule if the rule is new, and otherwise the active one.
  const rulesByHref = (ruleSet: RuleSet | null) =>
    new Map([...(ruleSet?.rules ?? []), ...(ruleSet?.deny_rules ?? [])].map((rule) => [toDraftHref(rule.href), rule]))
  const [before, now] = [rulesByHref(active), rulesByHref(ours)]
  const named = rules.map(({ fields: changed, ...rule }) => {
    const known = (rule.change === 'added' ? now : before).get(rule.href)
    return {
      ...rule,
      ...(known !== undefined && { rule: nameRule(known, names) }),
      fields: showNamesInside(changed, names),
    }
  })
  return { ...shown, ...judged, ...stamps, fields, rules: named }
}

/** Reads both versions of a changed object. A new object has no active version, a deleted one no draft. */
export async function readVersions(
  pce: PceClient,
  change: TypedPendingChange,
  signal: AbortSignal,
): Promise<ReadVersions> {
  const read = async (href: string): Promise<PceObject> => {
    const object = (await pce.get(href, { includeOrg: false, signal })).json<PceObject | null>()
    if (typeof object?.href !== 'string') throw new PceError('invalid_response', `${href}: the PCE sent no object`)
    if (change.type === 'enforcement_boundaries') return readEnds([object as EnforcementBoundary], href)[0] ?? object
    if (change.type !== 'rule_sets') return object
    const [complete] = await loadDenyRules(pce, readRuleSets([object as RuleSet]), signal)
    if (complete?.error !== undefined) throw new PceError('invalid_response', complete.error)
    return complete?.ruleSet ?? object
  }
  try {
    const draft = change.update_type === 'delete' ? null : await read(toDraftHref(change.href))
    const active = change.update_type === 'create' ? null : await read(toActiveHref(change.href))
    return { draft, active }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { draft: null, active: null, error: error.message }
  }
}

/**
 * Reads the rules that use policy objects. Returns null if they cannot be read; effects that depend on these rules are
 * then undecided.
 */
async function readUsers(pce: PceClient, signal: AbortSignal): Promise<Users | null> {
  try {
    return await loadJudgedUsers(pce, signal)
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}

/**
 * Removes the author fields from an object, so that the authors' hrefs are not looked up as references to policy
 * objects.
 */
function withoutStamps(object: PceObject | null): object {
  const { created_by: _c, updated_by: _u, deleted_by: _d, ...rest } = object ?? { href: '' }
  return rest
}

/**
 * Maximum number of pending changes whose effects are determined. A person is waiting, and each change takes two
 * requests.
 */
export const MOST_JUDGED = 100

/**
 * Determines, for the first MOST_JUDGED of the given pending changes, whether they widen or narrow what is permitted,
 * which risks they have and who made them. Returns a map by href. As this only helps people to decide, the map is empty
 * if the PCE cannot be read. Rejects if the call is cancelled. Versions that are in `read` are not read again.
 */
export async function judgePending(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  changes: readonly TypedPendingChange[],
  read?: ReadonlyMap<TypedPendingChange, ReadVersions>,
): Promise<Map<string, JudgedChange>> {
  try {
    const described = await describeChanges(ctx, changes.slice(0, MOST_JUDGED), read)
    return new Map(described.map((change) => [change.href, change]))
  } catch (error) {
    if (!(error instanceof PceError) || ctx.signal.aborted) throw error
    return new Map()
  }
}

/**
 * Copies a JSON value. Each `{href}` in the copy gets the name of the object, or the key and value of the label, if
 * they are known.
 */
export function showNamesInside<T>(value: T, names: ReferenceNames): T {
  return show(value, names) as T
}

function show(value: unknown, names: ReferenceNames): unknown {
  if (Array.isArray(value)) return value.map((item) => show(item, names))
  if (typeof value !== 'object' || value === null) return value
  const shown = Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, show(inner, names)]))
  return typeof shown.href === 'string' ? { ...names(shown.href), ...shown } : shown
}

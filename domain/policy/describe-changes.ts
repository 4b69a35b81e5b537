import { type PceClient, PceError, type TypedPendingChange } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { PolicyChange } from '../../schemas/policy-changes.js'
import type { ToolContext } from '../call.js'
import { loadReferenceNames, nameAuthors, type ReferenceNames } from '../inventory/reference-names.js'
import { loadPolicyUsers } from '../inventory/find-uses.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import type { NamedObject } from '../inventory/find-object.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { type Steps, mapBounded, workInTurns } from '../text/pace-work.js'
import { diffFields } from './diff-fields.js'
import { diffRuleSet } from './diff-rule-set.js'
import { judgeObject, needsUsers, rulesAbout, type Users } from './judge-object.js'
import { nameRule } from './name-rule.js'
import { loadContents, type LoadedContents, type Versions } from './load-contents.js'

const IN_FLIGHT = 4

interface ReadVersions extends Versions {
  /** Why they could not be read. */
  error?: string
}

interface Judging {
  contents: LoadedContents
  names: ReferenceNames
  users: Users | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** An object that differs between two versions of the policy, with both. */
export interface ChangedObject {
  change: TypedPendingChange
  versions: ReadVersions
}

/** What changes stand in: where their judgement finds the rules that use an object, and what rules refer to. */
export interface Surroundings {
  /** Null where they cannot be read. */
  readUsers: () => Promise<Users | null>
  readContents: (policy: unknown, known: ReadonlyMap<string, Versions>) => Promise<LoadedContents>
  /** Objects whose names are known: they are not asked for. */
  named?: readonly NamedObject[]
}

/**
 * Pending changes with what they change (T22). An object that cannot be read in one of its versions still counts: it has `diff_error`
 * in place of its differences.
 */
export async function describeChanges(ctx: Context, changes: readonly TypedPendingChange[]): Promise<PolicyChange[]> {
  const { pce, signal } = ctx
  const objects = await mapBounded(changes, IN_FLIGHT, async (change): Promise<ChangedObject> => {
    return { change, versions: await readVersions(pce, change, signal) }
  })
  return describeObjects(ctx, objects, {
    readUsers: () => readUsers(pce, signal),
    readContents: (policy, known) => loadContents(pce, policy, known, ctx),
  })
}

/**
 * The same for two versions of any age: `draft` is the later one throughout, `active` the one that it is compared with. Hrefs are draft
 * hrefs, whatever the versions.
 */
export async function describeObjects(
  ctx: Context,
  objects: readonly ChangedObject[],
  { readUsers: loadUsers, readContents, named }: Surroundings,
): Promise<PolicyChange[]> {
  const { pce, signal } = ctx
  const bare = objects.map(({ versions }) => [withoutStamps(versions.draft), withoutStamps(versions.active)])
  const throughRules = objects.filter(({ change, versions }) => needsUsers(change.type, versions))
  const users = throughRules.length === 0 ? null : await loadUsers()
  const rules = [
    ...objects.flatMap(({ change }, at) => (HOLDERS.has(change.type) ? [bare[at]] : [])),
    ...(users === null ? [] : throughRules.map(({ change }) => rulesAbout(change.href, users))),
  ]
  const known = new Map(objects.map(({ change, versions }) => [toDraftHref(change.href), versions]))
  const contents = await readContents(rules, known)
  const names = await loadReferenceNames(pce, bare, ctx, 'draft', named)
  const described = await workInTurns(describeEach(objects, { contents, names, users }), signal)
  return nameAuthors(pce, described, signal)
}

function* describeEach(objects: readonly ChangedObject[], judging: Judging): Steps<PolicyChange[]> {
  const described: PolicyChange[] = []
  for (const { change, versions } of objects) {
    described.push(describe(change, versions, judging))
    yield
  }
  return described
}

/** Types of objects that have rules of their own. */
const HOLDERS = new Set(['rule_sets', 'enforcement_boundaries'])

function describe(
  change: TypedPendingChange,
  { draft, active: inForce, error }: ReadVersions,
  { contents, names, users }: Judging,
): PolicyChange {
  const { href, type, updated_at: at, updated_by: by } = change
  const name = change.name ?? draft?.name ?? inForce?.name
  const shown: PolicyChange = { href, type, name: typeof name === 'string' ? name : '' }
  const stamps = {
    ...(by != null && { updated_by: { href: by.href } }),
    ...(at != null && { updated_at: at }),
  }
  if (error !== undefined) return { ...shown, ...stamps, diff_error: error }
  const fields = showNamesInside(diffFields(draft, inForce), names)
  if (type !== 'rule_sets')
    return { ...shown, ...judgeObject(type, { draft, active: inForce }, contents, users), ...stamps, fields }
  const [ours, active] = [draft, inForce] as [RuleSet | null, RuleSet | null]
  const { rules, ...judged } = diffRuleSet(ours, active, contents)
  // Of a changed rule the fields show only what differs, which does not tell which rule it is.
  const before = new Map(
    [...(active?.rules ?? []), ...(active?.deny_rules ?? [])].map((rule) => [toDraftHref(rule.href), rule]),
  )
  const named = rules.map(({ fields: changed, ...rule }) => {
    const was = rule.change === 'changed' ? before.get(rule.href) : undefined
    return {
      ...rule,
      ...(was !== undefined && { rule: nameRule(was, names) }),
      fields: showNamesInside(changed, names),
    }
  })
  return { ...shown, ...judged, ...stamps, fields, rules: named }
}

/** The two versions of a changed object: a new one has no active version, a deleted one no draft. */
async function readVersions(pce: PceClient, change: TypedPendingChange, signal: AbortSignal): Promise<ReadVersions> {
  const read = async (href: string): Promise<PceObject> => {
    const object = (await pce.get(href, { includeOrg: false, signal })).json<PceObject | null>()
    if (typeof object?.href !== 'string') throw new PceError('invalid_response', `${href}: the PCE sent no object`)
    if (change.type !== 'rule_sets') return object
    const [complete] = await loadDenyRules(pce, [object as RuleSet], signal)
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

/** Null where they cannot be read: what depends on them is undecided then. */
async function readUsers(pce: PceClient, signal: AbortSignal): Promise<Users | null> {
  try {
    return await loadPolicyUsers(pce, signal)
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}

/** The author of an object is not a reference that needs a name. */
function withoutStamps(object: PceObject | null): object {
  const { created_by: _c, updated_by: _u, deleted_by: _d, ...rest } = object ?? { href: '' }
  return rest
}

/** Each costs two reads, which somebody waits for. */
const MOST_JUDGED = 100

/**
 * Whether the first of these changes widen or narrow what is permitted, their risks and their authors, by href. It only helps the
 * decision: empty where the PCE does not say. A cancelled call rejects.
 */
export async function judgePending(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  changes: readonly TypedPendingChange[],
): Promise<Map<string, PolicyChange>> {
  try {
    const described = await describeChanges(ctx, changes.slice(0, MOST_JUDGED))
    return new Map(described.map((change) => [change.href, change]))
  } catch (error) {
    if (!(error instanceof PceError) || ctx.signal.aborted) throw error
    return new Map()
  }
}

/** A JSON value with key and value, or name, beside every `{href}` inside it that has a known one. */
export function showNamesInside<T>(value: T, names: ReferenceNames): T {
  return show(value, names) as T
}

function show(value: unknown, names: ReferenceNames): unknown {
  if (Array.isArray(value)) return value.map((item) => show(item, names))
  if (typeof value !== 'object' || value === null) return value
  const shown = Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, show(inner, names)]))
  return typeof shown.href === 'string' ? { ...names(shown.href), ...shown } : shown
}

import type { TypedPendingChange } from '../../pce-client/index.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import type { NamedObject } from '../inventory/find-object.js'
import type { PolicyUsers } from '../inventory/find-uses.js'
import { type ChangedObject, type Surroundings, describeObjects } from '../policy/describe-changes.js'
import { diffFields } from '../policy/diff-fields.js'
import { changedRules } from '../policy/diff-rule-set.js'
import { type WholeKinds, loadContents } from '../policy/load-contents.js'
import { type Steps, workInTurns } from '../text/pace-work.js'
import { type ReadType, type WholePolicy, READ_TYPES } from './load-policy.js'

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** The differences between two versions of the policy. */
export interface PolicyDifference {
  /** The changed objects. A new object has no earlier version (`active`), a deleted one no later version (`draft`). */
  objects: ChangedObject[]
  before: WholePolicy
  after: WholePolicy
}

/**
 * Finds the objects that differ between two versions of the policy, and returns their content in both. Differences only
 * in the author or time of an edit do not count.
 */
export function comparePolicies(
  before: WholePolicy,
  after: WholePolicy,
  signal: AbortSignal,
): Promise<PolicyDifference> {
  return workInTurns(compare(before, after), signal)
}

function* compare(before: WholePolicy, after: WholePolicy): Steps<PolicyDifference> {
  const objects: ChangedObject[] = []
  // In `joined`, an object that is equal in both versions is the same JavaScript object as in `before`, so that
  // references to it are recognised as equal.
  const joined: Record<string, Map<string, PceObject>> = {}
  for (const type of READ_TYPES) {
    const now = (joined[type] = new Map(after[type]))
    for (const href of new Set([...before[type].keys(), ...now.keys()])) {
      yield
      const [is, old] = [now.get(href) ?? null, before[type].get(href)]
      const was = old === undefined ? null : withoutDeletedRules(old)
      if (old !== undefined && is !== null && isSame(type, is, was as PceObject)) now.set(href, old)
      else objects.push(describeChange(type, href, is, was))
    }
  }
  return { objects, before, after: joined as unknown as WholePolicy }
}

function isSame(type: ReadType, is: PceObject, was: PceObject): boolean {
  if (JSON.stringify(is) === JSON.stringify(was)) return true
  if (diffFields(is, was).length > 0) return false
  return type !== 'rule_sets' || changedRules(is as unknown as RuleSet, was as unknown as RuleSet).length === 0
}

const RULES = ['rules', 'deny_rules', 'ip_tables_rules'] as const
type Marked = { update_type?: string | null }
const isMarked = ({ update_type: updateType }: Marked) => updateType === 'delete'

/**
 * Removes rules that are marked for deletion. A draft still contains such rules, but they must not count if the draft
 * is the earlier version of a comparison.
 */
function withoutDeletedRules(object: PceObject): PceObject {
  const lists = RULES.flatMap((list) => {
    const rules = object[list] as Marked[] | null | undefined
    return rules?.some(isMarked) === true ? [[list, rules.filter((rule) => !isMarked(rule))] as const] : []
  })
  return lists.length === 0 ? object : { ...object, ...Object.fromEntries(lists) }
}

function describeChange(type: ReadType, href: string, is: PceObject | null, was: PceObject | null): ChangedObject {
  const { updated_at: at, updated_by: by } = is ?? {}
  const name = (is ?? was)?.name
  const change: TypedPendingChange = {
    href,
    type,
    update_type: was === null ? 'create' : is === null ? 'delete' : 'update',
    ...(typeof name === 'string' && { name }),
    ...(at !== undefined && { updated_at: at }),
    ...(by != null && { updated_by: by }),
  }
  return { change, versions: { draft: is, active: was } }
}

/**
 * Describes some of the differing objects in the same way as pending changes (T22). Their effect is determined from the
 * rules of the two versions, and from the current labels and workloads, because labels and workloads have no versions.
 */
export function describeDifference(
  ctx: Context,
  difference: PolicyDifference,
  objects: readonly ChangedObject[],
): Promise<JudgedChange[]> {
  return describeObjects(ctx, objects, surroundingsOf(ctx, difference))
}

function surroundingsOf(ctx: Context, { before, after }: PolicyDifference): Surroundings {
  const kinds = Object.fromEntries(
    (['ip_lists', 'services', 'label_groups'] as const).map((kind) => [
      kind,
      // If an object is missing in one version, the object from the other version is used, so that rules that refer to
      // it can still be interpreted.
      {
        draft: new Map([...before[kind], ...after[kind]]),
        active: new Map([...after[kind], ...before[kind]]),
      },
    ]),
  ) as unknown as WholeKinds
  return {
    readUsers: () => Promise.resolve({ draft: usersOf(after), active: usersOf(before) }),
    readContents: (policy, known) => loadContents(ctx.pce, policy, known, ctx, kinds),
    named: [before, after].flatMap((policy) =>
      READ_TYPES.flatMap((type) => [...policy[type].values()] as NamedObject[]),
    ),
  }
}

function usersOf(policy: WholePolicy): PolicyUsers {
  const all = <T>(type: ReadType) => [...policy[type].values()] as unknown as T[]
  return {
    ruleSets: all<RuleSet>('rule_sets'),
    boundaries: all<EnforcementBoundary>('enforcement_boundaries'),
    labelGroups: all<PceObject>('label_groups'),
    others: [
      ...all<PceObject>('virtual_services'),
      ...all<PceObject>('virtual_servers'),
      ...all<PceObject>('firewall_settings'),
    ],
  }
}

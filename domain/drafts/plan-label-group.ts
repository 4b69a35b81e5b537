import { ToolError } from '../../schemas/errors.js'
import type { Label, LabelGroup } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { readDimensions } from '../inventory/find-dimension.js'
import { describeObject, findObject } from '../inventory/find-object.js'
import { createGroupTree } from '../inventory/label-groups.js'
import { adviseOn, isUnresolved, loadLabels, resolveLabel, type LabelReference } from '../inventory/labels.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import { explainPending } from './pending-deletion.js'

type Ctx = Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>

/** The members of a label group as a caller names them. A list that the caller did not give is absent. */
export interface MemberArguments {
  labels?: readonly LabelReference[]
  sub_groups?: readonly string[]
}

/** The members that were found, each once and in the caller's order. A list that the caller did not give is absent. */
export interface Members {
  labels?: readonly Label[]
  sub_groups?: readonly LabelGroup[]
}

/**
 * Finds the labels and label groups that a caller names. The labels are read from the PCE, because a cached label may
 * have been renamed. Nothing is dropped: a name that matches nothing is an error.
 *
 * @param argumentOf the names of the two arguments, for the errors.
 * @throws {ToolError} label_not_found; the errors of `findObject`; invalid_argument for a group whose deletion is
 * pending.
 */
export async function findMembers(
  ctx: Ctx,
  { labels, sub_groups: groups }: MemberArguments,
  argumentOf: { labels: string; sub_groups: string } = { labels: 'labels', sub_groups: 'sub_groups' },
): Promise<Members> {
  const found: LabelGroup[] = []
  for (const text of groups ?? []) {
    const reference = text.trim().startsWith('/') ? { href: text } : { name: text }
    const group = await findObject(ctx.pce, 'label_groups', reference, ctx.signal)
    const pending = explainPending('label_groups', group)
    if (pending !== undefined)
      throw new ToolError('invalid_argument', `${argumentOf.sub_groups}: ${pending.why}`, {
        argument: argumentOf.sub_groups,
        ...pending.details,
      })
    found.push(group)
  }
  return {
    ...(labels !== undefined && { labels: once(await findLabels(ctx, labels, argumentOf.labels)) }),
    ...(groups !== undefined && { sub_groups: once(found) }),
  }
}

async function findLabels(ctx: Ctx, references: readonly LabelReference[], argument: string): Promise<Label[]> {
  if (references.length === 0) return []
  const index = await loadLabels(ctx.pce, ctx, 'fresh')
  return references.map((reference) => {
    const found = resolveLabel(index, reference)
    if (!isUnresolved(found)) return found
    const text = `${argument}: No label matches ${quote(found.ref)} exactly. ${adviseOn(found)}`.trimEnd()
    throw new ToolError('label_not_found', text, { argument, label: found.ref, valid_values: found.valid })
  })
}

const once = <T extends { href: string }>(items: readonly T[]): T[] => [
  ...new Map(items.map((item) => [toDraftHref(item.href), item])).values(),
]

/**
 * Determines the key of a new label group: the given key, or else that of its members.
 *
 * @throws {ToolError} invalid_argument if a member has another key (P15), if there is neither a key nor a member, or if
 * the organisation has no such key.
 */
export async function requireKey(ctx: Ctx, given: string | undefined, members: Members): Promise<string> {
  const own = [...(members.labels ?? []), ...(members.sub_groups ?? [])]
  const key = given ?? own[0]?.key
  if (key === undefined) {
    const text = 'key: A label group without members needs the key of its labels, such as env.'
    throw new ToolError('invalid_argument', text, { argument: 'key' })
  }
  refuseOtherKeys(key, members)
  if (own.length > 0) return key
  const keys = (await readDimensions(ctx.pce, ctx.signal)).map((dimension) => dimension.key)
  if (keys.includes(key)) return key
  const text = `key: No label has the key ${quote(key)}. Keys: ${keys.map(quote).join(', ')}.`
  throw new ToolError('invalid_argument', text, { argument: 'key', keys })
}

/**
 * Throws invalid_argument if a member has another key than the label group, because all members of a group have one key
 * (P15).
 */
export function refuseOtherKeys(
  key: string,
  { labels = [], sub_groups: groups = [] }: Members,
  argumentOf: { labels: string; sub_groups: string } = { labels: 'labels', sub_groups: 'sub_groups' },
): void {
  const label = labels.find((one) => one.key !== key)
  const group = groups.find((one) => one.key !== key)
  if (label === undefined && group === undefined) return
  const what =
    label === undefined
      ? `the label group ${quote(group?.name ?? '')} has the key ${quote(group?.key ?? '')}`
      : `${quote(`${label.key}=${label.value}`)} has another`
  const argument = label === undefined ? argumentOf.sub_groups : argumentOf.labels
  const text = `${argument}: All members of a label group have one key, here ${quote(key)}; ${what}.`
  throw new ToolError('invalid_argument', text, { argument, key, href: (label ?? group)?.href })
}

/**
 * Throws invalid_argument if a label group would contain itself, directly or through other groups. A PCE would refuse
 * this without saying through which group.
 */
export async function refuseCycle(
  { pce, signal }: Ctx,
  own: LabelGroup,
  groups: readonly LabelGroup[],
  argument = 'sub_groups',
): Promise<void> {
  if (groups.length === 0) return
  const all = await fetchEvery<LabelGroup>({ api: pce.labelGroups, params: {}, signal })
  const tree = createGroupTree(all.items)
  const id = toDraftHref(own.href)
  const isOwn = ({ href }: { href: string }) => toDraftHref(href) === id
  const wrong = groups.find((group) => isOwn(group) || tree.membersOf(group).groups.some(isOwn))
  if (wrong === undefined) return
  const how = isOwn(wrong) ? 'it is this one' : `it contains ${describeObject('label_groups', own)} already`
  const text = `${argument}: ${quote(wrong.name)} cannot be in ${quote(own.name)}, since ${how}.`
  throw new ToolError('invalid_argument', text, { argument, href: toDraftHref(wrong.href) })
}

/** Returns the request fields for the members of a label group. */
export const membersBody = ({ labels, sub_groups: groups }: Members) => ({
  ...(labels !== undefined && { labels: labels.map(({ href }) => ({ href })) }),
  ...(groups !== undefined && { sub_groups: groups.map(({ href }) => ({ href: toDraftHref(href) })) }),
})

/** Members to add to a label group and to remove from it. */
export interface MemberEdit {
  add: Members
  remove: Members
}

/**
 * Returns the lists of members after an edit; a list that does not change is absent. Members that the edit does not
 * mention stay, including those that somebody else has added in the meantime.
 *
 * @throws {ToolError} not_found if a member to remove is not in the group.
 */
export function editMembers(
  current: LabelGroup,
  { add, remove }: MemberEdit,
): { labels?: object[]; sub_groups?: object[] } {
  const labels = editList(current.labels ?? [], add.labels ?? [], remove.labels ?? [])
  const groups = editList(current.sub_groups ?? [], add.sub_groups ?? [], remove.sub_groups ?? [])
  const missing = [
    ...labels.missing.map((label) => `${label.key ?? ''}=${label.value ?? ''}`),
    ...groups.missing.map(({ name }) => name),
  ]
  if (missing.length > 0) {
    const text = `${describeObject('label_groups', current)} does not have ${missing.map(quote).join(', ')} itself.`
    throw new ToolError('not_found', text.replace(/^the/u, 'The'), { argument: 'remove', not_in_group: missing })
  }
  return {
    ...(labels.isChanged && { labels: labels.after }),
    ...(groups.isChanged && { sub_groups: groups.after }),
  }
}

function editList<T extends { href: string }>(
  before: readonly { href: string }[],
  add: readonly T[],
  remove: readonly T[],
) {
  const idOf = ({ href }: { href: string }) => toDraftHref(href)
  const there = new Set(before.map(idOf))
  const gone = new Set(remove.map(idOf))
  const added = add.filter((one) => !there.has(idOf(one)))
  return {
    after: [...before.filter((one) => !gone.has(idOf(one))), ...added].map((one) => ({ href: idOf(one) })),
    missing: remove.filter((one) => !there.has(idOf(one))),
    isChanged: added.length > 0 || gone.size > 0,
  }
}

const GROUP = 'labelgroup:'

/** Splits references to members into labels and label groups (`labelgroup:NAME`, or an href). */
export function splitMembers(references: readonly LabelReference[] | undefined): MemberArguments {
  if (references === undefined) return {}
  const groups = references.map(groupOf)
  return {
    labels: references.filter((_reference, at) => groups[at] === null),
    sub_groups: groups.filter((group) => group !== null),
  }
}

function groupOf(reference: LabelReference): string | null {
  const text = trimBlanks((typeof reference === 'string' ? reference : reference.href) ?? '')
  if (typeof reference === 'string' && text.startsWith(GROUP)) return trimBlanks(text.slice(GROUP.length))
  return parseHref(text)?.kind === 'label_groups' ? text : null
}

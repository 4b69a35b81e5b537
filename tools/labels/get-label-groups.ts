import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { DetailLevel, Nullable, type PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelReference, LabelsOut, LabelOut } from '../../schemas/label-reference.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelGroup, LabelRef } from '../../schemas/pce/label.js'
import { ExactInput, Part, PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { fetchEvery } from '../../domain/inventory/fetch-every.js'
import { readPolicyUsers } from '../../domain/inventory/find-uses.js'
import {
  createGroupTree,
  locateGroups,
  type GroupMembers,
  type GroupTree,
  type GroupUse,
} from '../../domain/inventory/label-groups.js'
import { labelExpander, resolveLabels, unresolvedFilter } from '../../domain/inventory/labels.js'
import { allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { parseHref, toDraftHref } from '../../domain/inventory/parse-href.js'
import { readPolicyVersion, requirePolicyVersion, versionInCursor } from '../../domain/inventory/policy-version.js'
import { reasonOf } from '../../domain/inventory/pce-errors.js'
import { quote } from '../../domain/text/escape-text.js'
import { fitRow } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, fetchSlice, pageSize, defaultSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { showLabelOf } from '../answers/show-label.js'

const NAME = 'get-label-groups'
/** Maximum number of objects that a row lists as referring to a label group, unless the caller asked for all. */
const MOST_USERS = 10

const UserOut = Type.Object({
  type: Type.String({ description: 'rule_sets, label_groups, virtual_services …' }),
  href: Type.Optional(Type.String()),
  name: Type.String(),
  in: Type.Optional(
    Type.Array(Type.String(), { description: 'scopes, providers, consumers, ip_tables_rules: where it is named' }),
  ),
  rules: Type.Optional(Type.Integer({ description: 'Rules that name it' })),
  through: Type.Optional(
    Type.Array(Type.String(), { description: 'Groups around it that are named instead; absent: it is named itself' }),
  ),
  also_through: Type.Optional(Type.Array(Type.String(), { description: 'Groups around it that are named too' })),
  off: Type.Optional(Type.Boolean({ description: 'Disabled' })),
})
type UserOut = Static<typeof UserOut>

const Row = Type.Object({
  href: Type.String(),
  name: Type.String(),
  key: Type.String(),
  description: Nullable(Type.String()),
  labels: LabelsOut(LabelOut, 'Its own, as key=value'),
  sub_groups: Type.Optional(Type.Array(Type.String(), { description: 'Names of the label groups directly in it' })),
  all_labels: Type.Optional(LabelsOut(LabelOut, 'With those of all groups inside it; absent: labels has them')),
  members_note: Type.Optional(Type.String({ description: 'What is wrong with the groups inside it' })),
  used_by: Type.Optional(Type.Array(UserOut, { description: 'What names it, or a group around it' })),
  used_by_total: Type.Optional(Type.Integer({ description: 'All of them; 0: nothing' })),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  omitted: Type.Optional(Type.String({ description: 'What was cut' })),
})

const output = Type.Object({
  label_groups: Type.Array(Type.Partial(Row), { description: 'This page' }),
  used_by_error: Type.Optional(Type.String({ description: 'Why used_by is missing' })),
  ...PolicyVersionOut,
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Label groups: labels, groups inside them, and what uses each.',
  effect: 'read',
  reads: 'shown',
  toolset: 'rules-plus',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: { atMost: 10, and: 'one for each rule set on releases that list deny rules apart' },
  input: Type.Object(
    {
      name: Part(),
      description: Part(),
      ...ExactInput,
      key: Type.Optional(Type.String({ minLength: 1, description: 'Label key: role, app …', listed: 'Exact' })),
      label: Type.Optional(
        Type.Union([...LabelReference.anyOf], {
          description: 'That it holds, itself or through a group inside it',
          listed: 'Also through groups',
        }),
      ),
      href: Type.Optional(Type.String({ description: 'One label group', listed: '' })),
      ...PolicyVersionInput,
      detail_level: DetailLevel('full: every user, labels as objects'),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { key: 'env' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults, fields, policy_version: asked, detail_level: detail, ...given } = args
    const version = readPolicyVersion(asked)
    const question = { ...given, ...versionInCursor(version) }
    const select = selectFields(fields, Row)
    const { exact, label, href, ...filters } = given
    const own = href === undefined ? undefined : requireGroupHref(href, pce.orgId)
    const position = await decodeCursor(ctx, NAME, question, cursor)
    await requirePolicyVersion(pce, version, signal)
    const [wanted] = await resolveLabels(pce, label === undefined ? [] : [label], ctx, unresolvedFilter)
    const wantsUses = fields === undefined || fields.some((field) => field.startsWith('used_by'))
    const { groups, uses, error } = await readAll(ctx, version, wantsUses)
    const tree = createGroupTree(groups)
    const ownFilter = allOf<LabelGroup>(
      matchExactly(exact, filters, { name: ({ name }) => [name], description: ({ description: text }) => [text] }),
      own === undefined ? undefined : (group) => toDraftHref(group.href) === own,
      wanted === undefined
        ? undefined
        : (group) => tree.membersOf(group).labels.some((member) => member.href === wanted.href),
    )
    const query = { api: pce.labelGroups, policyVersion: version, params: filters, signal }
    const slice = await fetchSlice(
      query,
      position,
      pageSize(maxResults ?? defaultSize(detail, LONG_ROWS), limits, fields),
      ownFilter,
    )
    if (own !== undefined && slice.totalCount === 0)
      throw new ToolError('not_found', `No label group has the href ${quote(String(href))}.`, { href })
    const resolved = slice.items.map((group) => ({ group, members: tree.membersOf(group) }))
    const expand = await labelExpander(
      pce,
      resolved.flatMap(({ members }) => members.labels),
      ctx,
    )
    const show = (label: LabelRef) => showLabelOf(expand(label), detail)
    const shown = resolved.map(({ group, members }) => {
      const row = {
        ...showGroup(group, members, tree, show),
        ...(uses !== undefined && showUses(findUsers(group, tree, uses), detail === 'full')),
        ...(group.update_type != null && { update_type: group.update_type }),
      }
      return fitRow(select(row), limits)
    })
    const facts = { policy_version: String(version), ...(error !== undefined && { used_by_error: error }) }
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, { label_groups: [], ...facts })
    return { label_groups: rows, ...facts, ...paging }
  },
})

function requireGroupHref(href: string, orgId: string): string {
  const parsed = parseHref(href.trim())
  if (parsed?.kind === 'label_groups' && parsed.id !== undefined && parsed.org === orgId)
    return toDraftHref(href.trim())
  throw new ToolError('invalid_href', `${quote(href)} is not the href of a label group in organisation ${orgId}.`, {
    href,
  })
}

interface Everything {
  groups: readonly LabelGroup[]
  /**
   * The objects that refer to each label group, by href of the group; absent if they were not requested or could not be
   * read.
   */
  uses?: ReadonlyMap<string, readonly GroupUse[]>
  error?: string
}

/**
 * Reads all label groups of a version and the objects that refer to them. If these objects cannot be read, the groups
 * are still returned.
 */
async function readAll(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  policyVersion: PolicyVersionSelector,
  wantsUses: boolean,
): Promise<Everything> {
  const readGroups = async () =>
    (await fetchEvery<LabelGroup>({ api: pce.labelGroups, policyVersion, params: {}, signal })).items
  if (!wantsUses) return { groups: await readGroups() }
  try {
    const users = await readPolicyUsers(pce, policyVersion, signal)
    return { groups: users.labelGroups as readonly LabelGroup[], uses: locateGroups(users) }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { groups: await readGroups(), error: `Who uses them could not be read: ${reasonOf(error)}` }
  }
}

function showGroup(
  group: LabelGroup,
  { labels, groups, missing, isCyclic }: GroupMembers,
  tree: GroupTree,
  show: (label: LabelRef) => string | Static<typeof LabelOut>,
) {
  const { href, name, key, description } = group
  const subGroups = group.sub_groups ?? []
  const names = new Map(groups.map((inner) => [toDraftHref(inner.href), inner.name]))
  const inCircle = groups.filter((inner) => tree.membersOf(inner).isCyclic).map((inner) => inner.name)
  if (isCyclic) inCircle.unshift(name)
  const notes = [
    inCircle.length > 0 ? `These label groups contain themselves: ${inCircle.map(quote).join(', ')}. ` : '',
    missing.length > 0
      ? `Not in this version of the policy: ${missing.map(quote).join(', ')}. Their labels are missing here.`
      : '',
  ]
  const note = notes.join('').trim()
  return {
    href,
    name,
    key,
    description: description ?? null,
    labels: (group.labels ?? []).map(show),
    ...(subGroups.length > 0 && {
      sub_groups: subGroups.map((inner) => names.get(toDraftHref(inner.href)) ?? inner.name ?? inner.href),
      all_labels: labels.map(show),
    }),
    ...(note !== '' && { members_note: note }),
  }
}

/**
 * Returns the objects that refer to a group: first those that name the group itself, then those that name a group that
 * contains it. Each object is listed once, with all containing groups that it names.
 */
function findUsers(group: LabelGroup, tree: GroupTree, uses: ReadonlyMap<string, readonly GroupUse[]>): UserOut[] {
  const idOf = ({ type, href }: GroupUse) => `${type} ${href}`
  const holders = tree.holdersOf(group)
  const around = new Map<string, { uses: GroupUse[]; through: string[] }>()
  for (const { group: holder } of holders) {
    for (const use of uses.get(toDraftHref(holder.href)) ?? []) {
      const known = around.get(idOf(use)) ?? { uses: [], through: [] }
      around.set(idOf(use), { uses: [...known.uses, use], through: [...known.through, holder.name] })
    }
  }
  const direct = (uses.get(toDraftHref(group.href)) ?? []).map((use) => {
    const also = around.get(idOf(use))?.through
    around.delete(idOf(use))
    return { ...showUse([use]), ...(also !== undefined && { also_through: also }) }
  })
  return [
    ...direct,
    ...holders
      .filter(({ isDirect }) => isDirect)
      .map(({ group: { href, name } }) => ({ type: 'label_groups', href, name })),
    ...[...around.values()].map((one) => ({ ...showUse(one.uses), through: one.through })),
  ]
}

/** Shows one object that refers to the group, with every place in which it does. */
function showUse(uses: readonly GroupUse[]): UserOut {
  const { type, href, name, isOff } = uses[0] as GroupUse
  const places = new Set(uses.flatMap((use) => [...use.places]))
  const rules = new Set(uses.flatMap((use) => [...use.rules]))
  return {
    type,
    ...(href !== '' && { href }),
    name,
    ...(places.size > 0 && { in: [...places] }),
    ...(rules.size > 0 && { rules: rules.size }),
    ...(isOff && { off: true }),
  }
}

function showUses(users: readonly UserOut[], isFull: boolean): { used_by: UserOut[]; used_by_total: number } {
  return { used_by: isFull ? [...users] : users.slice(0, MOST_USERS), used_by_total: users.length }
}

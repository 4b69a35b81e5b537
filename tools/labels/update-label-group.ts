import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelGroupWrittenOut, MembersInput, SomeMembersInput } from '../../schemas/label-group-shapes.js'
import { NewName } from '../../schemas/new-name.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import type { LabelGroup } from '../../schemas/pce/label.js'
import { PolicyChangeOut } from '../../schemas/policy-changes.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import type { ToolContext } from '../../domain/call.js'
import { refuseOverwriting, requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { cutsNothing, judgeEdit, warnOfEffect } from '../../domain/drafts/judge-edit.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import {
  editMembers,
  findMembers,
  membersBody,
  refuseCycle,
  refuseOtherKeys,
  splitMembers,
  type MemberEdit,
  type Members,
} from '../../domain/drafts/plan-label-group.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { describeObject, findByHref, findObject } from '../../domain/inventory/find-object.js'
import type { Judgement } from '../../domain/policy/judge-change.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { showWrittenGroup } from '../answers/show-label-group.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { defineTool } from '../define.js'

const { effect, effect_note, effect_by_rule_type, risks, used_by } = PolicyChangeOut.properties

const output = Type.Object({
  ...UpdateOutput,
  ...ObservedOut,
  ...Type.Partial(LabelGroupWrittenOut).properties,
  effect,
  effect_note,
  effect_by_rule_type,
  risks,
  used_by,
  ...AssumesOut,
})

const input = Type.Object(
  {
    href: Type.Optional(Type.String({ description: 'Or name' })),
    name: ByName,
    new_name: Type.Optional(NewName('Rename')),
    description: Type.Optional(Type.String({ description: 'Text' })),
    add: SomeMembersInput('Labels, labelgroup:NAME; others stay'),
    remove: SomeMembersInput('As add'),
    ...MembersInput,
    ...DryRunInput,
  },
  { additionalProperties: false },
)
type Arguments = Static<typeof input>

export default defineTool({
  name: 'update-label-group',
  summary: 'Add or remove members of a label group, or replace its fields. dry_run says what that permits and cuts.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  idempotent: false,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads the rules that use the group and the traffic that the change would cut.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  pceRequests: {
    atMost: 12,
    and: 'two for each named group; in a dry run what that of edit-ip-list-ranges sends',
  },
  input,
  output,
  example: { name: 'NonProd', add: ['env=staging'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, new_name: newName, dry_run: dryRun } = args
    refuseBothWays(args)
    if (newName !== undefined) refuseHidden({ new_name: newName })
    const found: LabelGroup = await findObject(pce, 'label_groups', { href, name }, signal)
    const asked = await readMembers(ctx, args)
    const fields = {
      new_name: newName,
      description: args.description,
      labels: args.labels,
      sub_groups: args.sub_groups,
    }
    requireFields({ ...fields, add: args.add, remove: args.remove }, [...Object.keys(fields), 'add', 'remove'])
    for (const { members, argumentOf } of asked.added) {
      refuseOtherKeys(found.key, members, argumentOf)
      await refuseCycle(ctx, found, members.sub_groups ?? [], argumentOf.sub_groups)
    }
    if (newName !== undefined) await refuseTakenName(pce, 'label_groups', newName, signal, found)
    const own = { name: newName, description: args.description, ...membersBody(asked.all) }
    if (dryRun === true) return update(ctx, args, found, { ...own, ...editMembers(found, asked.edit) }, asked)
    return ctx.inOrder(orderOf('label_groups', found.name), async () => {
      // The group is read again, because another call may have edited its members while this call waited for its turn.
      const now = await findByHref(pce, 'label_groups', found.href, 'draft', signal)
      refuseOverwriting(describeObject('label_groups', found), { before: found, now, body: own })
      return update(ctx, args, now, { ...own, ...editMembers(now, asked.edit) }, asked)
    })
  },
})

/** Throws conflicting_identifiers if members are given both as complete lists and as an edit. */
function refuseBothWays({ labels, sub_groups: groups, add, remove }: Arguments): void {
  if ((labels ?? groups) === undefined || (add ?? remove) === undefined) return
  const text = 'Give all members (labels, sub_groups), or those to add and remove, not both.'
  throw new ToolError('conflicting_identifiers', text, { arguments: ['labels', 'sub_groups', 'add', 'remove'] })
}

const ADD = { labels: 'add', sub_groups: 'add' }
const REMOVE = { labels: 'remove', sub_groups: 'remove' }
const ALL = { labels: 'labels', sub_groups: 'sub_groups' }

interface AskedMembers {
  all: Members
  edit: MemberEdit
  /** The members that the group may gain, with the names of the arguments that gave them. */
  added: { members: Members; argumentOf: typeof ALL }[]
}

/** Finds all members that the call names. Throws invalid_argument for a member that is to be both added and removed. */
async function readMembers(ctx: ToolContext<true>, args: Arguments): Promise<AskedMembers> {
  const all = await findMembers(ctx, { labels: args.labels, sub_groups: args.sub_groups }, ALL)
  const add = await findMembers(ctx, splitMembers(args.add), ADD)
  const remove = await findMembers(ctx, splitMembers(args.remove), REMOVE)
  const hrefs = ({ labels = [], sub_groups: groups = [] }: Members) => [...labels, ...groups].map(({ href }) => href)
  const removed = new Set(hrefs(remove))
  const both = hrefs(add).filter((href) => removed.has(href))
  if (both.length > 0)
    throw new ToolError('invalid_argument', 'remove: A member cannot be both added and removed.', {
      argument: 'remove',
      both,
    })
  return {
    all,
    edit: { add, remove },
    added: [
      { members: all, argumentOf: ALL },
      { members: add, argumentOf: ADD },
    ],
  }
}

async function update(
  ctx: ToolContext<true>,
  args: Arguments,
  current: LabelGroup,
  body: { labels?: object[]; sub_groups?: object[]; [field: string]: unknown },
  { added }: AskedMembers,
): Promise<Static<typeof output>> {
  const { pce } = ctx
  const { labels, sub_groups: groups } = body
  const isMoved = labels !== undefined || groups !== undefined
  const fields = { ...(labels !== undefined && { labels }), ...(groups !== undefined && { sub_groups: groups }) }
  const judged: Judgement =
    args.dry_run === true && isMoved && ctx.isBindingOnly !== true
      ? await judgeEdit(ctx, 'label_groups', current, fields)
      : {}
  const plan = {
    what: describeObject('label_groups', current),
    current,
    body,
    read: (changed: string) => pce.labelGroups.getByReference(changed),
    isFresh: true,
    warnings: [...warnOfSentences({ new_name: args.new_name }), ...warnOfEffect(judged, 'label group')],
  }
  const answer = await updateObject(ctx, plan, args.dry_run)
  const { stored, updated_fields: written = [] } = answer
  const { expand, warnings: unnamed } = await nameLabels(ctx, stored.labels, written.length > 0)
  const { warnings, ...observed } = showObserved(
    cutsNothing(judged) ? null : await observeDryRun(ctx, answer, { is: 'label_group', group: stored }),
  )
  const { assumes: _assumes, ...judgement } = judged
  const known = [...(current.sub_groups ?? []), ...added.flatMap(({ members }) => members.sub_groups ?? [])]
  return fitAnswer(
    {
      ...withoutStored(answer),
      ...observed,
      ...withWarnings([...warnings, ...unnamed], answer.warnings),
      ...showWrittenGroup(stored, expand, known),
      ...judgement,
      ...showAssumedBy([judged]),
    },
    ctx.limits,
  )
}

import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { ByName } from '../../schemas/by-name.js'
import { DetailLevel } from '../../schemas/common.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { FqdnInput, IpRangeInput } from '../../schemas/ip-list-shapes.js'
import { ObjectOrText } from '../../schemas/label-reference.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { PolicyChangeOut } from '../../schemas/policy-changes.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { warnOfWideList } from '../../domain/drafts/warn-of-wide-list.js'
import { warnOfTwinList } from '../../domain/drafts/warn-of-twin-list.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import {
  hasSameEntries,
  planEdit,
  readEdit,
  type ListEdit,
  type Moved,
  type PlannedEdit,
} from '../../domain/drafts/edit-ip-list.js'
import { cutsNothing, judgeEdit, warnOfEffect } from '../../domain/drafts/judge-edit.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { describeObject, findByHref, findObject } from '../../domain/inventory/find-object.js'
import { warnOfBuiltIn } from '../../domain/inventory/find-uses.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import type { Judgement } from '../../domain/policy/judge-change.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { quote } from '../../domain/text/escape-text.js'
import { abbreviateRequests } from '../answers/abbreviate-requests.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { fitAnswer } from '../answers/byte-budget.js'

/** Maximum number of gained or lost address ranges named in an answer. */
const MOST_NAMED = 20
/** Maximum number of attempts to edit a list that keeps changing. */
const MOST_ROUNDS = 3

const RangeInput = ObjectOrText<IpRangeInput>(IpRangeInput.properties, ['from_ip'])

const MovedOut = (description: string) =>
  Type.Optional(
    Type.Object(
      {
        addresses: Type.String({ description: 'How many, in digits' }),
        ranges: Type.Array(Type.String(), { description: `Which: networks or first-last, the first ${MOST_NAMED}` }),
        ranges_total: Type.Optional(Type.Integer({ description: 'Where there are more' })),
      },
      { description },
    ),
  )

const { previous: _previous, ...Update } = { ...UpdateOutput, ...ObservedOut }
const { effect, effect_note, effect_by_rule_type, risks, used_by } = PolicyChangeOut.properties

const output = Type.Object({
  ...Update,
  href: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  added: Type.Optional(Type.Array(Type.String(), { description: 'Entries added; ! in front is an exclusion' })),
  removed: Type.Optional(Type.Array(Type.String(), { description: 'Entries removed' })),
  already_there: Type.Optional(Type.Array(Type.String(), { description: 'Not added: the list has them' })),
  gained: MovedOut('Addresses that the list has now and had not'),
  lost: MovedOut('Addresses that the list had and has no more'),
  ranges_total: Type.Optional(Type.Integer({ description: 'Ranges and exclusions it has now' })),
  fqdns_total: Type.Optional(Type.Integer({ description: 'Domain names it has now' })),
  effect,
  effect_note,
  effect_by_rule_type,
  risks,
  used_by,
  ...AssumesOut,
})

export default defineTool({
  name: 'edit-ip-list-ranges',
  summary: 'Add and remove ranges, exclusions and domain names of an IP list; others stay.',
  effect: 'write',
  scope: 'objects',
  toolset: 'rules-plus',
  idempotent: false,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 18,
    and: 'where rules use the list, one or two for each other object that these name; two for each rule set on releases that list deny rules apart; in a dry run of an edit that may permit less, up to twelve for the draft and the traffic, 20 for the modes of its ends or the list of managed workloads, six more for active policy where anything is pending, one for each rule set of both on releases that list deny rules apart, and up to ten for addresses that the traffic names from off the corporate network; all of these again if somebody else changes the list during the call',
  },
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'The href of the IP list, unless name is given', listed: '' })),
      name: ByName,
      add_ranges: Type.Optional(
        Type.Array(RangeInput, {
          maxItems: 2_000,
          description: 'Addresses, CIDRs or first to last; exclusions',
          listed: '',
        }),
      ),
      remove_ranges: Type.Optional(
        Type.Array(RangeInput, { maxItems: 2_000, description: 'Whole entries of the list', listed: 'Whole entries' }),
      ),
      add_fqdns: Type.Optional(
        Type.Array(FqdnInput.fqdns.items, { maxItems: 1_000, description: 'Domain names to add', listed: '' }),
      ),
      remove_fqdns: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          maxItems: 1_000,
          description: 'Domain names to remove',
          listed: '',
        }),
      ),
      detail_level: DetailLevel('full: lists whole'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Branch offices', add_ranges: [{ from_ip: '198.51.100.0/24' }] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, dry_run: dryRun, detail_level: detail = 'standard', ...asked } = args
    const edit = readEdit(asked)
    const found: IpList = await findObject(pce, 'ip_lists', { href, name }, signal)
    if (dryRun === true) return editList(ctx, found, edit, detail)
    return ctx.inOrder(orderOf('ip_lists', found.name), async (turn) => {
      const answer = await editList(ctx, found, edit, null)
      turn.note(found.href)
      return answer
    })
  },
})

/**
 * Plans the edit of the list as it is now, writes it unless this is a dry run, and describes its effect. `dry` is the
 * level of detail of a dry run, and null for a real call.
 */
async function editList(
  ctx: ToolContext<true>,
  found: IpList,
  edit: ListEdit,
  dry: 'standard' | 'full' | null,
): Promise<Static<typeof output>> {
  const { pce, signal, limits } = ctx
  const dryRun = dry !== null
  let current = found
  let planned = planEdit(current, edit)
  let judged = await judge(ctx, current, planned)
  const changes: string[] = []
  for (let round = 1; !dryRun && hasChange(planned); round += 1) {
    // The PCE does not detect concurrent changes (P7), so the list is read again to keep what others have changed
    // meanwhile.
    const now = await findByHref(pce, 'ip_lists', current.href, 'draft', signal)
    if (hasSameEntries(now, current)) break
    if (round === MOST_ROUNDS) throw changesTooOften(current)
    current = now
    planned = planEdit(current, edit)
    judged = await judge(ctx, current, planned)
    changes[0] = 'Somebody else changed the list during this call: the edit was planned again on what it is now.'
  }
  const entries = { ip_ranges: current.ip_ranges, fqdns: current.fqdns, ...planned.body }
  const plan = {
    what: describeObject('ip_lists', current),
    current,
    body: planned.body,
    read: (changed: string) => pce.ipLists.getByReference(changed),
    isFresh: true,
    warnings: [
      ...changes,
      ...warnOfBuiltIn(current),
      ...planned.warnings,
      ...warnOfEffect(judged, 'list'),
      ...(planned.gained.addresses > 0n && judged.risks?.includes('any_address') !== true
        ? await warnOfWideList(entries, ctx.signal)
        : []),
      ...(hasChange(planned) ? await warnOfTwinList(ctx, entries, current.href) : []),
    ],
  }
  const answer = await updateObject(ctx, plan, dryRun)
  const { warnings, ...observed } = showObserved(
    cutsNothing(judged) ? null : await observeDryRun(ctx, answer, { is: 'ip_list', list: answer.stored }),
  )
  const { previous: _before, message, ...shown } = withoutStored(answer)
  const { requests } = shown
  const { assumes: _assumes, ...judgement } = judged
  return fitAnswer(
    {
      message: hasChange(planned) ? describeEdit(message, planned) : message,
      ...shown,
      ...(dryRun && requests !== undefined && { requests: abbreviateRequests(requests, { detail: dry, limits }) }),
      ...observed,
      ...withWarnings(warnings, answer.warnings),
      ...show(current, planned),
      ...judgement,
      ...showAssumedBy([judged]),
    },
    limits,
  )
}

const hasChange = ({ body }: PlannedEdit) => Object.keys(body).length > 0

function changesTooOften({ name, href }: IpList): ToolError {
  return new ToolError(
    'busy',
    `The IP list ${quote(name)} was changed by somebody else ${MOST_ROUNDS} times during this call. Nothing was written.`,
    { href },
    { hint: 'Find out who changes it, and repeat the call.' },
  )
}

/** Determines how the edit affects the permitted traffic, based on the active and draft rules that use the list. */
const judge = async (ctx: ToolContext<true>, current: IpList, planned: PlannedEdit): Promise<Judgement> =>
  hasChange(planned) ? judgeEdit(ctx, 'ip_lists', current, planned.body) : {}

/** Replaces the list of sent fields in a message with the number of added and removed entries of the IP list. */
function describeEdit(message: string, { body, added, removed }: PlannedEdit): string {
  const parts = [
    added.length > 0 ? countOf(added.length, 'addition') : '',
    removed.length > 0 ? countOf(removed.length, 'removal') : '',
  ]
  const fields = `: ${Object.keys(body).join(', ')}.`
  const at = message.lastIndexOf(fields)
  return at === -1
    ? message
    : `${message.slice(0, at)}: ${parts.filter(Boolean).join(' and ')}.${message.slice(at + fields.length)}`
}

function show({ href, name }: IpList, planned: PlannedEdit) {
  const { added, removed, alreadyThere, gained, lost, ranges, fqdns } = planned
  return {
    href: toDraftHref(href),
    name,
    ...(added.length > 0 && { added }),
    ...(removed.length > 0 && { removed }),
    ...(alreadyThere.length > 0 && { already_there: alreadyThere }),
    ...(gained.addresses > 0n && { gained: showMoved(gained) }),
    ...(lost.addresses > 0n && { lost: showMoved(lost) }),
    ranges_total: ranges,
    fqdns_total: fqdns,
  }
}

function showMoved({ addresses, ranges }: Moved) {
  return {
    addresses: String(addresses),
    ranges: ranges.slice(0, MOST_NAMED),
    ...(ranges.length > MOST_NAMED && { ranges_total: ranges.length }),
  }
}

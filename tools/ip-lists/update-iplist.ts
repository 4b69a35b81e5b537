import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { FqdnInput, IpListWrittenOut, IpRangeInput } from '../../schemas/ip-list-shapes.js'
import { NewName } from '../../schemas/new-name.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { describeObject, findByHref, findObject } from '../../domain/inventory/find-object.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { planFqdns, planRanges, refuseEmptyList } from '../../domain/drafts/plan-ip-list.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { showWrittenIpList } from '../answers/show-policy-objects.js'
import { refuseOverwriting, requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { warnOfWideList } from '../../domain/drafts/warn-of-wide-list.js'
import { warnOfTwinList } from '../../domain/drafts/warn-of-twin-list.js'
import { warnOfBuiltIn } from '../../domain/inventory/find-uses.js'

const output = Type.Object({ ...UpdateOutput, ...ObservedOut, ...Type.Partial(IpListWrittenOut).properties })

export default defineTool({
  name: 'update-iplist',
  summary: 'Replace fields of an IP list.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads the traffic that the change would cut.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByName,
      new_name: Type.Optional(NewName('Rename')),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ip_ranges: Type.Optional(Type.Array(IpRangeInput, { maxItems: 10_000, description: 'All' })),
      ...FqdnInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'partner networks', description: 'Reviewed in March' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, new_name: newName, description, ip_ranges: ranges, fqdn, fqdns, dry_run: dryRun } = args
    if (newName !== undefined) refuseHidden({ new_name: newName })
    const body = {
      name: newName,
      description,
      ip_ranges: ranges === undefined ? undefined : planRanges(ranges),
      fqdns: planFqdns(fqdn, fqdns),
    }
    const found: IpList = await findObject(pce, 'ip_lists', { href, name }, signal)
    requireFields(body, ['new_name', 'description', 'ip_ranges', 'fqdn', 'fqdns'])
    if (newName !== undefined) await refuseTakenName(pce, 'ip_lists', newName, signal, found)
    const isNew = body.ip_ranges !== undefined || body.fqdns !== undefined
    const update = async (current: IpList) => {
      if (isNew) refuseEmptyList(body.ip_ranges, body.fqdns, current)
      const entries = { ip_ranges: body.ip_ranges ?? current.ip_ranges, fqdns: body.fqdns ?? current.fqdns }
      const plan = {
        what: describeObject('ip_lists', current),
        current,
        body,
        read: (changed: string) => pce.ipLists.getByReference(changed),
        isFresh: true,
        warnings: [
          ...warnOfSentences({ new_name: newName }),
          ...warnOfBuiltIn(current),
          ...(isNew ? await warnOfWideList(entries, ctx.signal) : []),
          ...(isNew ? await warnOfTwinList(ctx, entries, current.href) : []),
        ],
      }
      return updateObject(ctx, plan, dryRun)
    }
    // The IP list is read again, because another call may have edited its ranges while this call waited for its turn.
    const answer = await (dryRun === true
      ? update(found)
      : ctx.inOrder(orderOf('ip_lists', found.name), async () => {
          const now = await findByHref(pce, 'ip_lists', found.href, 'draft', signal)
          refuseOverwriting(describeObject('ip_lists', found), { before: found, now, body })
          return update(now)
        }))
    const { warnings, ...observed } = showObserved(
      await observeDryRun(ctx, answer, { is: 'ip_list', list: answer.stored }),
    )
    const shown = { ...withoutStored(answer), ...observed, ...withWarnings(warnings, answer.warnings) }
    return fitAnswer({ ...shown, ...showWrittenIpList(answer.stored) }, ctx.limits)
  },
})

import { Type, type Static } from '@sinclair/typebox'
import { DifferencesOut } from '../../schemas/update-output.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { FqdnInput, IpListWrittenOut, IpRangeInput } from '../../schemas/ip-list-shapes.js'
import { NewName } from '../../schemas/new-name.js'
import { defineTool } from '../define.js'
import { findDifferences, listDifferences } from '../../domain/policy/compare-stored.js'
import { createNamed, refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { planFqdns, planRanges, refuseEmptyList } from '../../domain/drafts/plan-ip-list.js'
import { warnOfWideList } from '../../domain/drafts/warn-of-wide-list.js'
import { warnOfTwinList } from '../../domain/drafts/warn-of-twin-list.js'
import { readBack } from '../../domain/drafts/change-object.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { quote } from '../../domain/text/escape-text.js'
import { showWrittenIpList } from '../answers/show-policy-objects.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  ...Type.Partial(IpListWrittenOut).properties,
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-iplist',
  summary: 'Create an IP list: addresses, networks, domain names.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it compares the list with all others. A real call is not heavy and so never waits for a
  // worker.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  input: Type.Object(
    {
      name: NewName('New name'),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ip_ranges: Type.Array(IpRangeInput, { maxItems: 10_000, description: 'May be [] with fqdns' }),
      ...FqdnInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'partner networks', ip_ranges: [{ from_ip: '198.51.100.0/24' }] },
  async handler(
    { name, description, ip_ranges: ranges, fqdn, fqdns, dry_run: dryRun },
    ctx,
  ): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    refuseHidden({ name })
    const planned = planRanges(ranges)
    const names = planFqdns(fqdn, fqdns)
    refuseEmptyList(planned, names)
    await refuseTakenName(pce, 'ip_lists', name, signal)
    const body = {
      name,
      ...(description !== undefined && { description }),
      ip_ranges: planned,
      ...(names !== undefined && { fqdns: names }),
    }
    const notes = [
      ...warnOfSentences({ name }),
      ...(await warnOfWideList(body, signal)),
      ...(await warnOfTwinList(ctx, body)),
    ]
    if (dryRun === true) {
      const request = { method: 'POST', path: `/orgs/${pce.orgId}/sec_policy/draft/ip_lists`, body }
      const message = `Would create the IP list ${quote(name)} in draft.`
      return fitAnswer(
        { dry_run: true, message, requests: [request], ...(notes.length > 0 && { warnings: notes }) },
        ctx.limits,
      )
    }
    const created = await createNamed(ctx, 'ip_lists', body)
    const { stored, warnings: unread } = await readBack(created, () => pce.ipLists.getByReference(created.href))
    const warnings = [...notes, ...(unread.warnings ?? [])]
    const shown = {
      message: `Created the IP list ${quote(name)} in draft.`,
      ...showWrittenIpList(stored),
      ...listDifferences(findDifferences(body, stored)),
      ...(warnings.length > 0 && { warnings }),
    }
    return fitAnswer(shown, ctx.limits)
  },
})

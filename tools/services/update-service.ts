import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { ServiceListsInput, ServiceOut } from '../../schemas/service-shapes.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { warnOfWideService } from '../../domain/drafts/warn-of-wide-list.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { noteEgress, planService, refuseOtherKind, showDiscarded } from '../../domain/drafts/plan-service.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { showService } from '../answers/show-policy-objects.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { warnOfBuiltIn } from '../../domain/inventory/find-uses.js'

const output = Type.Object({
  ...UpdateOutput,
  ...ObservedOut,
  service: Type.Optional(ServiceOut),
  note: Type.Optional(Type.String()),
  discarded_fields: Type.Optional(Type.Array(Type.String(), { description: 'Dropped by the PCE' })),
})

export default defineTool({
  name: 'update-service',
  summary: 'Replace fields of a service; its kind is fixed.',
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
      ...ServiceListsInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'order api', service_ports: [{ port: 9443, proto: 6 }] },
  async handler(
    { href, name, new_name: newName, description, dry_run: dryRun, ...lists },
    ctx,
  ): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    if (newName !== undefined) refuseHidden({ new_name: newName })
    const planned = planService(lists)
    const current = await findObject(pce, 'services', { href, name }, signal)
    const body = { name: newName, description, ...(planned && { [planned.list]: planned.entries }) }
    requireFields(body, ['new_name', 'description', ...SERVICE_LISTS])
    if (planned !== undefined) refuseOtherKind(current, planned.list)
    if (newName !== undefined) await refuseTakenName(pce, 'services', newName, signal, current)
    const plan = {
      what: describeObject('services', current),
      current,
      body,
      read: (changed: string) => pce.services.getByReference(changed),
      warnings: [
        ...warnOfSentences({ new_name: newName }),
        ...warnOfBuiltIn(current),
        ...(planned === undefined ? [] : warnOfWideService({ [planned.list]: planned.entries })),
      ],
      order: orderOf('services', current.name),
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const { warnings, ...observed } = showObserved(
      await observeDryRun(ctx, answer, { is: 'service', service: answer.stored }),
    )
    const shown = {
      ...withoutStored(answer),
      ...observed,
      ...withWarnings(warnings, answer.warnings),
      service: showService(answer.stored),
      ...noteEgress(planned?.list),
      ...showDiscarded(answer.differences ?? []),
    }
    return fitAnswer(shown, ctx.limits)
  },
})

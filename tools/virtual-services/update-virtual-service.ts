import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import type { VirtualService } from '../../schemas/pce/virtual-service.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { VirtualServiceInput, VirtualServiceOut } from '../../schemas/virtual-service-shapes.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { planVirtualService } from '../../domain/drafts/plan-virtual-service.js'
import { readBindings } from '../../domain/drafts/read-bindings.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { tellUsers } from '../../domain/inventory/find-uses.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { BoundOut, showBound } from '../answers/show-bindings.js'
import { nameLabels } from '../answers/name-labels.js'
import { withWarnings } from '../answers/show-observed.js'
import { showVirtualService } from '../answers/show-virtual-service.js'
import { defineTool } from '../define.js'

const output = Type.Object({ ...UpdateOutput, ...Type.Partial(VirtualServiceOut).properties, ...BoundOut })

export default defineTool({
  name: 'update-virtual-service',
  summary: 'Replace fields of a virtual service. dry_run says what uses it and who is bound to it.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads all rules to find those that use the virtual service.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  pceRequests: { atMost: 18, and: 'two for each rule set on releases that list deny rules apart' },
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByName,
      new_name: Type.Optional(NewName('Rename')),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...VirtualServiceInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'web frontend', description: 'Reviewed in March' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, new_name: newName, description, dry_run: dryRun, ...given } = args
    if (newName !== undefined) refuseHidden({ new_name: newName })
    const found: VirtualService = await findObject(pce, 'virtual_services', { href, name }, signal)
    const planned = await planVirtualService(ctx, given)
    const body: Record<string, unknown> = { name: newName, description, ...planned }
    requireFields(body, ['new_name', 'description', ...Object.keys(VirtualServiceInput)])
    if (newName !== undefined) await refuseTakenName(pce, 'virtual_services', newName, signal, found)
    // A change of only the name or the description does not change what rules mean.
    const isTold = dryRun === true && Object.keys(planned).length > 0 && ctx.isBindingOnly !== true
    const plan = {
      what: describeObject('virtual_services', found),
      current: found,
      body,
      read: (changed: string) => pce.virtualServices.getByReference(changed),
      warnings: [
        ...warnOfSentences({ new_name: newName }),
        ...(isTold ? [...(await tellUsers(pce, found, signal)), NOT_JUDGED] : []),
      ],
      order: orderOf('virtual_services', found.name),
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const { stored, updated_fields: written = [] } = answer
    const { expand, warnings } = await nameLabels(ctx, stored.labels, written.length > 0)
    const bound = isTold ? showBound(await readBindings(ctx, found)) : {}
    const shown = { ...withWarnings(warnings, answer.warnings), ...showVirtualService(stored, expand), ...bound }
    return fitAnswer({ ...withoutStored(answer), ...shown }, ctx.limits)
  },
})

const NOT_JUDGED =
  'Rules through virtual services are not judged here: which traffic this would open or cut is not known.'

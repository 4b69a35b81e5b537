import { Type, type Static } from '@sinclair/typebox'
import { DryRunInput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { NewName } from '../../schemas/new-name.js'
import { CreateOutput } from '../../schemas/update-output.js'
import { VirtualServiceInput, VirtualServiceOut } from '../../schemas/virtual-service-shapes.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { createObject } from '../../domain/drafts/create-object.js'
import { planVirtualService } from '../../domain/drafts/plan-virtual-service.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { withWarnings } from '../answers/show-observed.js'
import { showVirtualService } from '../answers/show-virtual-service.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  ...CreateOutput,
  ...Type.Partial(VirtualServiceOut).properties,
})

export default defineTool({
  name: 'create-virtual-service',
  summary:
    'Create a virtual service that offers a service, or ports. Once provisioned, bind-workloads says who offers it.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 8 },
  input: Type.Object(
    {
      name: NewName('New name'),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...VirtualServiceInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'orders api', service_ports: [{ port: 8443, proto: 6 }], labels: ['app=ordering', 'env=prod'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { name, description, dry_run: dryRun, ...given } = args
    refuseHidden({ name })
    if (given.service === undefined && given.service_ports === undefined) {
      const text = 'A virtual service offers something: give service or service_ports.'
      throw new ToolError('empty_service', text, { arguments: ['service', 'service_ports'] })
    }
    const planned = await planVirtualService(ctx, given)
    const plan = {
      kind: 'virtual_services' as const,
      body: { name, ...(description !== undefined && { description }), ...planned },
      read: (href: string) => ctx.pce.virtualServices.getByReference(href),
      next: 'Workloads can be bound to it once it is provisioned.',
      warnings: warnOfSentences({ name }),
    }
    const { stored, ...answer } = await createObject(ctx, plan, dryRun)
    if (stored === undefined) return fitAnswer(answer, ctx.limits)
    const { expand, warnings } = await nameLabels(ctx, stored.labels, true)
    const shown = { ...answer, ...withWarnings(warnings, answer.warnings), ...showVirtualService(stored, expand) }
    return fitAnswer(shown, ctx.limits)
  },
})

import { Type, type Static } from '@sinclair/typebox'
import { Count } from '../../schemas/common.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import type { VirtualService } from '../../schemas/pce/virtual-service.js'
import { PortOverridesInput } from '../../schemas/virtual-service-shapes.js'
import { WorkloadChoiceInput } from '../../schemas/workload-choice.js'
import { ToolError } from '../../schemas/errors.js'
import { bindingRequests, planBindings, writeBindings, type BindingPlan } from '../../domain/drafts/bind-workloads.js'
import { chooseWorkloads } from '../../domain/enforcement/choose-workloads.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { tellUsers } from '../../domain/inventory/find-uses.js'
import { tellLeftOut } from '../../domain/inventory/kubernetes-workloads.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { BoundOut, showBound } from '../answers/show-bindings.js'
import { defineTool } from '../define.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened, or would' }),
  virtual_service: Type.Object({ href: Type.String(), name: Type.String() }, { description: 'Which' }),
  changed: Count('Workloads bound, or unbound'),
  already: Count('Of those chosen, bound, or not bound, before'),
  ...BoundOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'bind-workloads',
  summary: 'Bind workloads to a provisioned virtual service, or unbind them, at once: policy for it reaches them.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: true,
  // A dry run is heavy, because it reads all rules to find those that use the virtual service.
  isHeavy: true,
  pceRequests: {
    atMost: 18,
    and: 'three for each named workload, one for each 500 workloads that it binds and for each that it unbinds, one for each further 500 bindings or workloads, and two for each rule set on releases that list deny rules apart',
  },
  input: Type.Object(
    {
      virtual_service: Type.String({ minLength: 1, description: 'Name or href' }),
      ...WorkloadChoiceInput,
      port_overrides: PortOverridesInput,
      unbind: Type.Optional(Type.Boolean({ description: 'End their bindings' })),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { virtual_service: 'web frontend', app_name: 'payments', env_name: 'prod', dry_run: true },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { virtual_service: text, port_overrides: overrides, unbind = false, dry_run: dryRun, ...choice } = args
    const reading = { ...ctx, signal: ctx.beforeWriting }
    if (unbind && overrides !== undefined) {
      const why = 'port_overrides belong to new bindings: leave them out, or leave unbind out.'
      throw new ToolError('invalid_argument', why, { argument: 'port_overrides' })
    }
    const reference = text.trim().startsWith('/') ? { href: text } : { name: text }
    const arguments_ = { hrefArgument: 'virtual_service', nameArgument: 'virtual_service' }
    const service: VirtualService = await findObject(
      ctx.pce,
      'virtual_services',
      reference,
      ctx.beforeWriting,
      arguments_,
    )
    const chosen = await chooseWorkloads(reading, choice)
    const left = tellLeftOut(chosen.leftOut)
    const plan = () => planBindings(reading, service, chosen.workloads, { unbind, overrides })
    const what = describeObject('virtual_services', service)
    if (dryRun === true) {
      const planned = await plan()
      const requests = bindingRequests(ctx.pce.orgId, planned)
      const uses = ctx.isBindingOnly === true ? [] : await tellUsers(ctx.pce, service, ctx.beforeWriting)
      const warnings = [...(requests.length > 0 ? [...uses, AT_ONCE] : []), ...left]
      const shown = {
        dry_run: true,
        message: describe(planned, what, 'Would '),
        requests,
        ...counts(planned),
        ...showBound(planned.before),
        ...(warnings.length > 0 && { warnings }),
      }
      return fitAnswer(shown, ctx.limits)
    }
    // Bindings are read and written in one turn, so that two concurrent calls do not bind a workload twice.
    return ctx.inOrder(`bindings of ${service.href}`, async () => {
      const planned = await plan()
      ctx.beforeWriting.throwIfAborted()
      const { after } = await writeBindings(ctx, planned)
      const unread = after === null ? ['The bindings could not be read back to check what was stored.'] : []
      const warnings = [...unread, ...left]
      const shown = {
        message: describe(planned, what, ''),
        ...counts(planned),
        ...(after !== null && showBound(after)),
        ...(warnings.length > 0 && { warnings }),
      }
      return fitAnswer(shown, ctx.limits)
    })
  },
})

const AT_ONCE =
  'Bindings have no draft: this takes effect at once. Rules through virtual services are not judged here, so which traffic it would open or cut is not known.'

const counts = ({ service, bind, unbind, already }: BindingPlan) => ({
  virtual_service: { href: service.href, name: service.name },
  changed: bind.length + unbind.length,
  already: already.length,
})

function describe({ bind, unbind, already }: BindingPlan, what: string, would: '' | 'Would '): string {
  const count = bind.length + unbind.length
  const verb = bind.length > 0 ? (would === '' ? 'Bound' : 'bind') : would === '' ? 'Unbound' : 'unbind'
  const rest =
    already.length > 0
      ? ` ${countOf(already.length, 'workload')} ${already.length === 1 ? 'needs' : 'need'} nothing.`
      : ''
  if (count === 0) return `Nothing to do at ${what}.${rest}`
  return `${would}${verb} ${countOf(count, 'workload')} ${bind.length > 0 ? 'to' : 'from'} ${what}.${rest}`
}

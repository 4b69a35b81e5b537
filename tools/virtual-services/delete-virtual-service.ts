import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { DeleteOutput } from '../../schemas/update-output.js'
import { defineTool } from '../define.js'
import { deleteObject } from '../../domain/drafts/change-object.js'
import { readBindings } from '../../domain/drafts/read-bindings.js'
import { describeObject, findObject } from '../../domain/inventory/find-object.js'
import { findPolicyUsers, warnOfRefusal } from '../../domain/inventory/find-uses.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { BoundOut, showBound } from '../answers/show-bindings.js'

const output = Type.Object({ ...DeleteOutput, name: Type.Optional(Type.String()), ...BoundOut })

export default defineTool({
  name: 'delete-virtual-service',
  summary: 'Delete a virtual service that no rule uses.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 12, and: 'two for each rule set on releases that list deny rules apart' },
  input: Type.Object(
    { href: Type.Optional(Type.String({ description: 'Or name' })), name: ByName, ...DryRunInput },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'retired frontend' },
  async handler({ href, name, dry_run: dryRun }, ctx): Promise<Static<typeof output>> {
    const current = await findObject(ctx.pce, 'virtual_services', { href, name }, ctx.signal)
    const bindings = await readBindings(ctx, current)
    const warnings = dryRun === true ? await warnOfRefusal(ctx.pce, current, ctx.signal) : []
    if (bindings.length > 0) {
      const many = bindings.length === 1 ? 'is' : 'are'
      warnings.push(
        `${countOf(bindings.length, 'workload')} ${many} bound to it. When the deletion is provisioned, they offer it no more; whether the PCE refuses it before they are unbound is not documented.`,
      )
    }
    const plan = {
      what: describeObject('virtual_services', current),
      current,
      warnings,
      explainRefusal: () => findPolicyUsers(ctx.pce, current, ctx.signal),
    }
    const answer = await deleteObject(ctx, plan, dryRun)
    return { ...answer, name: current.name, ...(bindings.length > 0 && showBound(bindings)) }
  },
})

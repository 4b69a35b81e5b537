import { Type, type Static } from '@sinclair/typebox'
import { DifferencesOut } from '../../schemas/update-output.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import { NewName } from '../../schemas/new-name.js'
import { ServiceListsInput, ServiceOut } from '../../schemas/service-shapes.js'
import { defineTool } from '../define.js'
import { warnOfWideService } from '../../domain/drafts/warn-of-wide-list.js'
import { findDifferences, listDifferences } from '../../domain/policy/compare-stored.js'
import { createNamed, refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { noteEgress, planService, showDiscarded } from '../../domain/drafts/plan-service.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import { readBack } from '../../domain/drafts/change-object.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { quote } from '../../domain/text/escape-text.js'
import { showService } from '../answers/show-policy-objects.js'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  service: Type.Optional(ServiceOut),
  note: Type.Optional(Type.String()),
  discarded_fields: Type.Optional(Type.Array(Type.String(), { description: 'Dropped by the PCE' })),
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'create-service',
  summary: 'Create a service from one of the three lists.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: NewName('New name'),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...ServiceListsInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'order api', service_ports: [{ port: 8443, proto: 6 }] },
  async handler({ name, description, dry_run: dryRun, ...lists }, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    refuseHidden({ name })
    const plan = planService(lists)
    if (plan === undefined) {
      const text = `A service needs one of ${SERVICE_LISTS.join(', ')}, with at least one entry.`
      throw new ToolError('empty_service', text, { lists: [...SERVICE_LISTS] })
    }
    await refuseTakenName(pce, 'services', name, signal)
    const body = { name, ...(description !== undefined && { description }), [plan.list]: plan.entries }
    const note = noteEgress(plan.list)
    const notes = [...warnOfSentences({ name }), ...warnOfWideService({ [plan.list]: plan.entries })]
    if (dryRun === true) {
      const request = { method: 'POST', path: `/orgs/${pce.orgId}/sec_policy/draft/services`, body }
      const message = `Would create the service ${quote(name)} in draft.`
      const told = notes.length > 0 && { warnings: notes }
      return fitAnswer({ dry_run: true, message, requests: [request], ...note, ...told }, ctx.limits)
    }
    const created = await createNamed(ctx, 'services', body)
    const { stored, warnings } = await readBack(created, () => pce.services.getByReference(created.href))
    const all = [...notes, ...(warnings.warnings ?? [])]
    const differences = findDifferences(body, stored)
    const shown = {
      message: `Created the service ${quote(name)} in draft.`,
      service: showService(stored),
      ...note,
      ...showDiscarded(differences),
      ...listDifferences(differences),
      ...(all.length > 0 && { warnings: all }),
    }
    return fitAnswer(shown, ctx.limits)
  },
})

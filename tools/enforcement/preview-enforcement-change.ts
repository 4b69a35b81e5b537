import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { ENFORCEMENT_MODES } from '../../schemas/pce/enforcement-modes.js'
import { SectionsInput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { WorkloadChoiceInput } from '../../schemas/workload-choice.js'
import { chooseWorkloads } from '../../domain/enforcement/choose-workloads.js'
import { judgeEnforcement } from '../../domain/enforcement/judge-enforcement.js'
import { MODE_CHANGE_DAYS } from '../../domain/readiness/judge-mode-change.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { chooseSections } from '../answers/choose-sections.js'
import { ENFORCEMENT_PARTS, EnforcementOutput, showEnforcement } from '../answers/enforcement/show-enforcement.js'
import { defineTool } from '../define.js'

export default defineTool({
  name: 'preview-enforcement-change',
  summary: 'What another enforcement mode of workloads would cut or open of the traffic.',
  effect: 'read',
  reads: 'judged',
  toolset: 'explain',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 36,
    and: 'two for each named workload, the list of managed workloads if the traffic has more than 20 others, one for each further 500 workloads, for each rule set where the PCE keeps deny rules apart from it, up to ten for addresses that the traffic names from off the corporate network, and with complete the parts of the traffic',
  },
  input: Type.Object(
    {
      ...WorkloadChoiceInput,
      enforcement_mode: StringEnum(ENFORCEMENT_MODES, { description: 'The mode to judge', listed: '' }),
      ...windowInput(MODE_CHANGE_DAYS),
      ...CompleteInput,
      ...SectionsInput(ENFORCEMENT_PARTS),
      detail_level: DetailLevel('full: longer lists'),
    },
    { additionalProperties: false },
  ),
  output: EnforcementOutput,
  example: { app_name: 'payments', env_name: 'prod', enforcement_mode: 'full' },
  async handler(args, ctx): Promise<Static<typeof EnforcementOutput>> {
    const { enforcement_mode: to, complete } = args
    const sections = chooseSections(args.sections, ENFORCEMENT_PARTS)
    const { window, period } = chooseWindow(ctx.now(), args, MODE_CHANGE_DAYS)
    const chosen = await chooseWorkloads(ctx, args)
    const traffic = await judgeEnforcement(ctx, chosen, to, { window, complete })
    const showing = { sections, detail: args.detail_level ?? ('standard' as const), limits: ctx.limits }
    return showEnforcement({ chosen, to, period, traffic }, showing)
  },
})

import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { SectionsInput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { JUDGED_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createUnlabelledTrafficFinder } from '../../domain/traffic/find-unlabelled.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { chooseSections } from '../answers/choose-sections.js'
import { showUnlabelled, UNLABELLED_PARTS, UnlabelledOutput } from '../answers/traffic/show-unlabelled.js'
import { defineTool } from '../define.js'

const DEFAULT_DAYS = 30

export default defineTool({
  name: 'find-unmanaged-traffic',
  summary: 'Traffic with an end without app label, busiest first.',
  effect: 'read',
  reads: 'judged',
  toolset: 'traffic',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      ...windowInput(DEFAULT_DAYS),
      direction: Type.Optional(
        StringEnum(['inbound', 'outbound', 'both'] as const, {
          default: 'both',
          description: 'Of the labelled end',
        }),
      ),
      min_connections: Type.Optional(Type.Integer({ minimum: 0, default: 1, description: 'Per row', listed: '' })),
      top_n: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Rows per list', listed: '' })),
      ...SectionsInput(UNLABELLED_PARTS),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output: UnlabelledOutput,
  example: { lookback_days: 7, direction: 'inbound' },
  async handler(args, ctx): Promise<Static<typeof UnlabelledOutput>> {
    const { direction = 'both', min_connections: least = 1, top_n: limit } = args
    const chosen = chooseSections(args.sections, UNLABELLED_PARTS)
    const { window, days } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const encoder = createFlowEncoder(await loadLabels(ctx.pce, ctx))
    const finder = createUnlabelledTrafficFinder(encoder)
    const read = await createFlowReader(
      ctx,
      encoder,
      args.complete,
    )({ name: 'mcp-unmanaged-traffic', window, decisions: JUDGED_DECISIONS }, (row) => finder.add(row))
    return showUnlabelled(finder, read, { days, direction, least, limit, chosen }, ctx.limits)
  },
})

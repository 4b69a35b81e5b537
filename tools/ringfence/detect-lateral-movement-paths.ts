import { applicationName } from '../../domain/traffic/applications.js'
import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut } from '../../schemas/assumes.js'
import { DetailLevel, Count, Text } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { ApplicationReference } from '../../schemas/label-reference.js'
import type { Label } from '../../schemas/pce/label.js'
import { RecordedOut } from '../../schemas/recorded-otherwise.js'
import { SectionsInput, SectionsOutput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { defineTool } from '../define.js'
import { describeReading, Reading, createConversationReader } from '../../domain/traffic/read-flows.js'
import { createPassageJudge } from '../../domain/policy/judge-passage.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import {
  collectAppGraph,
  collectEdgePorts,
  collectUnlabelledSources,
} from '../../domain/dependency-map/collect-app-graph.js'
import { chooseSections } from '../answers/choose-sections.js'
import { MOVEMENT_PARTS, MovementLists, showMovement } from '../answers/dependency-map/show-movement.js'
import {
  isAsked,
  matchesFilter,
  searchMovement,
  type AppFilter,
  type MovementQuestion,
} from '../../domain/dependency-map/search-movement.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { resolveApplicationReference } from '../../domain/inventory/find-application.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { quote } from '../../domain/text/escape-text.js'
import { Truncation } from '../answers/byte-budget.js'

const LOOKBACK_DAYS = 30
const MAX_HOPS = 4

const output = Type.Object({
  lookback_days: Type.Integer(),
  total_apps: Count('With traffic to or from another application, even if blocked'),
  app_to_app_flows: Count('Rows between two applications'),
  total_edges: Count('Not certain to be blocked by policy in force and modes of today'),
  blocked_edges: Count('Every flow is blocked: not used'),
  undecided_edges: Type.Optional(Count('Of total_edges: nothing is certain to pass, but used as if open')),
  articulation_points: Count('Applications that link otherwise separate parts, or perhaps do'),
  articulation_points_undecided: Type.Optional(Count('Of these, only perhaps')),
  ...MovementLists,
  recommendation: Text('What to do first'),
  message: Type.Optional(Type.String()),
  ...RecordedOut,
  ...AssumesOut,
  ...SectionsOutput,
  ...Reading,
  ...Truncation,
})

/** The answer of detect-lateral-movement-paths. */
export type MovementAnswer = Static<typeof output>

export default defineTool({
  name: 'detect-lateral-movement-paths',
  summary: 'Where an intruder could go: bridging applications, reach, shortest paths.',
  effect: 'read',
  reads: 'everything',
  toolset: 'analysis',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      app_name: Type.Optional(Type.String({ minLength: 1, description: 'Start' })),
      env_name: Type.Optional(Type.String({ minLength: 1, description: 'Start' })),
      ...windowInput(LOOKBACK_DAYS),
      target: Type.Optional(Type.Union(ApplicationReference.anyOf, { description: 'End: app|env, app=X, env=X' })),
      max_hops: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 10, default: MAX_HOPS, description: 'Of a path', listed: '' }),
      ),
      ...SectionsInput(MOVEMENT_PARTS),
      detail_level: DetailLevel('full: more rows'),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { app_name: 'payments', env_name: 'prod', max_hops: 3 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const chosen = chooseSections(args.sections, MOVEMENT_PARTS)
    const { window, days } = chooseWindow(ctx.now(), args, LOOKBACK_DAYS)
    const { target: askedTarget } = args
    const maxHops = args.max_hops ?? MAX_HOPS
    const resolve = async (): Promise<MovementQuestion> => ({
      start: filterOf(await resolveApplication(ctx, { app_name: args.app_name, env_name: args.env_name })),
      target: askedTarget === undefined ? {} : filterOf(await resolveApplicationReference(ctx, askedTarget, 'target')),
      maxHops,
    })
    let question = await resolve()
    refuseSelf(question)
    const labels = await loadLabels(ctx.pce, ctx)
    const encoder = createFlowEncoder(labels)
    const graph = collectAppGraph(encoder)
    const ports = collectEdgePorts()
    const unlabelled = askedTarget === undefined ? null : collectUnlabelledSources(encoder)
    const passage = { open: new Set<number>(), perhaps: new Set<number>() }
    let between = 0
    const { judge, doubts } = await createPassageJudge(ctx, { encoder, labels })
    const read = await createConversationReader(
      ctx,
      encoder,
      args.complete,
    )({ name: 'mcp-lateral-movement', window }, (given) => {
      const isEdge = graph.isEdge(given)
      if (!isEdge && unlabelled?.isSource(given) !== true) return
      const { row, passes } = judge(given, isEdge)
      if (passes !== 'no') unlabelled?.add(row)
      const edge = graph.add(row)
      if (edge === null) return
      between += row.count
      if (passes === 'no') return
      ports.add(edge, row)
      passage[passes === 'yes' ? 'open' : 'perhaps'].add(edge)
    })
    const edges = graph.finish()
    const isUnseen = (end: AppFilter) => isAsked(end) && !edges.nodes.some((node) => matchesFilter(node, end))
    if (isUnseen(question.start) || isUnseen(question.target)) {
      // The labels are read from the PCE, because flows contain current names and a label may have been renamed since
      // the list was cached.
      await loadLabels(ctx.pce, ctx, 'fresh')
      question = await resolve()
    }
    const found = await searchMovement(edges, passage, question, ctx.signal)
    return showMovement(
      {
        days,
        between,
        found,
        question,
        ports,
        unlabelledSources: unlabelled?.count((application) => matchesFilter(application, question.target)),
        reading: describeReading(read),
        doubts: doubts(),
      },
      { chosen, detail: args.detail_level ?? 'standard', limits: ctx.limits },
    )
  },
})

/**
 * Throws if start and target are the same application. No path leads from an application to itself, so the answer "none
 * found" would suggest that the application cannot be reached.
 */
function refuseSelf({ start, target }: MovementQuestion): void {
  const { app, env } = target
  if (app === undefined || env === undefined || start.app !== app || start.env !== env) return
  throw new ToolError(
    'invalid_argument',
    `target: ${quote(applicationName({ app, env }))} is where the paths start.`,
    { argument: 'target' },
    { hint: 'Name another application, or leave out app_name and env_name to see who reaches this one.' },
  )
}

const filterOf = (labels: readonly Label[]): AppFilter =>
  Object.fromEntries(labels.map(({ key, value }) => [key, value]))

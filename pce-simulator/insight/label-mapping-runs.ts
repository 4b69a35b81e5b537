import { Type } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import { readRoute, type Answer, type Call, type Route } from '../http/route.js'
import { Refusal, notFound } from '../refusal.js'
import { advance, isPending, percentOf, requireResult, startProgress, type Progress } from '../status/progress.js'
import { requireWorkload } from '../validate/check-references.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import { birthStamp, orgPath, type World } from '../world.js'
import { labelMappingRules } from './label-mapping-rule.js'
import { requireRule } from './label-mapping-lists.js'
import { assignLabels, mapLabels, type MappedWorkload } from './map-labels.js'

const RUN = new Shape(
  'label_mapping_rules_run_post',
  Type.Object(
    {
      workloads: Type.Optional(Type.Array(Href)),
      rules: Type.Optional(Type.Array(Href)),
      assign_labels: Type.Optional(Type.Boolean()),
    },
    CLOSED,
  ),
)

/** A run as it is kept: what was asked, how far it is, and, once it is completed, what it found. */
interface Run extends PceObject {
  label_mapping_params: { workloads?: Reference[]; rules?: Reference[]; assign_labels?: boolean }
  progress: Progress
  results: MappedWorkload[] | null
}

const PATH = '/orgs/:org/label_mapping_rules/run'

/** One evaluation of the rules over workloads: asked for, watched, fetched, and assigned on request (P58). */
export const labelMappingRunRoutes: Route[] = [
  { path: PATH, verbs: { POST: { event: 'label_mapping_rules.run', handle: start } } },
  readRoute(`${PATH}/:id`, (call) => {
    const run = poll(call.world, find(call))
    return {
      status: 200,
      json: describeRun(call.world, run),
      ...(isPending(run.progress) ? { headers: retryAfter(call.world) } : {}),
    }
  }),
  readRoute(`${PATH}/:id/download`, (call) => {
    const { progress, results } = find(call)
    requireResult(progress)
    return { status: 200, json: { results } }
  }),
  {
    path: `${PATH}/:id/assign_labels`,
    verbs: {
      PUT: {
        event: 'label_mapping_rules.assign_labels',
        handle: (call) => {
          const { results } = find(call)
          if (!results) {
            throw new Refusal(UNCERTAIN.unfinishedMappingRunStatus, [
              { token: 'input_validation_error', message: 'The label mapping run is not completed' },
            ])
          }
          return { status: 204, changes: assignLabels(call.world, results) }
        },
      },
    },
  },
]

function start(call: Call): Answer {
  const { world } = call
  const params = RUN.read(call.body)
  for (const { href } of params.workloads ?? []) requireWorkload(world, href)
  for (const { href } of params.rules ?? []) requireRule(world, href)
  const run: Run = {
    href: orgPath(world, `/label_mapping_rules/run/${world.ids.uuid('label_mapping_run')}`),
    label_mapping_params: params,
    progress: startProgress(call),
    results: null,
    ...birthStamp(world),
  }
  runs(world).set(run)
  return {
    status: 202,
    json: describeRun(world, run),
    headers: { location: run.href, ...retryAfter(world) },
    changes: [{ resource: { label_mapping_run: { href: run.href } }, type: 'create' }],
  }
}

/** One more read. The one that completes the run evaluates the rules, and assigns the labels when that was asked for. */
function poll(world: World, run: Run): Run {
  if (!isPending(run.progress)) return run
  const progress = advance(run.progress, world.options.pollsUntilDone)
  const results = progress.stage === 'done' ? evaluate(world, run) : null
  const next = { ...run, progress, results, updated_at: world.now() }
  runs(world).set(next)
  if (results && run.label_mapping_params.assign_labels === true) assignLabels(world, results)
  return next
}

/** No workloads, or no rules, named: all of them (P58). A disabled rule maps nothing. */
function evaluate(world: World, { label_mapping_params }: Run): MappedWorkload[] {
  const named = (references: Reference[] = []) => {
    const hrefs = new Set(references.map(({ href }) => href))
    return ({ href }: PceObject) => (hrefs.size === 0 && UNCERTAIN.noListMeansAll) || hrefs.has(href)
  }
  const rules = labelMappingRules(world).filter(({ enabled }) => enabled)
  return mapLabels(
    world,
    world.workloads.live().filter(named(label_mapping_params.workloads)),
    rules.filter(named(label_mapping_params.rules)),
  )
}

function describeRun(world: World, { progress, results: _kept, ...run }: Run): Record<string, unknown> {
  return {
    href: run.href,
    ...(progress.stage === 'done' ? { result: `${run.href}/download` } : {}),
    status: UNCERTAIN.mappingRunStatuses[progress.stage],
    progress_percent: percentOf(progress, world.options.pollsUntilDone),
    created_at: run.created_at,
    created_by: run.created_by,
    updated_at: run.updated_at,
    label_mapping_params: run.label_mapping_params,
  }
}

function find({ world, path }: Call): Run {
  const run = runs(world).get(path.replace(/\/(download|assign_labels)$/, ''))
  if (!run) throw notFound()
  return run as Run
}

const runs = (world: World) => world.store('label_mapping_runs')

const retryAfter = (world: World) => ({ 'retry-after': String(world.options.retryAfter) })

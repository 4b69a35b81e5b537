import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from '../../schemas/common.js'
import { defineTool } from '../define.js'
import { countModes } from '../../domain/inventory/workloads.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { fetchEvery } from '../../domain/inventory/fetch-every.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { countRowsThatFit } from '../answers/byte-budget.js'

const Modes = Type.Record(Type.String(), Type.Integer(), { description: 'Workloads by mode' })
const Value = (key: string) => Nullable(Type.String({ description: `${key} label; null: none` }))

const output = Type.Object({
  total_workloads: Type.Integer({ description: 'Workloads counted' }),
  global_enforcement_modes: Modes,
  managed_only: Type.Object(
    { total: Type.Integer({ description: 'With a VEN' }), enforcement_modes: Modes },
    { description: 'Without unmanaged workloads, whose mode means nothing' },
  ),
  offline: Type.Integer({ description: 'Managed and offline' }),
  app_groups: Type.Array(
    Type.Object({
      app: Value('app'),
      env: Value('env'),
      workload_count: Type.Integer({ description: 'Workloads' }),
      unmanaged_count: Type.Integer({ description: 'Of these without a VEN' }),
      enforcement_modes: Modes,
      managed_modes: Type.Optional(
        Type.Record(Type.String(), Type.Integer(), { description: 'Of those with a VEN, where not all have one' }),
      ),
      is_mixed: Type.Boolean({ description: 'More than one mode among those with a VEN' }),
    }),
    { description: 'By app and env' },
  ),
  app_groups_total: Type.Integer({ description: 'Groups there are' }),
  mixed_enforcement_apps: Type.Array(Type.Object({ app: Value('app'), env: Value('env'), modes: Modes }), {
    description: 'Groups that are mixed, and the modes with a VEN',
  }),
  mixed_count: Type.Integer({ description: 'Groups with more than one mode' }),
  truncated: Type.Boolean({ description: 'Groups are left out; name an app or env' }),
})

export default defineTool({
  name: 'get-workload-enforcement-status',
  area: 'workloads',
  summary: 'Count workloads by enforcement mode, in all and per application; find mixed ones.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      app_name: Type.Optional(Type.String({ minLength: 1, description: 'app label' })),
      env_name: Type.Optional(Type.String({ minLength: 1, description: 'env label' })),
    },
    { additionalProperties: false },
  ),
  output,
  example: { env_name: 'prod' },
  async handler({ app_name: app, env_name: env }, ctx): Promise<Static<typeof output>> {
    const wanted = await resolveApplication(ctx, { app_name: app, env_name: env })
    const labels = wanted.length === 0 ? undefined : [wanted.map(({ href }) => href)]
    const params = { labels, include: 'labels' }
    const { items } = await fetchEvery({ api: ctx.pce.workloads, params, signal: ctx.signal })
    const borne = items.flatMap((workload) => workload.labels ?? [])
    const { groups, ...totals } = countModes(items, await labelExpander(ctx.pce, borne, ctx))
    const mixed = groups.filter(({ is_mixed: isMixed }) => isMixed)
    const mixedRows = mixed.map(({ app, env, enforcement_modes: all, managed_modes: modes = all }) => ({
      app,
      env,
      modes,
    }))
    const facts = { ...totals, app_groups_total: groups.length, mixed_count: mixed.length }
    const keptMixed = countRowsThatFit(mixedRows, facts, ctx.limits)
    const kept = countRowsThatFit(groups, [facts, mixedRows.slice(0, keptMixed), ' '.repeat(200)], ctx.limits)
    return {
      ...facts,
      app_groups: groups.slice(0, kept),
      mixed_enforcement_apps: mixedRows.slice(0, keptMixed),
      truncated: kept < groups.length || keptMixed < mixedRows.length,
    }
  },
})

import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from '../../schemas/common.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { defineTool } from '../define.js'
import { createModeCount, type ModeGroup } from '../../domain/inventory/workloads.js'
import { createLabelExpander } from '../../domain/inventory/labels.js'
import { readKubernetesWorkloads, tellUnread } from '../../domain/inventory/kubernetes-workloads.js'
import { scanEvery } from '../../domain/inventory/fetch-every.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { countRowsThatFit } from '../answers/byte-budget.js'
import { selectFields } from '../answers/select-fields.js'
import { FieldsInput, pagingInput, LONG_ROWS } from '../../schemas/paging.js'

const Modes = Type.Record(Type.String(), Type.Integer(), { description: 'Workloads by mode' })
const Value = (key: string) => Nullable(Type.String({ description: `${key} label; null: none` }))

const Row = Type.Object({
  app: Value('app'),
  env: Value('env'),
  workload_count: Type.Integer({ description: 'Workloads' }),
  unmanaged_count: Type.Optional(Type.Integer({ description: 'Of these unmanaged; absent: none' })),
  enforcement_modes: Modes,
  managed_modes: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), { description: 'Of the managed, where not all are' }),
  ),
  is_mixed: Type.Boolean({ description: 'More than one known mode among the managed' }),
})

const output = Type.Object({
  total_workloads: Type.Integer({ description: 'Workloads counted' }),
  kubernetes_workloads: Type.Optional(Type.Integer({ description: 'Of these; absent: none' })),
  note: Type.Optional(Type.String()),
  global_enforcement_modes: Modes,
  managed_only: Type.Object(
    { total: Type.Integer({ description: 'With a VEN or in Kubernetes' }), enforcement_modes: Modes },
    { description: 'Without unmanaged workloads, whose mode means nothing' },
  ),
  offline: Type.Integer({ description: 'Managed and offline' }),
  online_not_known: Type.Optional(Type.Integer({ description: 'Managed, maybe offline' })),
  app_groups: Type.Array(Type.Partial(Row), { description: 'By app and env' }),
  app_groups_total: Type.Integer({ description: 'Groups there are' }),
  mixed_enforcement_apps: Type.Array(Type.Object({ app: Value('app'), env: Value('env'), modes: Modes }), {
    description: 'Groups that are mixed, and their managed modes',
  }),
  mixed_count: Type.Integer({ description: 'Groups with more than one mode' }),
  truncated: Type.Boolean({
    description: 'Workloads or groups are left out: raise max_results, or name an app or env',
  }),
})

export default defineTool({
  name: 'get-workload-enforcement-status',
  summary: 'Workloads by enforcement mode, per application too.',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      app_name: Type.Optional(Type.String({ minLength: 1, description: 'app label' })),
      env_name: Type.Optional(Type.String({ minLength: 1, description: 'env label' })),
      max_results: pagingInput(LONG_ROWS).max_results,
      ...FieldsInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { env_name: 'prod' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { app_name: app, env_name: env, max_results: most = LONG_ROWS, fields } = args
    const select = selectFields(fields, Row)
    const wanted = await resolveApplication(ctx, { app_name: app, env_name: env })
    const labels = wanted.length === 0 ? undefined : [wanted.map(({ href }) => href)]
    const params = { labels, include: 'labels' }
    const expander = createLabelExpander(ctx.pce, ctx)
    let counted = createModeCount()
    const query = { api: ctx.pce.workloads, params, signal: ctx.signal }
    const onBegin = () => void (counted = createModeCount())
    const onItems = async (items: Workload[]) => {
      const expand = await expander(items.flatMap((workload) => workload.labels ?? []))
      for (const workload of items) counted.count(workload, expand)
    }
    const { isWhole } = await scanEvery(query, { onBegin, onItems })
    const hrefs = wanted.map(({ href }) => href)
    const pods = await readKubernetesWorkloads(ctx, { labels: hrefs }, (workload) => workload)
    if (pods.items.length > 0) await onItems(pods.items)
    const { groups, ...totals } = counted.totals()
    const mixed = groups.filter(({ is_mixed: isMixed }) => isMixed)
    const mixedRows = mixed.slice(0, most).map(({ app, env, enforcement_modes: all, managed_modes: modes = all }) => ({
      app,
      env,
      modes,
    }))
    const facts = {
      ...totals,
      ...(pods.items.length > 0 && { kubernetes_workloads: pods.items.length }),
      ...(pods.unread !== null && { note: tellUnread(pods.unread).join('') }),
      app_groups_total: groups.length,
      mixed_count: mixed.length,
    }
    const shown = groups.slice(0, most).map(fields === undefined ? withoutNone : select)
    const keptMixed = countRowsThatFit(mixedRows, facts, ctx.limits)
    const kept = countRowsThatFit(shown, [facts, mixedRows.slice(0, keptMixed), ' '.repeat(200)], ctx.limits)
    return {
      ...facts,
      app_groups: shown.slice(0, kept),
      mixed_enforcement_apps: mixedRows.slice(0, keptMixed),
      truncated: !isWhole || kept < groups.length || keptMixed < mixed.length,
    }
  },
})

/** Leaves out a group's number of unmanaged workloads if it is zero, as it is in most groups. */
function withoutNone({ unmanaged_count: unmanaged, ...group }: ModeGroup): Partial<ModeGroup> {
  return { ...group, ...(unmanaged > 0 && { unmanaged_count: unmanaged }) }
}

import { Type, type Static } from '@sinclair/typebox'
import { PceApiError } from '../../pce-client/index.js'
import { Count, Counts, DetailLevel, Nullable, StringEnum } from '../../schemas/common.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import type { Ven, VenRelease } from '../../schemas/pce/ven.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { scanEvery } from '../../domain/inventory/fetch-every.js'
import { resolveLabelConditions } from '../../domain/inventory/label-conditions.js'
import { createLabelExpander, parseLabelList } from '../../domain/inventory/labels.js'
import { countOf, percentOf } from '../../domain/text/describe-numbers.js'
import { remarkOnSilent } from '../../domain/vens/describe-ven.js'
import { createFleetCount, VEN_LISTS, type FleetHealth } from '../../domain/vens/judge-fleet.js'
import { showSections, Truncation } from '../answers/byte-budget.js'

const STANDARD_ROWS = 5
const Text = (description: string) => Nullable(Type.String({ description }))

const Row = Type.Object({
  name: Type.String({ description: 'Own name, otherwise host name' }),
  href: Type.String(),
  app: Text('app label'),
  env: Text('env label'),
  enforcement_mode: Text('Mode'),
  last_heartbeat_at: Text('Last heard of'),
  why: Type.String({ description: 'What puts it here' }),
})
const List = (description: string) => Type.Optional(Type.Array(Row, { description }))

const output = Type.Object({
  summary: Type.String({ description: 'The state of the fleet in a sentence' }),
  meaning: Type.Array(Type.String(), { description: 'What it means for enforcement, worst first' }),
  total: Count('VENs counted'),
  enforcing: Count('Active, online, in selective or full mode, with the newest policy'),
  not_running_total: Count('Suspended, stopped or uninstalled'),
  offline_total: Count('Active, but counted offline by the PCE'),
  in_error_total: Count('With a condition of severity error'),
  unsynced_total: Count('Online, without the newest policy'),
  out_of_date_total: Count('Older than the reference'),
  by_status: Counts('By status'),
  by_health: Counts('By the worst condition'),
  by_version: Counts('By release'),
  by_os: Counts('By os_id'),
  by_mode: Counts('By enforcement mode'),
  by_type: Counts('By type of VEN'),
  conditions: Type.Array(
    Type.Object({
      condition: Type.String({ description: "The PCE's word" }),
      means: Type.String({ description: 'In plain words' }),
      vens: Count('VENs that have it'),
    }),
    { description: 'What is wrong, most frequent first' },
  ),
  reference: Nullable(
    Type.Object(
      {
        from: Type.String({ description: 'default release, newest release, or newest VEN' }),
        versions: Type.Record(Type.String(), Type.String(), { description: 'By type of VEN; others are not judged' }),
      },
      { description: 'What versions are held against' },
    ),
  ),
  not_running: List('Suspended, stopped or uninstalled'),
  offline: List('Offline, those that ought to enforce first, then the longest silent'),
  in_error: List('In error'),
  unsynced: List('Without the newest policy'),
  out_of_date: List('Older than the reference'),
  ...Truncation,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What could not be read' })),
})

export default defineTool({
  name: 'ven-health-report',
  summary:
    'Health of the VEN fleet: counts by status, version, OS, mode; who is offline, out of date, in error, unsynced, and what it means for enforcement.',
  effect: 'read',
  toolset: 'vens',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: { atMost: 8, and: 'one for each label group inside another' },
  input: Type.Object(
    {
      labels: LabelsFilter,
      sections: Type.Optional(
        Type.Array(StringEnum(VEN_LISTS), { minItems: 1, maxItems: 5, description: 'Only these lists; totals always' }),
      ),
      detail_level: DetailLevel('full: up to 2,000 a list instead of 5'),
    },
    { additionalProperties: false },
  ),
  output,
  example: { labels: ['env=prod'] },
  async handler(
    { labels: asked, sections: shown = VEN_LISTS, detail_level: detail = 'standard' },
    ctx,
  ): Promise<Static<typeof output>> {
    const labels = await resolveLabelConditions(ctx.pce, parseLabelList(asked), ctx)
    const { releases, warnings } = await readReleases(ctx)
    const expander = createLabelExpander(ctx.pce, ctx)
    const start = () => createFleetCount(ctx.now(), releases)
    let fleet = start()
    const { isWhole } = await scanEvery(
      { api: ctx.pce.vens, params: { labels: labels.param }, signal: ctx.signal },
      {
        onBegin: () => void (fleet = start()),
        onItems: async (items: Ven[]) => {
          const expand = await expander(items.flatMap((ven) => ven.labels ?? []))
          for (const ven of items) if (isWanted(ven, labels.ownFilter)) fleet.add(ven, expand)
        },
      },
    )
    if (!isWhole) warnings.push('The PCE did not give the whole list of VENs: all counts are lower bounds.')
    const health = fleet.judge()
    warnings.push(...remarkOnSilent(health.silentOnline))
    const { counts, lists } = health
    const envelope = {
      summary: summarise(health),
      meaning: health.meaning,
      total: health.total,
      enforcing: health.enforcing,
      ...(Object.fromEntries(VEN_LISTS.map((name) => [`${name}_total`, lists[name].length])) as Totals),
      by_status: counts.status,
      by_health: counts.health,
      by_version: counts.version,
      by_os: counts.os,
      by_mode: counts.mode,
      by_type: counts.type,
      conditions: health.conditions,
      reference: health.reference,
      ...(warnings.length > 0 && { warnings }),
    }
    const sections = Object.fromEntries(
      VEN_LISTS.filter((name) => shown.includes(name)).map((name) => [
        name,
        { rows: lists[name], total: lists[name].length },
      ]),
    ) as Partial<Record<keyof typeof lists, { rows: (typeof lists)['offline']; total: number }>>
    return showSections(envelope, sections, {
      detail,
      limits: ctx.limits,
      standard: STANDARD_ROWS,
      hint: (limit) =>
        `Lists are cut to ${countOf(limit, 'VEN')}; the totals count all. detail_level full shows more; sections and labels narrow it.`,
    })
  },
})

type Totals = Record<`${(typeof VEN_LISTS)[number]}_total`, number>

const isWanted = (
  { href, labels }: Ven,
  test: Awaited<ReturnType<typeof resolveLabelConditions>>['ownFilter'],
): boolean => test?.({ href, name: null, hostname: null, labels: labels ?? [] }) !== false

/** Reads the VEN releases, with a warning on failure: not every account may list them, and not every PCE has any. */
async function readReleases({ pce, signal }: ToolContext<true>) {
  const warnings: string[] = []
  let releases: VenRelease[] | null = null
  try {
    releases = await pce.getVenSoftwareReleases({ signal })
  } catch (error) {
    if (!(error instanceof PceApiError)) throw error
    warnings.push(
      `The VEN releases of the PCE could not be read, so versions are held against the newest VEN: ${error.message}`,
    )
  }
  return { releases, warnings }
}

function summarise({ total, enforcing, lists }: FleetHealth): string {
  if (total === 0) return 'No VEN matches.'
  const share = `${enforcing} of ${countOf(total, 'VEN')} (${percentOf(enforcing, total)} %) enforce the newest policy`
  const words = {
    not_running: 'suspended or stopped',
    offline: 'offline',
    in_error: 'in error',
    unsynced: 'without the newest policy',
    out_of_date: 'out of date',
  }
  const found = VEN_LISTS.flatMap((name) => (lists[name].length === 0 ? [] : [`${lists[name].length} ${words[name]}`]))
  return `${share}; ${found.length === 0 ? 'nothing needs attention' : found.join(', ')}.`
}

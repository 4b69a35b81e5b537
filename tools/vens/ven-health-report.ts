import { Type, type Static } from '@sinclair/typebox'
import { PceApiError } from '../../pce-client/index.js'
import { Count, Counts, DetailLevel, Nullable } from '../../schemas/common.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import { SectionsInput, SectionsOutput } from '../../schemas/sections.js'
import { isEnforcing } from '../../schemas/pce/enforcement-modes.js'
import type { Ven, VenRelease } from '../../schemas/pce/ven.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { scanEvery } from '../../domain/inventory/fetch-every.js'
import { resolveLabelConditions } from '../../domain/inventory/label-conditions.js'
import { createLabelExpander, parseLabelList } from '../../domain/inventory/labels.js'
import { countOf, percentOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { remarkOnSilent } from '../../domain/vens/describe-ven.js'
import { joinWorkload, labelsOf, type Work } from '../../domain/vens/join-workload.js'
import { createFleetCount, VEN_LISTS, type FleetHealth, type VenList } from '../../domain/vens/judge-fleet.js'
import { readWorks } from '../../domain/vens/read-works.js'
import { adviseOnRows, Truncation } from '../answers/byte-budget.js'
import { chooseSections, showChosen } from '../answers/choose-sections.js'

const STANDARD_ROWS = 5
const Text = (description: string) => Nullable(Type.String({ description }))

const Row = Type.Object({
  name: Type.String({ description: 'Own name, otherwise host name' }),
  workload_name: Text('Name of its workload'),
  href: Type.String(),
  app: Text('app label'),
  env: Text('env label'),
  enforcement_mode: Text('Mode'),
  last_heartbeat_at: Text('Last heard of'),
  why: Type.String({ description: 'All that is wrong with it, or not known' }),
})
const List = (description: string) => Type.Optional(Type.Array(Row, { description }))

const output = Type.Object({
  summary: Type.String({ description: 'The state of the fleet in a sentence' }),
  meaning: Type.Array(Type.String(), { description: 'What it means for enforcement, worst first' }),
  total: Count('VENs counted'),
  enforcing: Count('Active, online, in selective or full mode, with the newest policy'),
  enforcing_not_known: Count('Whether they do so is not known'),
  not_running_total: Count('Suspended, stopped or uninstalled'),
  offline_total: Count('Active, but counted offline by the PCE'),
  in_error_total: Count('With a condition of severity error'),
  unsynced_total: Count('Online, without the newest policy'),
  warned_total: Count('With a warning, besides being offline'),
  out_of_date_total: Count('Older than the reference'),
  not_known_total: Count('About which the PCE does not tell everything'),
  not_known_by: Counts('By what neither VENs nor workloads of the PCE tell'),
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
  not_running: List('Suspended, stopped or uninstalled. Each VEN stands once, in the first list it belongs to'),
  offline: List('Offline, those that ought to enforce first, then the longest silent'),
  in_error: List('In error'),
  unsynced: List('Without the newest policy'),
  warned: List('With a warning'),
  out_of_date: List('Older than the reference'),
  not_known: List('Not known in full'),
  ...SectionsOutput,
  ...Truncation,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What could not be read' })),
})

export default defineTool({
  name: 'ven-health-report',
  summary: 'Health of the VEN fleet: counts; who is offline, out of date, in error or unsynced.',
  effect: 'read',
  reads: 'shown',
  toolset: 'vens',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: { atMost: 10, and: 'one for each label group inside another' },
  input: Type.Object(
    {
      labels: LabelsFilter,
      ...SectionsInput(VEN_LISTS),
      detail_level: DetailLevel('full: up to 2,000 a list instead of 5'),
    },
    { additionalProperties: false },
  ),
  output,
  example: { labels: ['env=prod'] },
  async handler({ labels: asked, sections, detail_level: detail = 'standard' }, ctx): Promise<Static<typeof output>> {
    const chosen = chooseSections(sections, VEN_LISTS)
    const labels = await resolveLabelConditions(ctx.pce, parseLabelList(asked), ctx)
    const { releases, warnings } = await readReleases(ctx)
    const works = await readWorks(ctx, labels.param)
    warnings.push(...works.warnings)
    const expander = createLabelExpander(ctx.pce, ctx)
    const start = () => createFleetCount(ctx.now(), releases)
    let fleet = start()
    const { isWhole } = await scanEvery(
      { api: ctx.pce.vens, params: { labels: labels.param }, signal: ctx.signal },
      {
        onBegin: () => void (fleet = start()),
        onItems: async (items: Ven[]) => {
          const machines = items
            .filter((ven) => isWanted(ven, labels.ownFilter))
            .map((ven) => joinWorkload(ven, works.of(ven)))
          const expand = await expander(machines.flatMap((machine) => machine.labels))
          for (const machine of machines) fleet.add(machine, expand)
        },
      },
    )
    if (!isWhole) warnings.push('The PCE did not give the whole list of VENs: all counts are lower bounds.')
    const health = fleet.judge()
    const { counts, totals } = health
    const unlisted = isWhole && asked === undefined ? works.without(health.hrefs) : []
    warnings.push(...remarkOnSilent(health.silentOnline), ...remarkOnUnlisted(unlisted))
    const envelope = {
      summary: summarise(health, isWhole && unlisted.length === 0),
      meaning: health.meaning,
      total: health.total,
      enforcing: health.enforcing,
      enforcing_not_known: health.enforcingUnknown,
      ...(Object.fromEntries(VEN_LISTS.map((name) => [`${name}_total`, totals[name]])) as Totals),
      not_known_by: health.unknown,
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
    const placed = health.place(chosen.names)
    const lists = Object.fromEntries(
      VEN_LISTS.map((name) => {
        const rows = placed[name]
        return [name, rows === undefined ? { rows: [], total: totals[name] } : { rows, total: rows.length }]
      }),
    ) as Record<VenList, { rows: Static<typeof Row>[]; total: number }>
    return showChosen(chosen, envelope, lists, {
      detail,
      limits: ctx.limits,
      standard: STANDARD_ROWS,
      hint: (limit, isFull) =>
        `Lists are cut to ${countOf(limit, 'VEN')}; the totals count all. ${adviseOnRows(detail, isFull, 'sections and labels narrow it.')}`,
    })
  },
})

type Totals = Record<`${(typeof VEN_LISTS)[number]}_total`, number>

const isWanted = (
  { href, labels }: Ven,
  test: Awaited<ReturnType<typeof resolveLabelConditions>>['ownFilter'],
): boolean => test?.({ href, name: null, hostname: null, labels: labelsOf(labels) }) !== false

/** Maximum number of workloads named in a warning. */
const MOST_NAMED = 3

function remarkOnUnlisted(works: readonly Work[]): string[] {
  if (works.length === 0) return []
  const names = works.slice(0, MOST_NAMED).map(({ name, hostname, href }) => quote(name ?? hostname ?? href))
  const more = works.length > MOST_NAMED ? ' …' : ''
  return [
    `${countOf(works.length, 'workload')} (${names.join(', ')}${more}) ${works.length === 1 ? 'names a VEN' : 'name VENs'} that the list of VENs does not have: not counted here.`,
  ]
}

/**
 * Reads the VEN releases. A failure is only a warning, because not every account may list releases, and not every PCE
 * has any.
 */
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

/**
 * The descriptions of the lists of VENs in the summary. The list `not_known` has no description, because the summary
 * names its parts separately.
 */
const WORDS: Readonly<Record<Exclude<VenList, 'not_known'>, string>> = {
  not_running: 'suspended or stopped',
  offline: 'offline',
  in_error: 'in error',
  unsynced: 'without the newest policy',
  warned: 'with a warning',
  out_of_date: 'out of date',
}

/**
 * Summarises the state of all VENs. It gives a percentage and says "nothing needs attention" only if everything is
 * known.
 *
 * @param isWhole false if there are further VENs that were not counted
 */
function summarise(health: FleetHealth, isWhole: boolean): string {
  const { total, counts, enforcing, enforcingUnknown, totals, unknown, silentOnline } = health
  if (total === 0) return isWhole ? 'No VEN matches.' : 'No VEN was counted, but there are some.'
  const inForce = Object.entries(counts.mode).reduce((sum, [mode, many]) => (isEnforcing(mode) ? sum + many : sum), 0)
  const share =
    enforcingUnknown === total
      ? 'whether they enforce the newest policy is not known'
      : enforcingUnknown > 0
        ? `${enforcing} online and enforcing the newest policy, not known for ${enforcingUnknown}`
        : `${inForce} in selective or full mode, ${enforcing} (${percentOf(enforcing, total)} %) online and enforcing the newest policy`
  const found = Object.entries(WORDS).flatMap(([name, words]) => {
    const many = totals[name as VenList]
    return many === 0 ? [] : [`${many} ${words}`]
  })
  if (silentOnline > 0) found.push(`${silentOnline} online but silent for more than a day`)
  const missing = Object.entries(unknown).map(([name, many]) => `${name} of ${many}`)
  if (missing.length > 0) found.push(`not known: ${missing.join(', ')}`)
  if (found.length === 0) found.push(isWhole ? 'nothing needs attention' : 'not all VENs were counted')
  return `${countOf(total, 'VEN')}: ${share}; ${found.join(', ')}.`
}

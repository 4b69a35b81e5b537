import { Type, type Static } from '@sinclair/typebox'
import { Nullable, StringEnum } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { ENFORCEMENT_MODES } from '../../schemas/pce/enforcement-modes.js'
import type { Ven } from '../../schemas/pce/ven.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { findObject } from '../../domain/inventory/find-object.js'
import { hintAtHostname } from '../../domain/inventory/hint-at-hostname.js'
import { resolveLabelConditions } from '../../domain/inventory/label-conditions.js'
import { labelExpander, parseLabelList } from '../../domain/inventory/labels.js'
import { addressFilter, allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { createAddressTest } from '../../domain/inventory/parse-addresses.js'
import { isSilentOnline } from '../../domain/inventory/silent-vens.js'
import { readTime } from '../../domain/traffic/traffic-window.js'
import { isRelease, isUpTo, isWholeRelease, KNOWN_CONDITIONS, remarkOnSilent } from '../../domain/vens/describe-ven.js'
import { givenFilters, passes } from '../../domain/vens/filter-machines.js'
import { allTrue, joinWorkload, labelsOf, nameOfMachine, type Machine } from '../../domain/vens/join-workload.js'
import { FEW_VENS, readWorks, type Works } from '../../domain/vens/read-works.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'

const NAME = 'get-vens'
const Text = (description: string) => Nullable(Type.String({ description }))
const Time = (description: string, listed = '') => Type.Optional(Type.String({ description, listed }))

const Row = Type.Object({
  href: Type.String(),
  name: Text('Its own name; null: none, hostname is what consoles show'),
  hostname: Text('null: the PCE has none'),
  workload_name: Text('Name of its workload'),
  status: Type.String(),
  health: Text('healthy, warning, error: the worst of its conditions; null: not known'),
  conditions: Type.Array(
    Type.Object({
      condition: Type.String({ description: "The PCE's word, for the filter" }),
      means: Type.String({ description: 'In plain words' }),
      severity: Type.String(),
      since: Text('First reported'),
      current_version: Type.Optional(Type.String({ description: 'Release it runs, where the condition names it' })),
      desired_version: Type.Optional(Type.String({ description: 'Release it should run' })),
    }),
    { description: 'What is wrong with it, as far as the PCE tells' },
  ),
  online: Nullable(Type.Boolean({ description: 'null, here and below: not known' })),
  last_heartbeat_at: Text('Last heard of'),
  version: Text('Release it runs'),
  upgrade_to: Type.Optional(Type.String({ description: 'Upgrade under way' })),
  os: Text('os_id'),
  enforcement_mode: Text('Mode of its workload'),
  policy_sync: Text('applied: it has the newest policy'),
  policy_received_at: Text('Last policy received'),
  policy_applied_at: Text('Last policy applied'),
  ip_addresses: Type.Array(Type.String(), { description: 'Of its interfaces' }),
  labels: Type.Array(Type.String(), { description: 'key=value' }),
  ven_type: Text('server, endpoint, containerized'),
  workload_href: Text('Its workload'),
})

const output = Type.Object({
  vens: Type.Array(Type.Partial(Row), { description: 'VENs of this page' }),
  ...PagingOutput,
  not_known: Type.Optional(
    Type.Integer({ description: 'VENs of which it is not known whether they match; not listed' }),
  ),
  message: Type.Optional(Type.String({ description: 'Set when nothing matches' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What contradicts itself, or is not known' })),
})

export default defineTool({
  name: NAME,
  summary: 'VENs: status, health, version, heartbeat, mode.',
  effect: 'read',
  reads: 'shown',
  toolset: 'vens',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 14, and: 'one for each label group inside another' },
  input: Type.Object(
    {
      name: Part(),
      hostname: Part(),
      description: Part(),
      ip_address: Part(),
      os: Part('os_id'),
      ...ExactInput,
      status: Type.Optional(
        StringEnum(['active', 'suspended', 'stopped', 'uninstalled'] as const, {
          description: 'Status; online says who is offline',
          listed: '',
        }),
      ),
      online: Type.Optional(
        Type.Boolean({ description: 'As the PCE counts it; compared here: reads all', listed: '' }),
      ),
      enforcement_mode: Type.Optional(StringEnum(ENFORCEMENT_MODES, { description: 'Of its workload', listed: '' })),
      policy_sync: Type.Optional(
        StringEnum(['applied', 'syncing', 'staged', 'not_applied'] as const, { description: 'not_applied: any other' }),
      ),
      health: Type.Optional(
        StringEnum(['healthy', 'unhealthy', 'error', 'warning'] as const, {
          description: 'unhealthy: error or warning',
        }),
      ),
      condition: Type.Optional(Type.String({ minLength: 1, description: 'e.g. agent.missed_heartbeats' })),
      ven_type: Type.Optional(
        StringEnum(['server', 'endpoint', 'containerized'] as const, { description: 'The type of VEN', listed: '' }),
      ),
      activation_type: Type.Optional(Type.String({ minLength: 1, description: 'pairing_key …' })),
      authentication_recovery: Type.Optional(Type.Boolean({ description: 'May authenticate anew', listed: '' })),
      upgrade_pending: Type.Optional(Type.Boolean({ description: 'Upgrade under way', listed: '' })),
      labels: LabelsFilter,
      container_cluster: Type.Optional(
        Type.String({ minLength: 1, description: 'Href, or exact name if unique', listed: 'Href or exact name' }),
      ),
      active_pce_fqdn: Type.Optional(
        Type.String({ minLength: 1, description: 'Exact name of the active PCE', listed: 'Exact' }),
      ),
      version_gte: Time('This release or later; 24.5 is all of it'),
      version_lte: Time('This release or earlier; 24.5 is all of it', '24.5 is all of it'),
      last_heartbeat_gte: Time('Heard since'),
      last_heartbeat_lte: Time('Not heard since'),
      last_goodbye_gte: Time('Said goodbye since'),
      last_goodbye_lte: Time('Said goodbye until'),
      disconnected_before: Time('Disconnected since before'),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { health: 'unhealthy', labels: ['env=prod'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = LONG_ROWS, fields, ...question } = args
    const select = selectFields(fields, Row)
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const { exact } = question
    const times = readTimes(question)
    requireReleases(question)
    const { version_lte: last } = question
    // An incomplete release number is compared here, because the PCE would treat 24.5 as a release before 24.5.0.
    const isPart = last !== undefined && !isWholeRelease(last)
    const labels = await resolveLabelConditions(ctx.pce, parseLabelList(question.labels), ctx)
    const ownLabels = labels.ownFilter
    const params = {
      name: question.name,
      hostname: question.hostname,
      description: question.description,
      os: question.os,
      ip_address: addressFilter(exact, question.ip_address),
      status: question.status,
      ven_type: question.ven_type,
      activation_type: question.activation_type,
      authentication_recovery: question.authentication_recovery,
      upgrade_pending: question.upgrade_pending,
      active_pce_fqdn: question.active_pce_fqdn,
      'version[gte]': question.version_gte,
      'version[lte]': isPart ? undefined : last,
      ...times,
      labels: labels.param,
      container_clusters: await clustersOf(ctx, question.container_cluster),
    }
    const address = exact === true ? question.ip_address : undefined
    const isJoined = givenFilters(question).length > 0 || address !== undefined
    // If no filter needs workloads, the workloads are read later, and only for the VENs on the page.
    let works = isJoined ? await readForFilters(ctx, params, labels.param) : null
    const undecided = new Map<string, string>()
    const isMatch = (ven: Ven): boolean => {
      const machine = joinWorkload(ven, works?.of(ven))
      const { version } = machine
      const isOfRelease = !isPart || (version === null ? null : isUpTo(version, last))
      const verdict = allTrue([passes(machine, question), hasAddress(machine, address), isOfRelease])
      if (verdict === null) undecided.set(ven.href, nameOfMachine(machine))
      return verdict === true
    }
    const ownFilter = allOf<Ven>(
      ownLabels && ((ven) => ownLabels({ href: ven.href, name: null, hostname: null, labels: labelsOf(ven.labels) })),
      matchExactly<Ven>(exact, question, {
        name: ({ name }) => [name],
        hostname: ({ hostname }) => [hostname],
        description: ({ description }) => [description],
        os: ({ os_id: os }) => [os],
      }),
      isJoined || isPart ? isMatch : undefined,
    )
    const query = { api: ctx.pce.vens, params, signal: ctx.signal }
    const slice = await fetchSlice(query, position, pageSize(maxResults, ctx.limits, fields), ownFilter)
    if (works === null && needsWorkloads(fields)) works = await readWorks(ctx, labels.param, slice.items)
    const machines = slice.items.map((ven) => joinWorkload(ven, works?.of(ven)))
    const expand = await labelExpander(
      ctx.pce,
      machines.flatMap((machine) => machine.labels),
      ctx,
    )
    const shown = machines.map((machine) => select(showMachine(machine, expand)))
    const notKnown = undecided.size > 0 && { not_known: undecided.size }
    const asked = [...givenFilters(question), ...(address ? ['ip_address'] : []), ...(isPart ? ['version_lte'] : [])]
    const remarks = [...(works?.warnings ?? []), ...remarkOnUndecided(undecided, asked)]
    const envelope = { vens: [], ...notKnown, warnings: [...remarks, ...remarkOnSilent(shown.length)] }
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, envelope)
    const silent = machines.slice(0, rows.length).filter((machine) => isSilentOnline(machine, ctx.now())).length
    const warnings = [...remarks, ...remarkOnSilent(silent)]
    const answer = { vens: rows, ...paging, ...notKnown, ...(warnings.length > 0 && { warnings }) }
    if (slice.totalCount > 0) return answer
    const hint = await hintAtHostname({ ...query, isNarrowed: ownFilter !== undefined })
    const none = undecided.size > 0 ? 'No VEN is known to match.' : explainNone(question.condition)
    return { ...answer, message: `${none}${hint === null ? '' : ` ${hint}`}` }
  },
})

/** The fields of a row that can be filled from the list of VENs alone, without reading workloads. */
const OWN_FIELDS: readonly string[] = ['href', 'name', 'upgrade_to']
const needsWorkloads = (fields: readonly string[] | undefined): boolean =>
  fields === undefined || fields.some((field) => !OWN_FIELDS.includes(field))

/**
 * Reads the workloads that are needed for a filter. If the PCE's own filters select only few VENs, only the workloads
 * of these VENs are read, otherwise all workloads.
 */
async function readForFilters(
  ctx: ToolContext<true>,
  params: Readonly<Record<string, unknown>>,
  labels: string[][] | undefined,
): Promise<Works> {
  if (Object.values(params).every((value) => value === undefined)) return readWorks(ctx, labels)
  const asked = { params: { ...params, max_results: FEW_VENS + 1 }, signal: ctx.signal }
  const { items } = await ctx.pce.vens.getPage('draft', null, asked)
  return readWorks(ctx, labels, items.length <= FEW_VENS ? items : undefined)
}

/**
 * Returns whether a VEN has exactly this address. Returns null if only the VEN's workload could show this and the
 * addresses of the workload are not known.
 */
function hasAddress({ addresses, workAddresses, isAddressKnown }: Machine, wanted: string | undefined): boolean | null {
  if (wanted === undefined) return true
  if ([...addresses, ...workAddresses].some(createAddressTest(wanted))) return true
  return isAddressKnown ? false : null
}

/** Maximum number of VENs named in a remark. */
const MOST_NAMED = 3

/** Returns a remark about the VENs for which a filter could not be decided; empty if there are none. */
function remarkOnUndecided(undecided: ReadonlyMap<string, string>, asked: readonly string[]): string[] {
  if (undecided.size === 0) return []
  const names = [...undecided.values()].slice(0, MOST_NAMED).map(quote).join(', ')
  const more = undecided.size > MOST_NAMED ? ' …' : ''
  const they = undecided.size === 1 ? 'it matches' : 'they match'
  return [
    `The PCE does not tell enough about ${countOf(undecided.size, 'VEN')} (${names}${more}) to decide ${asked.join(', ')}: whether ${they} is not known.`,
  ]
}

/**
 * Converts time bounds to the form that the PCE accepts, with a time zone (P8). Throws invalid_argument if one of them
 * is not a time.
 */
function readTimes(question: Record<string, unknown>): Record<string, string> {
  const bounds = {
    last_heartbeat_gte: ['last_heartbeat_at[gte]', '00:00:00'],
    last_heartbeat_lte: ['last_heartbeat_at[lte]', '23:59:59.999'],
    last_goodbye_gte: ['last_goodbye_at[gte]', '00:00:00'],
    last_goodbye_lte: ['last_goodbye_at[lte]', '23:59:59.999'],
    disconnected_before: ['disconnected_before', '00:00:00'],
  } as const
  const given = Object.entries(bounds).flatMap(([argument, [param, ofDate]]) => {
    const text = question[argument]
    if (typeof text !== 'string') return []
    const time = readTime(text, ofDate)
    if (time !== null) return [[param, time] as const]
    const why = `${argument} ${quote(text)} is not a time. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`
    throw new ToolError('invalid_argument', why, { argument })
  })
  return Object.fromEntries(given)
}

/**
 * Throws invalid_argument for text that is neither a release nor the beginning of one, because the PCE would not reject
 * it.
 */
function requireReleases(question: { version_gte?: string; version_lte?: string }): void {
  for (const argument of ['version_gte', 'version_lte'] as const) {
    const text = question[argument]
    if (text === undefined || isRelease(text)) continue
    throw new ToolError(
      'invalid_argument',
      `${argument} ${quote(text)} is not a release such as 25.2.10-101 or 25.2.`,
      {
        argument,
      },
    )
  }
}

async function clustersOf({ pce, signal }: ToolContext<true>, cluster: string | undefined) {
  if (cluster === undefined) return undefined
  const reference = cluster.trim().startsWith('/') ? { href: cluster } : { name: cluster }
  return [(await findObject(pce, 'container_clusters', reference, signal)).href]
}

function showMachine(machine: Machine, expand: (label: LabelRef) => LabelRef): Static<typeof Row> {
  return {
    href: machine.href,
    name: machine.name,
    hostname: machine.hostname,
    workload_name: machine.workloadName,
    status: machine.status ?? 'unknown',
    health: machine.health,
    conditions: [...machine.conditions],
    online: machine.online,
    last_heartbeat_at: machine.heartbeatAt,
    version: machine.version,
    ...(machine.upgradeTo !== null && { upgrade_to: machine.upgradeTo }),
    os: machine.os,
    enforcement_mode: machine.mode,
    policy_sync: machine.sync,
    policy_received_at: machine.receivedAt,
    policy_applied_at: machine.appliedAt,
    ip_addresses: [...machine.addresses],
    labels: machine.labels.map(expand).map(({ key, value, href }) => (key === undefined ? href : `${key}=${value}`)),
    ven_type: machine.type,
    workload_href: machine.workload,
  }
}

/**
 * Explains why no VEN matches. If the requested condition is unknown, the explanation lists the conditions in the PCE's
 * documentation, because the PCE itself offers no list of them.
 */
function explainNone(condition: string | undefined): string {
  if (condition === undefined || KNOWN_CONDITIONS.includes(condition)) return 'No VEN matches.'
  return `No VEN matches. Conditions that PCEs are documented to filter by: ${KNOWN_CONDITIONS.join(', ')}.`
}

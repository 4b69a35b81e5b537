import { Type, type Static } from '@sinclair/typebox'
import { Nullable, StringEnum } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Ven } from '../../schemas/pce/ven.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { findObject } from '../../domain/inventory/find-object.js'
import { hintAtHostname } from '../../domain/inventory/hint-at-hostname.js'
import { resolveLabelConditions } from '../../domain/inventory/label-conditions.js'
import { labelExpander, parseLabelList } from '../../domain/inventory/labels.js'
import { addressFilter, allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { readTime } from '../../domain/traffic/traffic-window.js'
import {
  conditionsOf,
  healthOf,
  isRelease,
  isSilentOnline,
  isUpTo,
  isWholeRelease,
  KNOWN_CONDITIONS,
  remarkOnSilent,
  workOf,
} from '../../domain/vens/describe-ven.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'

const NAME = 'get-vens'
const DEFAULT_MAX_RESULTS = 50
const Text = (description: string) => Nullable(Type.String({ description }))
const Time = (description: string) => Type.Optional(Type.String({ description }))

const Row = Type.Object({
  href: Type.String(),
  name: Text('Its own name; null: none, hostname is what consoles show'),
  hostname: Type.String(),
  status: Type.String(),
  health: StringEnum(['healthy', 'warning', 'error'] as const, { description: 'The worst of its conditions' }),
  conditions: Type.Array(
    Type.Object({
      condition: Type.String({ description: "The PCE's word, for the filter" }),
      means: Type.String({ description: 'In plain words' }),
      severity: Type.String(),
      since: Text('First reported'),
    }),
    { description: 'What is wrong with it; [] if nothing' },
  ),
  online: Nullable(Type.Boolean()),
  last_heartbeat_at: Text('Last heard of'),
  version: Text('Release it runs'),
  upgrade_to: Type.Optional(Type.String({ description: 'Upgrade under way' })),
  os: Text('os_id'),
  enforcement_mode: Text('Mode of its workload'),
  policy_sync: Text('applied: it has the newest policy'),
  ip_addresses: Type.Array(Type.String(), { description: 'Of its interfaces' }),
  labels: Type.Array(Type.String(), { description: 'key=value' }),
  ven_type: Text('server, endpoint, containerized'),
  workload_href: Text('Its workload'),
})

const output = Type.Object({
  vens: Type.Array(Type.Partial(Row), { description: 'VENs of this page' }),
  ...PagingOutput,
  message: Type.Optional(Type.String({ description: 'Set when nothing matches' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What in this page contradicts itself' })),
})

export default defineTool({
  name: NAME,
  summary: 'VENs with status, health and what is wrong in words, version, last heartbeat, mode, policy sync.',
  effect: 'read',
  toolset: 'vens',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 8, and: 'one for each label group inside another' },
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
        }),
      ),
      online: Type.Optional(Type.Boolean({ description: 'As the PCE counts it; compared here: reads all' })),
      health: Type.Optional(
        StringEnum(['healthy', 'unhealthy', 'error', 'warning'] as const, {
          description: 'unhealthy: error or warning',
        }),
      ),
      condition: Type.Optional(Type.String({ minLength: 1, description: 'e.g. agent.missed_heartbeats' })),
      ven_type: Type.Optional(
        StringEnum(['server', 'endpoint', 'containerized'] as const, { description: 'The type of VEN' }),
      ),
      activation_type: Type.Optional(Type.String({ minLength: 1, description: 'pairing_key …' })),
      authentication_recovery: Type.Optional(Type.Boolean({ description: 'May authenticate anew' })),
      upgrade_pending: Type.Optional(Type.Boolean({ description: 'Upgrade under way' })),
      labels: LabelsFilter,
      container_cluster: Type.Optional(Type.String({ minLength: 1, description: 'Exact name or href' })),
      active_pce_fqdn: Type.Optional(Type.String({ minLength: 1, description: 'The exact name of the active PCE' })),
      version_gte: Time('This release or later; 24.5 is all of it'),
      version_lte: Time('This release or earlier; 24.5 is all of it'),
      last_heartbeat_gte: Time('Heard since'),
      last_heartbeat_lte: Time('Not heard since'),
      last_goodbye_gte: Time('Said goodbye since'),
      last_goodbye_lte: Time('Said goodbye until'),
      disconnected_before: Time('Disconnected since before'),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { health: 'unhealthy', labels: ['env=prod'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, ...question } = args
    const select = selectFields(fields, Row)
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const { exact } = question
    const times = readTimes(question)
    requireReleases(question)
    const { version_lte: last, online } = question
    // The PCE would treat 24.5 as a release before 24.5.0, so an incomplete release is compared here.
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
      health: question.health,
      condition: question.condition,
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
    const ownFilter = allOf<Ven>(
      ownLabels && ((ven) => ownLabels({ href: ven.href, name: null, hostname: null, labels: ven.labels ?? [] })),
      isPart ? ({ version }) => version != null && isUpTo(version, last) : undefined,
      online === undefined ? undefined : (ven) => workOf(ven).online === online,
      matchExactly<Ven>(exact, question, {
        name: ({ name }) => [name],
        hostname: ({ hostname }) => [hostname],
        description: ({ description }) => [description],
        ip_address: addressesOf,
        os: ({ os_id: os }) => [os],
      }),
    )
    const query = { api: ctx.pce.vens, params, signal: ctx.signal }
    const slice = await fetchSlice(query, position, pageSize(maxResults, ctx.limits, fields), ownFilter)
    const expand = await labelExpander(
      ctx.pce,
      slice.items.flatMap((ven) => ven.labels ?? []),
      ctx,
    )
    const shown = slice.items.map((ven) => select(showVen(ven, expand)))
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, { vens: [] })
    const warnings = remarkOnSilent(
      slice.items.slice(0, rows.length).filter((ven) => isSilentOnline(ven, ctx.now())).length,
    )
    if (slice.totalCount > 0) return { vens: rows, ...paging, ...(warnings.length > 0 && { warnings }) }
    const hint = await hintAtHostname({ ...query, isNarrowed: ownFilter !== undefined })
    return { vens: rows, ...paging, message: `${explainNone(question.condition)}${hint === null ? '' : ` ${hint}`}` }
  },
})

/**
 * Converts time bounds to the form that the PCE accepts, with a time zone (P8). Throws invalid_argument if one is not a
 * time.
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
    const why = `${argument} "${text}" is not a time. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`
    throw new ToolError('invalid_argument', why, { argument })
  })
  return Object.fromEntries(given)
}

/**
 * Throws invalid_argument for text that is not a release or the beginning of one, because the PCE would compare it
 * anyway.
 */
function requireReleases(question: { version_gte?: string; version_lte?: string }): void {
  for (const argument of ['version_gte', 'version_lte'] as const) {
    const text = question[argument]
    if (text === undefined || isRelease(text)) continue
    throw new ToolError('invalid_argument', `${argument} "${text}" is not a release such as 25.2.10-101 or 25.2.`, {
      argument,
    })
  }
}

async function clustersOf({ pce, signal }: ToolContext<true>, cluster: string | undefined) {
  if (cluster === undefined) return undefined
  const reference = cluster.trim().startsWith('/') ? { href: cluster } : { name: cluster }
  return [(await findObject(pce, 'container_clusters', reference, signal)).href]
}

const addressesOf = ({ interfaces, workloads }: Ven) => [
  ...(workloads ?? []).map(({ public_ip: ip }) => ip),
  ...(interfaces ?? []).map(({ address }) => address),
]

function showVen(ven: Ven, expand: (label: LabelRef) => LabelRef): Static<typeof Row> {
  const conditions = conditionsOf(ven)
  const { workload, mode, online, sync } = workOf(ven)
  const { upgrade_target_version: target } = ven
  return {
    href: ven.href,
    name: ven.name ?? null,
    hostname: ven.hostname,
    status: ven.status ?? 'unknown',
    health: healthOf(conditions),
    conditions,
    online,
    last_heartbeat_at: ven.last_heartbeat_at ?? null,
    version: ven.version ?? null,
    ...(target != null && { upgrade_to: target }),
    os: ven.os_id ?? null,
    enforcement_mode: mode,
    policy_sync: sync,
    ip_addresses: (ven.interfaces ?? []).flatMap(({ address }) => address ?? []),
    labels: (ven.labels ?? [])
      .map(expand)
      .map(({ key, value, href }) => (key === undefined ? href : `${key}=${value}`)),
    ven_type: ven.ven_type ?? null,
    workload_href: workload,
  }
}

/** Explains an empty result. Conditions are names of the PCE that cannot be looked up, so the known ones are listed. */
function explainNone(condition: string | undefined): string {
  if (condition === undefined || KNOWN_CONDITIONS.includes(condition)) return 'No VEN matches.'
  return `No VEN matches. Conditions that PCEs are documented to filter by: ${KNOWN_CONDITIONS.join(', ')}.`
}

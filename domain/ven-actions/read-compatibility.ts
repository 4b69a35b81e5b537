import { PceApiError, PceError, type PceResponse } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadSelection } from '../../schemas/workload-selection.js'
import type { ToolContext } from '../call.js'
import { resolveSelection } from '../hygiene/select-workloads.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { findObject } from '../inventory/find-object.js'
import { hintAtHostname } from '../inventory/hint-at-hostname.js'
import { parseHref } from '../inventory/parse-href.js'
import { isManaged } from '../inventory/workloads.js'
import { compareTexts } from '../text/compare-texts.js'
import { mapBounded } from '../text/pace-work.js'
import { fieldsOf, flagOf, objectsOf, textOf } from '../vens/read-fields.js'

/**
 * The known compatibility of a workload, worst first. `red`, `yellow` and `green` are the PCE's own words (P126).
 * `not_reported`: the PCE has no report, or an empty one. `unclear`: the verdict in the report is none of these words.
 * `not_read`: the PCE did not answer the request for the report. `not_idle`: there is no report, because VENs check
 * only in idle mode.
 */
export const COMPATIBILITY = ['red', 'unclear', 'not_read', 'not_reported', 'yellow', 'not_idle', 'green'] as const
export type Compatibility = (typeof COMPATIBILITY)[number]

/** A check in a report whose result is not green. */
export interface FailedCheck {
  /** The PCE's name of the check; `unnamed` if it has none. */
  check: string
  status: string
  /** What the VEN found, as a clipped text. */
  found: string
  means: string
}

/** A workload with its compatibility as the PCE reports it. */
export interface CheckedWorkload {
  href: string
  name: string
  os: string | null
  online: boolean | null
  mode: string | null
  status: Compatibility
  /** When the PCE received the report; null if it does not say. */
  updatedAt: string | null
  /** True unless the report is known to be at most two days old. VENs check every 24 hours (P126). */
  isOld: boolean
  failed: FailedCheck[]
  /** The reason for the status, if the report itself does not show it. */
  note: string | null
}

/** The selected workloads, sorted by name, whose reports are read one after another. */
export interface Candidates {
  idle: Workload[]
  notIdle: CheckedWorkload[]
  /** Number of workloads without a VEN that match. */
  unmanaged: number
}

type Ctx = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'progress'>

const IN_FLIGHT = 5
/** Number of reports read in one round. After each round, it is checked whether enough were found. */
const PER_ROUND = 20
const OLD_MS = 2 * 86_400_000
const MOST_CHECKS = 20
const MOST_CHARACTERS = 160
/** Maximum size of a report in bytes. Known reports have about a thousand. */
const MOST_BYTES = 200_000

/**
 * The meaning of checks, by their names in lower case. The vendor's guide explains the checks of iptables rules and
 * packages; the other meanings only spell out the names (P126).
 */
const MEANINGS: Readonly<Record<string, string>> = {
  required_packages_installed: 'packages that the VEN needs are missing on the host',
  required_packages_missing: 'packages that the VEN needs are missing on the host',
  ipv4_forwarding_enabled:
    'the host forwards IPv4 by rules of iptables, which the VEN removes when it leaves idle mode',
  ipv4_forwarding_pkt_cnt: 'the host forwarded IPv4 packets, which its forwarding rules let pass',
  iptables_rule_cnt:
    'the host has iptables rules of its own, which the VEN removes when it leaves idle mode: save them',
  ip6tables_rule_cnt:
    'the host has ip6tables rules of its own, which the VEN removes when it leaves idle mode: save them',
  ipv6_enabled: 'IPv6 is enabled on the host',
  ipv6_global_scope: 'the host has IPv6 addresses of global scope',
  ipv6_active_conn_cnt: 'the host has open connections over IPv6',
  routing_table_conflict: 'the routing table of the host conflicts with what the VEN needs',
  ipsec_service_enabled: 'an IPsec service runs on the host, beside which the VEN cannot encrypt traffic',
  group_policy: 'a group policy of Windows sets the firewall of the host',
  unwanted_nics: 'the host has network interfaces that the VEN does not work with',
}

/** Explains a check in words. For an unknown check, the explanation is only its name. */
export const meaningOfCheck = (check: string): string =>
  Object.hasOwn(MEANINGS, check.toLowerCase())
    ? (MEANINGS[check.toLowerCase()] as string)
    : `the check ${check.replaceAll('_', ' ')} failed; what it means is not known here`

/**
 * Finds the workloads whose reports are read: the named ones (each by href, or by exact name or host name), those with
 * the given labels, or all in idle mode. Each is listed once, sorted by name.
 * @throws {ToolError} the errors of name resolution; no_workloads if a selection by labels matches none.
 */
export async function findCandidates(
  ctx: Ctx,
  asked: { workloads?: readonly string[] | undefined; labels?: WorkloadSelection['labels'] },
): Promise<Candidates> {
  const found = asked.workloads === undefined ? await select(ctx, asked.labels) : await findNamed(ctx, asked.workloads)
  const all = [...new Map(found.map((one) => [one.href, one])).values()]
  const managed = all
    .filter(isManaged)
    .sort((a, b) => compareTexts(nameOf(a), nameOf(b)) || compareTexts(a.href, b.href))
  return {
    idle: managed.filter(({ enforcement_mode: mode }) => mode === 'idle'),
    notIdle: managed
      .filter(({ enforcement_mode: mode }) => mode !== 'idle')
      .map((one) => ({
        ...describe(one),
        status: 'not_idle',
        note: one.enforcement_mode == null ? 'Its mode is not known.' : null,
      })),
    unmanaged: all.length - managed.length,
  }
}

const findNamed = ({ pce, signal }: Ctx, named: readonly string[]): Promise<Workload[]> =>
  mapBounded(named, IN_FLIGHT, (text) => {
    const href = text.trim()
    return findObject(pce, 'workloads', href.startsWith('/') ? { href } : { name: text }, signal)
  })

async function select(ctx: Ctx, labels: WorkloadSelection['labels']): Promise<Workload[]> {
  const filters = labels === undefined ? { enforcement_mode: 'idle' as const, managed: true } : { labels }
  const { params, ownFilter } = await resolveSelection(ctx.pce, filters, ctx)
  const query = { api: ctx.pce.workloads, params, signal: ctx.signal }
  const found: Workload[] = []
  await scanWhole(query, {
    onBegin: () => void (found.length = 0),
    onItems(items) {
      for (const one of items) if (one.deleted !== true && ownFilter?.(one) !== false) found.push(slim(one))
    },
  })
  if (found.length > 0 || labels === undefined) return found
  const others = await hintAtHostname({ ...query, isNarrowed: ownFilter !== undefined })
  const text = ['No workload matches.', ...(others === null ? [] : [others])].join(' ')
  throw new ToolError('no_workloads', text, { argument: 'labels' })
}

/** Keeps only the fields of a workload that are needed here, because there may be a hundred thousand workloads. */
const slim = ({ href, name, hostname, os_id, online, enforcement_mode, managed, ven, agent }: Workload): Workload => ({
  href,
  name,
  hostname,
  os_id,
  online,
  enforcement_mode,
  managed,
  ven,
  agent: { href: agent?.href },
})

const nameOf = ({ name, hostname, href }: Workload): string => name || hostname || href

const describe = (workload: Workload) => ({
  href: workload.href,
  name: nameOf(workload),
  os: textOf(workload.os_id),
  online: flagOf(workload.online),
  mode: textOf(workload.enforcement_mode),
  updatedAt: null,
  isOld: false,
  failed: [],
  note: null,
})

/**
 * The reports of some workloads, in the order of the workloads. `isGivenUp` is true if reading stopped because the PCE
 * answered no request of a round.
 */
export interface ReportsRead {
  read: CheckedWorkload[]
  isGivenUp: boolean
}

/**
 * Reads the reports of workloads in rounds, with one request per report. It stops when `isEnough` returns true after a
 * round, or when the PCE answers no request of a round. It reports progress and ends when the call is cancelled.
 */
export async function readCompatibility(
  ctx: Ctx,
  idle: readonly Workload[],
  isEnough: (read: readonly CheckedWorkload[]) => boolean,
): Promise<ReportsRead> {
  const read: CheckedWorkload[] = []
  let isGivenUp = false
  while (read.length < idle.length && !isGivenUp && !isEnough(read)) {
    const round = idle.slice(read.length, read.length + PER_ROUND)
    ctx.progress({ progress: read.length, total: idle.length, message: 'Reading compatibility reports' })
    const answers = await mapBounded(round, IN_FLIGHT, (workload) => readOne(ctx, workload))
    read.push(...answers)
    isGivenUp = round.length > 1 && answers.every(({ status }) => status === 'not_read')
  }
  return { read, isGivenUp }
}

async function readOne({ pce, signal, now }: Ctx, workload: Workload): Promise<CheckedWorkload> {
  const own = describe(workload)
  const path = reportPath(workload, pce.orgId)
  if (path === null)
    return { ...own, status: 'not_read', note: 'The PCE names no VEN of it whose report could be asked for.' }
  let answer: PceResponse
  try {
    answer = await pce.get(path, { includeOrg: false, signal, maxBytes: MOST_BYTES })
  } catch (error) {
    if (signal.aborted || !isAboutOne(error)) throw error
    return error instanceof PceApiError && error.isGone
      ? { ...own, status: 'not_reported', note: 'The PCE has no report of it.' }
      : { ...own, status: 'not_read', note: error.message }
  }
  return { ...own, ...judge(readBody(answer), now()) }
}

/** Returns true for a failure after which the reports of other workloads may still be readable. */
const isAboutOne = (error: unknown): error is PceError =>
  error instanceof PceApiError
    ? error.status !== 401
    : error instanceof PceError && ['body_too_large', 'invalid_response'].includes(error.code)

/**
 * Reads the object in the PCE's answer. An empty answer counts as an empty object; for anything else, the result is
 * null.
 */
function readBody(answer: PceResponse): Record<string, unknown> | null {
  try {
    const body: unknown = answer.json()
    if (body == null || (Array.isArray(body) && body.length === 0)) return {}
    return typeof body === 'object' && !Array.isArray(body) ? fieldsOf(body) : null
  } catch {
    return answer.text.trim() === '' ? {} : null
  }
}

/** Returns the path of a workload's report: below its agent, or below its VEN if the PCE names no agent (P126). */
function reportPath({ agent, ven }: Workload, org: string | number): string | null {
  const path = [agent?.href, ven?.href].find((href) => {
    const parsed = href == null ? null : parseHref(href)
    return parsed?.id !== undefined && ['agents', 'vens'].includes(parsed.kind) && parsed.org === String(org)
  })
  return path === undefined ? null : `${path}/compatibility_report`
}

/** Interprets a report. A green verdict counts only if the report contains the checks behind it (P126). */
function judge(
  report: Record<string, unknown> | null,
  now: number,
): Partial<CheckedWorkload> & Pick<CheckedWorkload, 'status'> {
  if (report === null) return { status: 'unclear', note: 'The PCE answered something other than a report.' }
  const verdict = textOf(report['qualify_status'])
  const tests = objectsOf(fieldsOf(report['results'])['qualify_tests'])
  if (verdict === null && (tests ?? []).length === 0)
    return { status: 'not_reported', note: 'The PCE has an empty report of it.' }
  const updatedAt = textOf(report['last_updated_at'])
  const failed = failedOf(tests ?? [])
  const told = {
    updatedAt,
    isOld: !(now - Date.parse(updatedAt ?? '') <= OLD_MS),
    failed: failed.slice(0, MOST_CHECKS),
  }
  if (verdict === 'red' || verdict === 'yellow') return { ...told, status: verdict }
  if (verdict !== 'green') {
    const said = verdict === null ? 'no verdict' : `the verdict ${clip(verdict)}`
    return { ...told, status: 'unclear', note: `Its report has ${said}.` }
  }
  if (tests === null) return { ...told, status: 'unclear', note: 'Its report is green, and says nothing of any check.' }
  if (failed.length > 0)
    return { ...told, status: 'unclear', note: 'Its report is green, and some of its checks are not.' }
  return { ...told, status: 'green' }
}

/**
 * Returns the checks that are not green. A check is an object with a status and at least one other field. The list of
 * missing packages may be in an object of its own without a status.
 */
function failedOf(tests: readonly Record<string, unknown>[]): FailedCheck[] {
  const missing = tests.map((test) => test['required_packages_missing']).find((list) => Array.isArray(list))
  return tests.flatMap(({ status, ...facts }): FailedCheck[] => {
    const word = textOf(status)
    if (word === null || word === 'green') return []
    const [check = 'unnamed', value] = Object.entries(facts)[0] ?? []
    const isPackages = check.startsWith('required_packages')
    const found = isPackages && Array.isArray(missing) ? missing.map(String).join(', ') : said(value)
    return [{ check: clip(check), status: clip(word), found: clip(found), means: meaningOfCheck(clip(check)) }]
  })
}

const said = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
const clip = (text: string): string => (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text)

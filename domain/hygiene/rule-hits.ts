import { parse } from 'csv-parse/sync'
import { PceApiError, PceError } from '../../pce-client/index.js'
import type { Report } from '../../schemas/pce/report.js'
import type { FirewallSettings } from '../../schemas/pce/settings.js'
import type { Ven } from '../../schemas/pce/ven.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, pickEvery } from '../inventory/fetch-every.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { namesAt, type End, type PlacedRule } from '../policy/match-rules.js'
import { quote } from '../text/escape-text.js'
import type { Steps } from '../text/pace-work.js'

/** The lowest PCE and VEN releases that count how often rules are hit (P95). */
export const COUNTING = { pce: '23.5.10 (hosted: 24.2.0)', ven: '23.2.30' } as const
const LEAST_VEN = [23, 2, 30] as const

/** The number of hits per rule, from a report of the PCE. */
export interface RuleHits {
  /** Number of hits, by the draft href of the rule. A rule is absent if its hits were not counted. */
  hits: ReadonlyMap<string, number>
  /**
   * The time window of the report. It never begins before the last time at which hit counting was switched on or off.
   */
  from: string
  to: string
  report: string
  /**
   * Workloads that do not count hits. A rule that the PCE sends to one of them may have been hit there without being
   * counted.
   */
  silent: readonly End[]
}

const DAY_MS = 86_400_000
const TEMPLATE = /\/rule_hit_count_report$/
const RULE = /^\/orgs\/\d+\/sec_policy\/[^/]+\/rule_sets\/[^/]+\/(?:sec_rules|deny_rules)\/[^/]+$/
/**
 * Maximum size of a report in bytes. Even a report of 75,000 rules, the most that the PCE counts, has only about a
 * tenth of this size.
 */
const MOST_BYTES = 64 * 1024 * 1024

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>

/**
 * Reads the newest finished rule hit count report that covers `days` days. Returns a sentence if there is no such
 * report or if hits are not counted. This function never requests a report, because a new report would stay on the PCE
 * for everyone to see. Throws the errors of the PCE client, except if the PCE does not know the reports or this account
 * may not read them.
 */
export async function readRuleHits(ctx: Context, days: number, labels: LabelIndex): Promise<RuleHits | string> {
  const settings = await allowed(readSettings(ctx))
  if (typeof settings === 'string') return `The firewall settings could not be read: ${settings}`
  const scopes = settings.rule_hit_count_enabled_scopes
  if (scopes == null) return 'The firewall settings do not say whether hits are counted.'
  if (scopes.length === 0) return 'Counting hits is switched on for no workload (rule_hit_count_enabled_scopes).'
  const since = Date.parse(settings.updated_at ?? '')
  if (since > ctx.now() - days * DAY_MS)
    return `The firewall settings were changed on ${settings.updated_at}, so that counting may have begun within the ${days} days.`
  const reports = await allowed(fetchEvery<Report>({ api: ctx.pce.reports, params: {}, signal: ctx.signal }))
  if (typeof reports === 'string') return `The reports could not be read: ${reports}`
  const newest = newestOf(reports.items, days)
  if (newest === undefined)
    return `There is no finished rule hit count report over ${days} days or more; somebody can have the PCE make one (Reports, Rule Hit Count).`
  const table = await allowed(download(ctx, newest.report.href))
  if (typeof table === 'string') return `The report ${newest.report.href} could not be read: ${table}`
  const hits = readTable(table.text)
  if (typeof hits === 'string') return hits
  return {
    hits,
    from: new Date(newest.from).toISOString(),
    to: new Date(newest.to).toISOString(),
    report: newest.report.href,
    silent: await findSilent(ctx, scopes, labels),
  }
}

/** Returns the PCE's answer, or the PCE's message if it refuses the request. */
async function allowed<T>(asked: Promise<T>): Promise<T | string> {
  try {
    return await asked
  } catch (error) {
    const isRefused =
      error instanceof PceApiError && error.status >= 400 && error.status < 500 && ![401, 429].includes(error.status)
    if (isRefused || (error instanceof PceError && error.code === 'invalid_response')) return error.message
    throw error
  }
}

async function readSettings({ pce, signal }: Context): Promise<FirewallSettings> {
  const page = await fetchEvery<FirewallSettings>({
    api: pce.firewallSettings,
    policyVersion: 'active',
    params: {},
    signal,
  })
  return page.items[0] ?? ({} as FirewallSettings)
}

function newestOf(reports: readonly Report[], days: number) {
  const finished = reports.flatMap((report) => {
    const { report_template: template, status, generated_at: at, report_parameters: parameters } = report
    const range = parameters.report_time_range
    if (!TEMPLATE.test(template.href) || status !== 'done' || at == null || range === undefined) return []
    const [from, to] =
      'last_num_days' in range
        ? [Date.parse(at) - range.last_num_days * DAY_MS, Date.parse(at)]
        : [Date.parse(range.start_date), Date.parse(range.end_date)]
    return to - from >= days * DAY_MS ? [{ report, from, to }] : []
  })
  return finished.sort((a, b) => b.to - a.to)[0]
}

async function download({ pce, signal }: Context, href: string): Promise<{ text: string }> {
  const bytes = await pce.downloadReport(href, { signal })
  if (bytes.byteLength > MOST_BYTES) return { text: '' }
  return { text: new TextDecoder().decode(bytes) }
}

/**
 * Reads the table of a report. Its columns are not documented (P95), so hrefs are recognised by their form and hits by
 * a word in the header.
 */
function readTable(text: string): Map<string, number> | string {
  let rows: string[][]
  try {
    rows = parse(text, { bom: true, relax_column_count: true, skip_empty_lines: true })
  } catch {
    return 'The report is not readable as a table.'
  }
  const [head = [], ...body] = rows
  const href = head.findIndex((_, at) => body.length > 0 && body.every((row) => RULE.test((row[at] ?? '').trim())))
  const hits = head.findIndex((name) => /hits?[ _]?count|^hits$/iu.test(name.trim()))
  if (href === -1 || hits === -1 || body.some((row) => !/^\d+$/.test((row[hits] ?? '').trim())))
    return `The columns of the report are not known: ${quote(head.join(', '))}.`
  const counts = new Map<string, number>()
  for (const row of body) {
    const rule = toDraftHref((row[href] ?? '').trim())
    counts.set(rule, (counts.get(rule) ?? 0) + Number(row[hits]))
  }
  return counts
}

/**
 * Finds the workloads that do not count rule hits, because their VEN is too old or because they are outside the scopes
 * in which counting is enabled.
 */
async function findSilent(
  { pce, signal }: Context,
  scopes: NonNullable<FirewallSettings['rule_hit_count_enabled_scopes']>,
  labelIndex: LabelIndex,
): Promise<End[]> {
  const inScope = (labels: ReadonlySet<string>) =>
    scopes.some((scope) =>
      scope.every(({ label, exclusion }) => label !== undefined && labels.has(label.href) === (exclusion !== true)),
    )
  const silent = await pickEvery({ api: pce.vens, params: {}, signal }, (ven: Ven) =>
    workloadsOf(ven).flatMap(({ href, labels }) => {
      // Some releases return only the hrefs of labels.
      const own = (labels ?? ven.labels ?? []).map((label) => labelIndex.get(label.href) ?? label)
      const counts = isNewEnough(ven.version) && inScope(new Set(own.map((label) => label.href)))
      if (counts) return []
      const byKey = Object.fromEntries(own.flatMap(({ key, value }) => (key === undefined ? [] : [[key, value ?? '']])))
      return [{ workload: href, labels: byKey, ip: null, fqdn: null }]
    }),
  )
  return silent.flat()
}

/** Returns the workloads listed in a VEN. If it lists none, returns the workload with the same id as the VEN (P24). */
const workloadsOf = ({ href, workloads }: Ven): Pick<NonNullable<Ven['workloads']>[number], 'href' | 'labels'>[] =>
  workloads != null && workloads.length > 0 ? workloads : [{ href: href.replace('/vens/', '/workloads/') }]

function isNewEnough(version: string | undefined): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d+)/
    .exec(version ?? '')
    ?.slice(1)
    .map(Number)
  if (parts === undefined) return false
  const at = LEAST_VEN.findIndex((least, index) => parts[index] !== least)
  return at === -1 || (parts[at] as number) > LEAST_VEN[at]!
}

/** The active rules, classified by their hits. */
export interface HitFindings {
  /**
   * Rules that were certainly not hit: hits were counted for the whole window on all workloads to which the PCE sends
   * them.
   */
  without: PlacedRule[]
  /**
   * Numbers of rules without counted hits that may have been hit nevertheless. `young` rules did not exist for the
   * whole window; `unheard` rules are sent to workloads that do not count hits.
   */
  young: number
  unheard: number
  /** Number of rules that are missing in the report. */
  uncounted: number
  hit: number
}

/** Classifies active rules by their hits. A rule counts as not hit only if no hit can have been missed. */
export function* judgeHits(
  rules: readonly (PlacedRule & { href: string; created: string })[],
  { hits, from, silent }: RuleHits,
  policy: PolicySnapshot,
): Steps<Omit<HitFindings, 'without'> & { without: number[] }> {
  const groups = groupByLabels(silent)
  const found = { without: [] as number[], young: 0, unheard: 0, uncounted: 0, hit: 0 }
  for (const [at, placed] of rules.entries()) {
    const count = hits.get(toDraftHref(placed.href))
    if (count === undefined) found.uncounted += 1
    else if (count > 0) found.hit += 1
    else if (!(Date.parse(placed.created) <= Date.parse(from))) found.young += 1
    else if (yield* isWrittenToAny(placed, groups, policy)) found.unheard += 1
    else found.without.push(at)
    yield
  }
  return found
}

/**
 * Groups the given ends to reduce the number of tests. `kinds` has one end for each distinct set of labels; `hrefs` has
 * all ends by the href of their workload.
 */
function groupByLabels(ends: readonly End[]) {
  const kinds = new Map<string, End>()
  for (const end of ends) kinds.set(JSON.stringify(Object.entries(end.labels).sort()), end)
  return { kinds: [...kinds.values()], hrefs: new Map(ends.map((end) => [end.workload ?? '', end])) }
}

function* isWrittenToAny(
  placed: PlacedRule,
  { kinds, hrefs }: ReturnType<typeof groupByLabels>,
  policy: PolicySnapshot,
): Steps<boolean> {
  for (const side of ['providers', 'consumers'] as const) {
    const named = placed.rule[side].flatMap(({ workload }) => hrefs.get(workload?.href ?? '') ?? [])
    for (const [at, end] of [...kinds, ...named].entries()) {
      if (namesAt(placed, side, end, policy).asWorkload !== 'no') return true
      if (at % 50 === 49) yield
    }
  }
  return false
}

import type { PceError } from '../../pce-client/index.js'
import { PceApiError } from '../../pce-client/index.js'
import type { AppGroupRisk, RiskSummary } from '../../schemas/pce/risk.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { IncompleteListError, isUnread, pickEvery, scanEvery } from '../inventory/fetch-every.js'
import { compareTexts } from '../text/compare-texts.js'

/** The parts into which the PCE's own findings about exposure are divided. */
export const FINDINGS = [
  'risk_summary',
  'app_group_risk',
  'app_group_risk_details',
  'workload_risk',
  'risky_services',
  'vulnerability_exposure',
  'vulnerability_reports',
] as const
export type Finding = (typeof FINDINGS)[number]

/** A part of the findings that this PCE does not provide, and the reason. */
export interface NotKnown {
  what: Finding
  /** `refused`: the PCE answered with an error. `not_computed`: it answered, but has no value. */
  is: 'refused' | 'not_computed'
  /** The HTTP status of the refusal; absent if the PCE did not answer at all. */
  http_status?: number
  why: string
}

/** The severities of exposure, worst first. */
export const SEVERITIES = ['critical', 'high', 'medium', 'low', 'fully_protected'] as const

type Ransomware<T extends { ransomware?: unknown }> = NonNullable<T['ransomware']>

/** An application group with the exposure that the PCE computed for it. */
export interface ExposedGroup {
  name: string
  severity: string
  protection: number
  updatedAt: string
  /**
   * The PCE's details of the group, whose fields are not documented; absent if they were not requested or not returned.
   */
  details?: unknown
}

/** A workload that has vulnerabilities on reachable ports, with the scores that the PCE computed. */
export interface VulnerableWorkload {
  name: string
  /**
   * The exposure score in the present enforcement mode and the one in full enforcement; null if the PCE does not report
   * it.
   */
  score: number | null
  scoreInFull: number | null
  vulnerabilities: number | null
  /** The highest severity score among the workload's vulnerabilities: ten times the CVSS score. */
  worst: number | null
  /** Whether the vulnerable ports are open to any address; null if the PCE does not report it. */
  isOpenToAny: boolean | null
}

/**
 * The PCE's own findings about exposure. A part that the PCE does not provide is null, and `notKnown` has the reason.
 */
export interface ExposureFindings {
  summary: Ransomware<RiskSummary> | null
  groups: { total: number; notComputed: number; exposed: ExposedGroup[] } | null
  workloads: { total: number; bySeverity: Record<string, number>; notComputed: number } | null
  services: Service[] | null
  vulnerable: { total: number; workloads: VulnerableWorkload[]; isCut: boolean } | null
  reports: { total: number; newest: string | null } | null
  notKnown: NotKnown[]
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'progress'>

/** Number of application groups, the worst ones first, for which details are requested. */
const DETAILED_GROUPS = 3
/** Maximum numbers of workloads: of those whose exposure is counted, and of vulnerable ones that are kept. */
const MOST_WORKLOADS = 50_000
const MOST_KEPT = 2_000
const LISTED_WITH_VULNERABILITIES = 'workload_labels_vulnerabilities'

/**
 * Reads the PCE's own findings about exposure to ransomware and vulnerabilities. Not every release and licence provides
 * every part. A part that the PCE refuses, or for which it has no value, is listed in `notKnown` and never makes the
 * call fail (P115, P116). Rejects only if the call is cancelled.
 */
export async function readExposure(ctx: Context): Promise<ExposureFindings> {
  const { pce, signal } = ctx
  const notKnown: NotKnown[] = []
  const lacks = (what: Finding, why: string): null => {
    notKnown.push({ what, is: 'not_computed', why })
    return null
  }
  const ask = async <T>(what: Finding, read: () => Promise<T>): Promise<T | null> => {
    try {
      return await read()
    } catch (error) {
      if (!isUnread(error) || signal.aborted) throw error
      notKnown.push(refusalOf(what, error))
      return null
    }
  }
  const summary = await ask('risk_summary', async () => {
    const { ransomware } = (await pce.getRiskSummary({ signal })) as Partial<RiskSummary>
    return ransomware ?? lacks('risk_summary', 'the PCE has computed none')
  })
  const groups = await ask('app_group_risk', async () => {
    const found = readGroups(await pce.getAppGroupRiskSummary({ signal }))
    if (found.exposed.length === 0) lacks('app_group_risk', 'the PCE has computed it for no application group')
    return found
  })
  for (const { group, shown } of groups?.worst ?? []) {
    const answered = await ask('app_group_risk_details', async () => {
      const { risk_details: details } = await pce.getAppGroupRiskDetails(group, { signal })
      if (details === null || details === undefined) lacks('app_group_risk_details', `none for ${shown.name}`)
      else shown.details = details
      return true
    })
    // If the PCE refuses the details of one group, it would refuse those of every group.
    if (answered === null) break
  }
  ctx.progress({ progress: 1, message: 'Reading the exposure of workloads' })
  const workloads = await ask('workload_risk', async () => {
    const counted = await countExposure(ctx)
    if (Object.keys(counted.bySeverity).length === 0)
      lacks('workload_risk', 'the PCE has computed it for no workload with a VEN')
    return counted
  })
  const services = await ask('risky_services', () => readRiskyServices(ctx))
  if (services?.length === 0)
    lacks('risky_services', 'no service of active policy is rated: none is a risk, or this PCE rates none')
  const reports = await ask('vulnerability_reports', async () => {
    const dates = await pickEvery(
      { api: pce.vulnerabilityReports, params: {}, signal },
      ({ exported_at: exported, updated_at: updated }) => exported ?? updated ?? '',
    )
    if (dates.length === 0) lacks('vulnerability_reports', 'no scan was uploaded, so no vulnerability is known')
    return {
      total: dates.length,
      newest:
        dates
          .filter((date) => date !== '')
          .sort(compareTexts)
          .at(-1) ?? null,
    }
  })
  const vulnerable = await ask('vulnerability_exposure', () => readVulnerable(ctx))
  if (vulnerable?.total === 0 && (reports === null || reports.total === 0))
    lacks('vulnerability_exposure', 'no workload has a score, and no scan is known that could have given one')
  return {
    summary,
    groups: groups && { total: groups.total, notComputed: groups.notComputed, exposed: groups.exposed },
    workloads,
    services: services !== null && services.length > 0 ? services : null,
    vulnerable,
    reports,
    notKnown,
  }
}

function refusalOf(what: Finding, error: PceError | IncompleteListError): NotKnown {
  if (!(error instanceof PceApiError)) return { what, is: 'refused', why: error.message }
  const { status } = error
  const meaning: Record<number, string> = {
    403: 'this account may not read it, or the licence has no part of it',
    404: 'this release has no such report',
    405: 'this release has no such report',
    406: 'the PCE refuses it, as it does where the feature is off',
  }
  return { what, is: 'refused', http_status: status, why: meaning[status] ?? error.message }
}

/**
 * Compares severities so that the worst comes first. A severity that only a later release knows may be harmful, so it
 * comes before all others.
 */
export const worstFirst = (a: string, b: string): number => rankOf(a) - rankOf(b)
const rankOf = (severity: string): number => SEVERITIES.indexOf(severity as (typeof SEVERITIES)[number])

function readGroups(items: readonly AppGroupRisk[]) {
  const computed = items.flatMap((item) => {
    const risk = item.risk_summary?.ransomware
    if (risk === null || risk === undefined) return []
    const { workload_exposure_severity: severity, ransomware_protection_percent: protection } = risk
    const name = (item.labels ?? []).map(({ value, href }) => value ?? href).join(' | ') || item.app_group.href
    const shown: ExposedGroup = { name, severity, protection, updatedAt: risk.last_updated_at }
    return [{ group: item.app_group.href.split('/').at(-1) ?? '', shown }]
  })
  computed.sort(
    ({ shown: a }, { shown: b }) =>
      worstFirst(a.severity, b.severity) || a.protection - b.protection || compareTexts(a.name, b.name),
  )
  return {
    total: items.length,
    notComputed: items.length - computed.length,
    exposed: computed.map(({ shown }) => shown),
    worst: computed.filter(({ shown }) => shown.severity !== 'fully_protected').slice(0, DETAILED_GROUPS),
  }
}

async function countExposure({ pce, signal }: Context) {
  let [total, notComputed] = [0, 0]
  let bySeverity: Record<string, number> = {}
  const read = await scanEvery(
    { api: pce.workloads, params: { managed: true }, signal },
    {
      most: MOST_WORKLOADS,
      onBegin() {
        ;[total, notComputed, bySeverity] = [0, 0, {}]
      },
      onItems(items: Workload[]) {
        for (const { risk_summary: risk } of items) {
          total += 1
          const severity = risk?.ransomware?.workload_exposure_severity
          if (severity === undefined) notComputed += 1
          else bySeverity[severity] = (bySeverity[severity] ?? 0) + 1
        }
      },
    },
  )
  if (!read.isWhole) throw new IncompleteListError(read)
  return { total, bySeverity, notComputed }
}

/**
 * Reads the services of the active policy that the PCE rates as a risk. A release that does not know the filter for
 * such services may refuse or ignore it. Therefore all services are read in this case, and those without a rating are
 * left out.
 */
async function readRiskyServices({ pce, signal }: Context): Promise<Service[]> {
  const pick = (service: Service) => (service.risk_details?.ransomware == null ? undefined : service)
  const read = (params: Record<string, boolean>) =>
    pickEvery<Service, Service>({ api: pce.services, policyVersion: 'active', params, signal }, pick)
  try {
    return await read({ is_ransomware: true, include_ransomware_protection_percent: true })
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 406) throw error
    return read({})
  }
}

async function readVulnerable({ pce, signal }: Context) {
  let workloads: VulnerableWorkload[] = []
  let total = 0
  const read = await scanEvery(
    {
      api: pce.workloads,
      params: {
        managed: true,
        representation: LISTED_WITH_VULNERABILITIES,
        'vulnerability_summary.vulnerability_exposure_score[gte]': 1,
      },
      signal,
    },
    {
      most: MOST_WORKLOADS,
      onBegin() {
        ;[total, workloads] = [0, []]
      },
      onItems(items: Workload[]) {
        for (const one of items) {
          const found = describeVulnerable(one)
          if (found === undefined) continue
          total += 1
          workloads.push(found)
        }
        // Only the worst workloads are kept. To save time, the list is sorted only when it has grown to twice that
        // number.
        if (workloads.length > 2 * MOST_KEPT) workloads = workloads.sort(mostExposed).slice(0, MOST_KEPT)
      },
    },
  )
  return { total, workloads: workloads.sort(mostExposed).slice(0, MOST_KEPT), isCut: !read.isWhole }
}

/**
 * Returns the scores of a workload; undefined if it has no vulnerabilities or if nobody can reach its vulnerable ports.
 */
function describeVulnerable({ vulnerabilities_summary: summary, ...workload }: Workload) {
  if (summary === null || summary === undefined) return undefined
  const present = summary.current_enforcement_vulnerability_exposure?.vulnerability_exposure_score
  const score = present ?? summary.vulnerability_exposure_score ?? null
  // A PCE that ignores the filter also returns workloads with a score of zero.
  if (score === 0) return undefined
  return {
    name: workload.name ?? workload.hostname ?? workload.href,
    score,
    scoreInFull: summary.full_enforcement_vulnerability_exposure?.vulnerability_exposure_score ?? null,
    vulnerabilities: summary.num_vulnerabilities ?? null,
    worst: summary.max_vulnerability_score ?? null,
    isOpenToAny: summary.vulnerable_port_wide_exposure?.any ?? null,
  }
}

const mostExposed = (a: VulnerableWorkload, b: VulnerableWorkload): number =>
  (b.score ?? Infinity) - (a.score ?? Infinity) || compareTexts(a.name, b.name)

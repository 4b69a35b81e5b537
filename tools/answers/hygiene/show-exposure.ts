import { HIGH_RISK_PORTS } from '../../../domain/dependency-map/collect-app-graph.js'
import { Type, type Static } from '@sinclair/typebox'
import {
  REACHED,
  REMEDIES,
  type ExposedPair,
  type ExposedService,
  type JudgedExposure,
  type OpenRule,
  type Remedy,
} from '../../../domain/hygiene/judge-exposure.js'
import { worstFirst, type ExposureFindings } from '../../../domain/hygiene/read-exposure.js'
import { nameCoverage } from '../../../domain/inventory/name-ports.js'
import { compareTexts } from '../../../domain/text/compare-texts.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { describeReading, Reading } from '../../../domain/traffic/read-flows.js'
import { AssumesOut, explainAssumed, showAssumed } from '../../../schemas/assumes.js'
import { Count, Counts, Nullable, Text } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { explainRecorded, RecordedOut, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import { adviseOnRows, jsonBytes, OVERVIEW_BYTES, Truncation } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'
import { tellSilent } from '../tell-silent.js'

/** The parts of exposure-report's answer from which a caller can choose. */
export const EXPOSURE_PARTS = [
  'services',
  'open_rules',
  'destinations',
  'reached',
  'app_groups',
  'vulnerable_workloads',
] as const

const { window: _window, flows_truncated: _truncated, analysed: _analysed } = Reading
const Reached = Counts(
  `Connections by what policy of today does: ${REACHED.join(', ')}; by_mode, not_enforced: nothing stops it`,
)
const Protects = Counts(
  `Connections that pass by the least that would stop them: ${REMEDIES.join(', ')}; once_online: only VENs that may not enforce now`,
)

/** The answer of exposure-report. */
export const ExposureOutput = Type.Object({
  summary: Text('What is exposed, in a few sentences'),
  not_known: Type.Optional(
    Type.Array(
      Type.Object({
        what: Text('Part of the findings'),
        is: Text('refused or not_computed'),
        http_status: Type.Optional(Count('Of a refusal')),
        why: Text('The reason'),
      }),
      {
        description:
          'What this PCE does not say; none of it reads as fine. Absent where sections are chosen: summary names it',
      },
    ),
  ),
  ransomware: Nullable(Type.Object({}, { description: 'The summary of the PCE; null: not_known has why' })),
  workloads: Type.Optional(
    Type.Object(
      {
        total: Count('With a VEN'),
        by_severity: Counts('As the PCE rates their exposure'),
        not_computed: Count('Without a rating'),
      },
      { description: 'Absent: not known' },
    ),
  ),
  app_group_counts: Type.Optional(Counts('Total, not_computed, and by severity; absent: not known')),
  vulnerabilities: Type.Optional(
    Type.Object(
      {
        exposed_workloads: Type.Optional(Count('Whose vulnerable ports can be reached; absent: not known')),
        reports: Type.Optional(Count('Scans uploaded')),
        newest_report: Type.Optional(Text('When it was exported')),
      },
      { description: 'Absent: not known' },
    ),
  ),
  connections: Type.Optional(Reached),
  would_protect: Type.Optional(Protects),
  services: Type.Optional(
    Type.Array(
      Type.Object({
        service: Text('Its name'),
        ports: Text('What it covers'),
        severity: Type.Optional(Text('As the PCE rates it; absent: only named in the call')),
        category: Type.Optional(Text('admin or legacy')),
        pce_protection_percent: Type.Optional(Type.Number({ description: 'On average, as the PCE has it' })),
        connections: Reached,
        would_protect: Type.Optional(Protects),
        allow_rules: Nullable(Count('In force that let a port of it in at workloads; null: policy could not be read')),
      }),
      { description: 'Worst first' },
    ),
  ),
  open_rules: Type.Optional(
    Type.Array(
      Type.Object({
        services: Type.Array(Type.String(), { description: 'Risky ones of which it lets a port in; 5 at most' }),
        services_total: Type.Optional(Count('Where more')),
        rule_set: Text('Its name'),
        href: Text('Of the rule'),
        rule: Text('In one line'),
      }),
      { description: 'The rules that allow_rules counts' },
    ),
  ),
  open_rules_total: Type.Optional(Count('Shown or not; absent: not known')),
  destinations: Type.Optional(
    Type.Array(
      Type.Object({
        to: Text('Application, host or address'),
        sources: Count('That reach it'),
        ports: Type.Array(Type.String(), { description: 'Reached; 5 at most' }),
        connections: Count('That pass, or may'),
        would_protect: Protects,
      }),
      { description: 'Where risky services are reached, most connections first' },
    ),
  ),
  destinations_total: Type.Optional(Count('Shown or not')),
  reached: Type.Optional(
    Type.Array(
      Type.Object({
        from: Type.String(),
        to: Type.String(),
        ports: Type.Array(Type.String(), { description: 'Busiest 5' }),
        connections: Type.Integer(),
        by: Text('As in connections'),
        would_protect: Text('The least that would stop it'),
      }),
      { description: 'Who reaches risky services, busiest first' },
    ),
  ),
  reached_total: Type.Optional(Count('Pairs, shown or not')),
  app_groups: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        severity: Type.String(),
        protection_percent: Type.Number({ description: 'As the PCE has it' }),
        updated_at: Type.String(),
        details: Type.Optional(Type.Unknown({ description: 'As the PCE has them; of the worst three' })),
      }),
      { description: 'As the PCE rates them, worst first' },
    ),
  ),
  vulnerable_workloads: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        score: Nullable(Count('Exposure in the present mode; null: not told')),
        score_in_full: Nullable(Count('In full enforcement by the rules of today')),
        vulnerabilities: Nullable(Count('How many')),
        worst: Nullable(Count('CVSS score times ten')),
        open_to_any: Nullable(Type.Boolean({ description: 'Vulnerable ports are open to any address' })),
      }),
      { description: 'As the PCE scores them, worst first' },
    ),
  ),
  notes: Type.Array(Type.String(), { description: 'What to know before relying on it' }),
  ...RecordedOut,
  window: Type.Optional(_window),
  flows_truncated: Type.Optional(_truncated),
  analysed: Type.Optional(_analysed),
  ...AssumesOut,
  ...SectionsOutput,
  ...Truncation,
})

/** What the answer shows. `judged` is null if no service has ports by which traffic could be queried. */
interface Shown {
  findings: ExposureFindings
  judged: JudgedExposure | null
  /** Names of services that have at least one entry without ports. */
  portless: readonly string[]
  chosen: Sections<(typeof EXPOSURE_PARTS)[number]>
  /** If set, the lists of pairs and destinations show only traffic with this remedy. */
  remedy: Remedy | undefined
}

const MOST_PORTS = 5
/** Maximum size of the details of an application group, whose form is not documented. */
const MOST_DETAIL_BYTES = 1_000

/** Builds the answer of exposure-report. Totals count everything, including what is not shown. */
export function showExposure(shown: Shown, detail: 'standard' | 'full', limits: Limits): Static<typeof ExposureOutput> {
  const { findings, judged, chosen } = shown
  const { summary, groups, workloads, vulnerable, reports } = findings
  const services = [...(judged?.services ?? [])].sort(riskiestFirst)
  const pairs = (judged?.pairs ?? []).filter(({ remedy }) => shown.remedy === undefined || remedy === shown.remedy)
  const destinations = rankDestinations(pairs)
  return showChosen(
    chosen,
    {
      summary: summarise(shown),
      ...(chosen.names.length === chosen.known.length && { not_known: findings.notKnown }),
      ransomware: summary && showSummary(summary),
      ...(workloads !== null && {
        workloads: {
          total: workloads.total,
          by_severity: workloads.bySeverity,
          not_computed: workloads.notComputed,
        },
      }),
      ...(groups !== null && { app_group_counts: countGroups(groups) }),
      ...((vulnerable !== null || reports !== null) && {
        vulnerabilities: {
          ...(vulnerable !== null && isKnown(findings) && { exposed_workloads: vulnerable.total }),
          ...(reports !== null && { reports: reports.total }),
          ...(reports !== null && reports.newest !== null && { newest_report: reports.newest }),
        },
      }),
      ...(judged !== null && {
        connections: { ...judged.connections },
        ...(Object.keys(judged.remedies).length > 0 && { would_protect: { ...judged.remedies } }),
        ...(judged.openRules !== null && { open_rules_total: judged.openRules.length }),
        destinations_total: destinations.length,
        reached_total: pairs.length,
        ...describeReading(judged.read),
        ...showRecorded(judged.recorded),
        ...showAssumed(judged.assumes),
      }),
      notes: notesOf(shown),
    },
    {
      ...(judged !== null && {
        services: { total: services.length, rows: services.map(showService) },
        ...(judged.openRules !== null && {
          open_rules: { total: judged.openRules.length, rows: judged.openRules.map(showOpenRule) },
        }),
        destinations: { total: destinations.length, rows: destinations },
        reached: { total: pairs.length, rows: pairs.map(showPair) },
      }),
      ...(groups !== null && {
        app_groups: { total: groups.exposed.length, rows: groups.exposed.map(showGroup) },
      }),
      ...(vulnerable !== null && {
        vulnerable_workloads: { total: vulnerable.total, rows: vulnerable.workloads.map(showVulnerable) },
      }),
    },
    {
      detail,
      isAlone: chosen.isAlone,
      limits,
      aim: OVERVIEW_BYTES,
      hint: (longest, isFull) =>
        `At most ${longest} rows of a list are shown; the counts are of all. ${adviseOnRows(detail, isFull, 'sections narrows it.')}`,
    },
  )
}

/** Returns false if it is not known whether there are vulnerabilities, so that "none exposed" would be a guess. */
const isKnown = ({ notKnown }: ExposureFindings) => !notKnown.some(({ what }) => what === 'vulnerability_exposure')

/**
 * Returns the PCE's summary without its lists of the worst applications and services, which the answer shows in full
 * elsewhere.
 */
function showSummary(summary: NonNullable<ExposureFindings['summary']>): object {
  const { top_risky_applications: _apps, top_risky_services: _services, ...rest } = summary
  return rest
}

function countGroups({ total, notComputed, exposed }: NonNullable<ExposureFindings['groups']>) {
  const counts: Record<string, number> = { total, not_computed: notComputed }
  for (const { severity } of exposed) counts[severity] = (counts[severity] ?? 0) + 1
  return counts
}

const passing = ({ connections: { stopped: _stopped, ...rest } }: Pick<JudgedExposure, 'connections'>): number =>
  Object.values(rest).reduce((sum, many) => sum + many, 0)

const severityOf = ({ service }: ExposedService) => service.risk_details?.ransomware?.severity

/** Sorts services: those that are reached come first, then by severity, and those without a rating last. */
const riskiestFirst = (a: ExposedService, b: ExposedService): number =>
  Number(passing(b) > 0) - Number(passing(a) > 0) ||
  Number(severityOf(a) === undefined) - Number(severityOf(b) === undefined) ||
  worstFirst(severityOf(a) ?? '', severityOf(b) ?? '') ||
  passing(b) - passing(a) ||
  compareTexts(a.service.name, b.service.name)

function showService(one: ExposedService) {
  const { service, connections, remedies, allowRules } = one
  const risk = service.risk_details?.ransomware
  const percent = risk?.average_protection_percent
  return {
    service: service.name,
    ports: nameCoverage(service),
    ...(risk != null && { severity: risk.severity, category: risk.category }),
    ...(percent !== undefined && { pce_protection_percent: percent }),
    connections: onlySome(connections),
    ...(Object.keys(remedies).length > 0 && { would_protect: { ...remedies } }),
    allow_rules: allowRules,
  }
}

/** The most services that are named for a rule, because a rule for all services covers every one of them. */
const MOST_SERVICES = 5

const showOpenRule = ({ services, ruleSet, href, line }: OpenRule) => ({
  services: services.slice(0, MOST_SERVICES),
  ...(services.length > MOST_SERVICES && { services_total: services.length }),
  rule_set: ruleSet,
  href,
  rule: line,
})

const onlySome = (counts: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).filter(([, many]) => many > 0))

const showPair = ({ source, destination, ports, connections, reached, remedy }: ExposedPair) => ({
  from: source,
  to: destination,
  ports: ports.slice(0, MOST_PORTS),
  connections,
  by: reached,
  would_protect: remedy,
})

/** Adds up the pairs by their destinations, those with the most connections first. */
function rankDestinations(pairs: readonly ExposedPair[]) {
  const found = new Map<
    string,
    { sources: Set<string>; ports: Set<string>; protects: Partial<Record<Remedy, number>> }
  >()
  for (const { source, destination, ports, remedy, connections } of pairs) {
    const own = found.get(destination) ?? { sources: new Set(), ports: new Set(), protects: {} }
    found.set(destination, own)
    own.sources.add(source)
    for (const port of ports) own.ports.add(port)
    own.protects[remedy] = (own.protects[remedy] ?? 0) + connections
  }
  return [...found]
    .map(([to, { sources, ports, protects }]) => ({
      to,
      sources: sources.size,
      ports: [...ports].sort(compareTexts).slice(0, MOST_PORTS),
      connections: Object.values(protects).reduce((sum, many) => sum + many, 0),
      would_protect: protects,
    }))
    .sort((a, b) => b.connections - a.connections || compareTexts(a.to, b.to))
}

function showGroup({
  name,
  severity,
  protection,
  updatedAt,
  details,
}: NonNullable<ExposureFindings['groups']>['exposed'][number]) {
  const isLarge = details !== undefined && jsonBytes(details) > MOST_DETAIL_BYTES
  return {
    name,
    severity,
    protection_percent: protection,
    updated_at: updatedAt,
    ...(details !== undefined && { details: isLarge ? 'too large to show' : details }),
  }
}

const showVulnerable = ({
  name,
  score,
  scoreInFull,
  vulnerabilities,
  worst,
  isOpenToAny,
}: NonNullable<ExposureFindings['vulnerable']>['workloads'][number]) => ({
  name,
  score,
  score_in_full: scoreInFull,
  vulnerabilities,
  worst,
  open_to_any: isOpenToAny,
})

const PROTECTS: Record<Remedy, string> = {
  deny_rule: 'by a deny rule today',
  enforce_destination: 'by enforcing the destination',
  enforce_source: 'by enforcing the source',
  change_rules: 'only by changing the allow rules that let it in, or by an override deny rule',
  change_rules_and_enforce: 'only by changing those rules or an override deny rule, and by enforcing an end too',
  once_online: 'only at a VEN that may not enforce, once it is back',
  not_by_policy: 'by no policy, since neither end has a VEN',
  not_known: 'by what is not known',
}

function summarise({ findings, judged }: Shown): string {
  const { summary, vulnerable, notKnown } = findings
  const percent = summary?.ransomware_protection_coverage_percent
  const parts = new Set(notKnown.map(({ what }) => what))
  const said = [
    summary === null
      ? ''
      : `The PCE counts ${summary.num_protected_workloads} of ${countOf(summary.num_total_workloads, 'workload')} as protected from ransomware${typeof percent === 'number' ? ` (coverage ${percent} %)` : ''}.`,
    vulnerable !== null && isKnown(findings)
      ? `${countOf(vulnerable.total, 'workload')} with vulnerabilities can be reached.`
      : '',
    describeTraffic(judged),
    parts.size > 0 ? `Not known from this PCE: ${[...parts].join(', ')}.` : '',
  ]
  return said.filter(Boolean).join(' ')
}

function describeTraffic(judged: JudgedExposure | null): string {
  if (judged === null)
    return `No service was held against traffic: the PCE rates none as a risk, and none was named. Next: services ${JSON.stringify(HIGH_RISK_PORTS.map((port) => `${port}/tcp`))}.`
  const { services, connections, remedies, read } = judged
  const least = read.truncated ? 'at least ' : ''
  const reached = services.filter((one) => passing(one) > 0).length
  const { stopped, undecided } = connections
  const passes = passing(judged) - undecided
  const protects = REMEDIES.flatMap((remedy) => {
    const many = remedies[remedy] ?? 0
    return many === 0 ? [] : [`${many} ${PROTECTS[remedy]}`]
  })
  return [
    `Of ${countOf(services.length, 'risky service')}, ${reached} ${reached === 1 ? 'was' : 'were'} reached in observed traffic: ${least}${countOf(passes, 'connection')} pass${passes === 1 ? 'es' : ''}, ${stopped} ${stopped === 1 ? 'is' : 'are'} stopped by policy, of ${undecided} it is undecided.`,
    ...(protects.length > 0 ? [`What would stop them: ${protects.join(', ')}.`] : []),
  ].join(' ')
}

function describeSilent({ silent, remedies }: JudgedExposure): string[] {
  const { workloads, connections } = silent
  const others = (remedies.once_online ?? 0) - connections
  const effects = [
    ...(connections > 0 ? [`${countOf(connections, 'connection')} stopped there alone count as undecided`] : []),
    ...(others > 0 ? [`${countOf(others, 'connection')} that pass could be stopped there alone`] : []),
  ]
  if (effects.length === 0) return []
  return [`${tellSilent(workloads)}, so what is enforced there is not certain: ${effects.join(', ')} (once_online).`]
}

function notesOf({ findings, judged, portless }: Shown): string[] {
  const isCut = findings.vulnerable?.isCut === true
  const [total, counted] = [findings.summary?.num_total_workloads, findings.workloads?.total]
  return [
    ...(judged?.read.truncated === true ? ['Not all traffic was read, so what was not seen may be reached too.'] : []),
    ...(total !== undefined && counted !== undefined && total !== counted
      ? [
          `workloads counts the ${counted} with a VEN; num_total_workloads of ransomware, ${total}, is a count of the PCE's own.`,
        ]
      : []),
    ...(portless.length > 0
      ? [`Not held against traffic, since not all they cover are ports: ${portless.map(quote).join(', ')}.`]
      : []),
    ...(isCut ? ['The PCE did not send all vulnerable workloads: their count is a lower bound.'] : []),
    ...(judged === null
      ? []
      : [
          'Traffic that nobody sent in the window is not in the counts: allow_rules counts the rules that would let it in, and open_rules names them.',
          ...(judged.isPolicyRead ? [] : ['Active policy could not be read, so all traffic is undecided.']),
          ...(judged.undecided === '' ? [] : [`Traffic is ${judged.undecided}.`]),
          ...describeSilent(judged),
          ...judged.modes,
          ...[explainRecorded(judged.recorded)].filter(Boolean),
          ...explainAssumed(judged.assumes),
        ]),
  ]
}

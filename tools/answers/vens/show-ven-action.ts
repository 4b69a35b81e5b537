import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { Count, Counts, Text, Total } from '../../../schemas/common.js'
import { DryRunOutput } from '../../../schemas/dry-run.js'
import { ToolError } from '../../../schemas/errors.js'
import { explainRecorded, RecordedOut, showRecorded } from '../../../schemas/recorded-otherwise.js'
import type { ShownObject } from '../../../schemas/approvals.js'
import type { Preview, ToolContext } from '../../../domain/call.js'
import type { EnforcementTraffic } from '../../../domain/enforcement/judge-enforcement.js'
import { withDetails } from '../../../domain/inventory/pce-errors.js'
import { capital } from '../../../domain/text/capital.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { describeBothWays } from '../../../domain/traffic/read-both-ways.js'
import { coverageNote, Reading } from '../../../domain/traffic/read-flows.js'
import {
  planVenRequests,
  stateOf,
  toActOn,
  whyNot,
  type VenAction,
  type VenOutcome,
  type VenOutcomeWord,
  type VensActedOn,
} from '../../../domain/ven-actions/act-on-vens.js'
import type { ChosenVen } from '../../../domain/ven-actions/choose-vens.js'
import { changesEnforcement, enforces } from '../../../domain/ven-actions/judge-action.js'
import { answerBudget, fitAnswer, rowsWithin } from '../byte-budget.js'
import { showTraffic as showTrafficForApproval } from '../approval/show-mode-changes.js'
import { isCut } from '../enforcement/describe-enforcement.js'
import {
  ConnectionsOut,
  showConnections,
  showTrafficChanges,
  TRAFFIC_COLUMNS,
  TrafficChangesOut,
} from '../enforcement/show-enforcement.js'

const COLUMNS = ['name', 'href', 'mode', 'before', 'now', 'outcome', 'note']
/** Maximum number of traffic changes in a dry run, and in what a person confirms. */
const MOST_TRAFFIC = 25
/** Maximum number of requests that a dry run shows if each is for one VEN. */
const MOST_REQUESTS = 20
/** Maximum size, in bytes, of one list in what a person confirms. */
const LIST_BYTES = 2500

/** The order of outcomes in an answer: what went wrong comes first. */
const ORDER: readonly VenOutcomeWord[] = [
  'failed',
  'differs',
  'unverified',
  'not_attempted',
  'left',
  'accepted',
  'done',
  'already',
]

/** The verb of each action, as in "would …", and its past participle. */
const VERBS = {
  suspend: ['be marked as suspended', 'Marked as suspended'],
  resume: ['be marked as active', 'Marked as active'],
  unpair: ['be unpaired', 'Unpaired'],
  upgrade: ['be upgraded', 'Told to upgrade'],
  report: ['be asked for a support report', 'Asked for a support report'],
} as const satisfies Record<VenAction['kind'], readonly [string, string]>

/** What the person who confirms an action should know about it, and what is only assumed (P104, P124, P125, P126). */
const NOTES: Readonly<Record<VenAction['kind'], readonly string[]>> = {
  suspend: [
    'This is the mark at the PCE. The VEN itself is suspended on its host (illumio-ven-ctl suspend); until then it goes on enforcing, and what is said of traffic holds from then on.',
    'A suspended VEN enforces nothing, and all traffic passes there; with the mark, rules of others keep naming the host, which would go out of them an hour after it falls silent.',
  ],
  resume: [
    'This is the mark at the PCE. A VEN that was suspended on its host runs again only with illumio-ven-ctl unsuspend there; what is said of traffic holds from then on.',
  ],
  unpair: [
    'Unpairing uninstalls the VEN and takes the workload out of policy: rules of others no longer name it, and it cannot be undone but by pairing anew.',
    "What the host's own firewall does afterwards (firewall_restore) is not judged: saved is its state before the pairing, disable leaves all ports open; of default, releases say either that policy is removed, or that only remote management stays open until the next start.",
    'A VEN that is offline learns of it when it is back; that its host is out of policy does not wait.',
  ],
  upgrade: [
    'VENs fetch the release when they reach the PCE; until the time-out of the PCE they count as being upgraded. Whether policy is enforced without a gap meanwhile, the PCE does not say.',
  ],
  report: ['The VEN makes the report when it reaches the PCE; support reports are downloaded in its console.'],
}

export const VenActionOutput = Type.Object({
  message: Text('What happened, or would'),
  vens_total: Total,
  enforcing: Type.Optional(Count('Whose policy stops, or begins, being enforced: in selective or full mode')),
  enforcing_not_known: Type.Optional(Count('Whose mode is not known')),
  outcomes: Type.Optional(Counts('VENs by what became of them')),
  ven_columns: Type.Array(Type.String(), { description: 'Of vens; now is as read back' }),
  vens: Type.Array(Type.Array(Type.Unknown()), { description: 'What went wrong first' }),
  connections: Type.Optional(ConnectionsOut),
  ...TrafficChangesOut,
  ...RecordedOut,
  ...AssumesOut,
  window: Type.Optional(Reading.window),
  flows_truncated: Type.Optional(Reading.flows_truncated),
  analysed: Type.Optional(Reading.analysed),
  notes: Type.Optional(Type.Array(Type.String(), { description: 'What this rests on, and what it leaves open' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})
type Output = Static<typeof VenActionOutput>

/**
 * A planned action with its effect on observed traffic. The effect is a sentence if it is not known, and null if the
 * action has none that could be judged.
 */
export interface PlannedAction {
  action: VenAction
  vens: readonly ChosenVen[]
  period: string
  traffic: EnforcementTraffic | string | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'limits'>

/** Builds the answer of a dry run: the requests that a call would send, and what they do to enforcement. */
export function showPlanned({ pce, limits }: Context, planned: PlannedAction, bound: string): Output {
  const { action, vens, traffic } = planned
  const requests = planVenRequests(action, vens, pce.orgId)
  const rows = vens.map((ven): Row => ({ ven, ...(whyNot(action, ven) ?? { outcome: 'would_change' }) }))
  const cut = requests.length - MOST_REQUESTS
  const isWhole = answerBudget(limits) === Infinity
  return fitAnswer(
    {
      message: [describePlan(planned), describeTraffic(planned), bound].filter(Boolean).join(' '),
      dry_run: true,
      vens_total: vens.length,
      ...countEnforcing(planned),
      ...(traffic !== null && typeof traffic !== 'string' && showTraffic(traffic, vens, MOST_TRAFFIC)),
      ven_columns: COLUMNS,
      vens: rowsOf(action, rows),
      requests: isWhole ? requests : requests.slice(0, MOST_REQUESTS),
      notes: noteAction(planned),
      warnings: [
        ...warnOf(planned),
        ...(cut > 0 && !isWhole ? [`${cut} more requests like these are not shown.`] : []),
      ],
      ...(traffic !== null && typeof traffic !== 'string' && describeBothWays(traffic.reads)),
    },
    limits,
  )
}

/** Describes a planned action for the person who confirms it. */
export function previewAction(planned: PlannedAction, isDryRun: boolean): Omit<Preview, 'boundTo'> {
  const { action, vens, traffic } = planned
  const acted = toActOn(action, vens)
  const isRead = traffic !== null && typeof traffic !== 'string'
  const names = rowsWithin(
    acted.map(({ name, href, mode, status }) => [name, href, mode ?? 'unknown', status ?? 'unknown']),
    LIST_BYTES,
  )
  const shown = isRead ? showTraffic(traffic, vens, MOST_TRAFFIC) : {}
  const notes = [
    ...noteAction(planned),
    ...(isRead ? [coverageNote(traffic.reads.inbound, traffic.reads.outbound)].filter((text) => text !== '') : []),
  ]
  const dry = isDryRun ? 'This is a dry run: it only shows what a real call would send.' : ''
  const described = { ...action, kind: undefined }
  const objects = [
    ...(isRead ? showTrafficForApproval({ traffic }) : []),
    ...acted.map((ven) => venObject(action, ven)),
  ]
  return {
    summary: [describePlan(planned), describeTraffic(planned), dry].filter(Boolean).join(' '),
    details: {
      ...described,
      ...countEnforcing(planned),
      ...shown,
      ven_columns: ['name', 'href', 'mode', 'status'],
      vens: names,
      ...(names.length < acted.length && { vens_left_out: acted.length - names.length }),
      notes,
      warnings: warnOf(planned),
    },
    page: {
      ...(changesEnforcement(action) &&
        acted.length > 0 && { effect: action.kind === 'resume' ? ('narrowing' as const) : ('widening' as const) }),
      warnings: warnOf(planned),
      objects,
      objects_total: objects.length,
      workloads_affected: acted.length,
      facts: { ...described, notes, ...(isRead && showAssumed(traffic.assumes)) },
    },
  }
}

/** Builds the answer with the outcome for each VEN. Throws if all were refused, or if writing stopped half-way. */
export function showActedOn(
  { limits }: Pick<Context, 'limits'>,
  { action, vens }: Pick<PlannedAction, 'action' | 'vens'>,
  { outcomes, stopped, refused }: VensActedOn,
): Output {
  const counts = Object.fromEntries(ORDER.map((word) => [word, 0])) as Record<VenOutcomeWord, number>
  for (const { outcome } of outcomes) counts[outcome] += 1
  const said = Object.fromEntries(Object.entries(counts).filter(([, many]) => many > 0))
  const written = counts.done + counts.accepted
  const missing = counts.failed + counts.unverified + counts.differs + counts.not_attempted
  const unread = outcomes.filter(({ outcome, now }) => outcome === 'accepted' && now === undefined).length
  const warnings =
    unread > 0 && action.kind !== 'report'
      ? [`${countOf(unread, 'VEN')} could not be read back: accepted is what the PCE answered.`]
      : []
  const show = (rows: readonly VenOutcome[]) => ({
    message: describeOutcome(action, vens, counts),
    outcomes: said,
    vens_total: rows.length,
    ven_columns: COLUMNS,
    vens: rowsOf(action, rows),
    ...(written > 0 && { notes: [...NOTES[action.kind]] }),
    ...(warnings.length > 0 && { warnings }),
  })
  if (stopped === null) {
    const { message, ...answer } = fitAnswer(show(outcomes), limits)
    if (counts.failed === 0 || counts.failed < missing || written > 0) return { message, ...answer }
    if (refused !== null) throw withDetails(refused, answer, REFUSED)
    throw new ToolError('pce_error', message, answer, { hint: REFUSED })
  }
  if (missing === 0) throw withDetails(stopped, { read_back: { state: 'as_sent' }, outcomes: said }, AS_SENT)
  const reached = outcomes.flatMap(({ outcome, ven: { href } }) =>
    outcome === 'done' || outcome === 'accepted' ? [{ href }] : [],
  )
  const { message, ...details } = show(outcomes.filter(({ outcome }) => outcome !== 'done' && outcome !== 'accepted'))
  const partial = reached.length > 0 ? { partial: true, written: reached } : {}
  throw withDetails(stopped, fitAnswer({ summary: message, ...partial, ...details }, limits), GO_ON)
}

const REFUSED = 'The PCE refused every VEN, each for the reason in its note.'
const AS_SENT = 'Read back, all of it is done.'
const GO_ON = '`written` names those it is done for, `vens` the rest. Repeating the call goes on with those.'

type Row = Omit<VenOutcome, 'outcome'> & { outcome: VenOutcomeWord | 'would_change' }

const rowsOf = (action: VenAction, rows: readonly Row[]): unknown[][] =>
  [...rows]
    .sort((a, b) => rankOf(a) - rankOf(b))
    .map(({ ven, now, outcome, note }) => [
      ven.name,
      ven.href,
      ven.mode ?? 'unknown',
      stateOf(action, ven) ?? 'unknown',
      now ?? null,
      outcome,
      note ?? null,
    ])
const rankOf = ({ outcome }: Row): number => (ORDER as readonly string[]).indexOf(outcome)

const nameVens = (vens: readonly ChosenVen[]): string =>
  vens.length === 1 ? `the VEN of ${quote((vens[0] as ChosenVen).name)}` : countOf(vens.length, 'VEN')

const toRelease = (action: VenAction): string => (action.kind === 'upgrade' ? ` to ${action.release}` : '')

function describePlan({ action, vens }: PlannedAction): string {
  const acted = toActOn(action, vens)
  const [verb] = VERBS[action.kind]
  const rest = vens.length - acted.length
  if (acted.length === 0) return `Nothing to do: ${nameVens(vens)} would not change; the notes of vens say why.`
  const others = rest > 0 ? ` ${rest} would stay as ${rest === 1 ? 'it is' : 'they are'}.` : ''
  return `${capital(nameVens(acted))} would ${verb}${toRelease(action)}.${countWords({ action, vens })}${others}`
}

function countWords(planned: Pick<PlannedAction, 'action' | 'vens'>): string {
  const { enforcing, enforcing_not_known: unknown } = countEnforcing(planned)
  if (enforcing === undefined) return ''
  const does = planned.action.kind === 'resume' ? 'begin' : 'stop'
  return ` ${enforcing === 0 ? 'None of them would' : `${enforcing} would`} ${does} enforcing policy${unknown ? `; of ${unknown} it is not known` : ''}.`
}

/** Counts the workloads whose enforcement begins or ends. */
function countEnforcing({
  action,
  vens,
}: Pick<PlannedAction, 'action' | 'vens'>): Pick<Output, 'enforcing' | 'enforcing_not_known'> {
  if (!changesEnforcement(action)) return {}
  const known = toActOn(action, vens)
    // A VEN that is suspended already enforces nothing, so its workload loses no enforcement.
    .filter(({ status }) => action.kind === 'resume' || status !== 'suspended')
    .map(enforces)
  const unknown = known.filter((one) => one === null).length
  return {
    enforcing: known.filter((one) => one === true).length,
    ...(unknown > 0 && { enforcing_not_known: unknown }),
  }
}

function describeTraffic({ period, traffic }: PlannedAction): string {
  if (traffic === null || typeof traffic === 'string') return traffic ?? ''
  const { inbound, outbound } = traffic.reads
  if (inbound.rows + outbound.rows === 0) return `No traffic was seen in ${period} to judge it by.`
  const { cut, possibly_cut: maybeCut, opened, possibly_opened: maybeOpened } = traffic.connections
  const least = isCut(traffic) ? 'at least ' : ''
  const say = (sure: number, maybe: number, what: string, none: string) =>
    sure + maybe === 0 ? none : `${least}${countOf(sure, 'connection')} ${what} and ${maybe} possibly`
  const opens = say(opened, maybeOpened, 'blocked now would pass', 'nothing blocked now would pass')
  const cuts = say(cut, maybeCut, 'would be blocked', 'nothing would be blocked that passes now')
  return `Of the traffic seen in ${period}, ${opens}; ${cuts}.`
}

function showTraffic(traffic: EnforcementTraffic, vens: readonly ChosenVen[], most: number) {
  const named = vens.map(({ workload, name }) => ({ href: workload, name }))
  return {
    connections: showConnections(traffic),
    traffic_changes_total: traffic.changes.length,
    traffic_change_columns: [...TRAFFIC_COLUMNS],
    traffic_changes: showTrafficChanges(traffic.changes.slice(0, most), named),
    ...showRecorded(traffic.recorded),
    ...showAssumed(traffic.assumes),
  }
}

function noteAction({ action, period, traffic }: PlannedAction): string[] {
  const known = traffic !== null && typeof traffic !== 'string' ? traffic : null
  if (known === null) return [...NOTES[action.kind]]
  const { connections, undecided, undecidedStays, reads, recorded } = known
  return [
    ...NOTES[action.kind],
    `Judged by the policy in force and the traffic of ${period}: what was not seen then is not judged.`,
    connections.possibly_cut + connections.possibly_opened > 0 ? `What is only possible is ${undecided}.` : '',
    connections.stays_undecided > 0 ? `stays_undecided: because of ${undecidedStays}.` : '',
    ...reads.modes,
    explainRecorded(recorded),
  ].filter((text) => text !== '')
}

function warnOf({ action, vens, traffic }: PlannedAction): string[] {
  const acted = toActOn(action, vens)
  const count = (test: (ven: ChosenVen) => boolean) => acted.filter(test).length
  const offline = count(({ online, status }) => online === false && status !== 'suspended')
  const untold = action.kind === 'resume' ? count(({ isUntold }) => isUntold) : 0
  const suspended = action.kind === 'unpair' ? count(({ status }) => status === 'suspended') : 0
  return [
    typeof traffic === 'string' && acted.length > 0 ? traffic : '',
    traffic !== null && typeof traffic !== 'string' && isCut(traffic)
      ? 'Not all of the traffic was read: more may change than is said here.'
      : '',
    offline > 0 ? `${countOf(offline, 'VEN')} ${offline === 1 ? 'is' : 'are'} offline and hear of it when back.` : '',
    suspended > 0
      ? `${countOf(suspended, 'VEN')} suspended: guides disagree whether these can be unpaired, so the PCE may refuse.`
      : '',
    untold > 0
      ? `What ${countOf(untold, 'workload')} would drop is not known (mode or selectively enforced services), and not judged.`
      : '',
  ].filter((text) => text !== '')
}

function describeOutcome(
  action: VenAction,
  vens: readonly ChosenVen[],
  counts: Record<VenOutcomeWord, number>,
): string {
  const written = counts.done + counts.accepted
  const [, past] = VERBS[action.kind]
  const head =
    written === 0
      ? counts.already + counts.left === vens.length
        ? 'Nothing was written.'
        : 'It is not known to be done for any.'
      : `${past}${toRelease(action)}: ${written} of ${countOf(vens.length, 'VEN')}.`
  const parts: [number, string][] = [
    [action.kind === 'report' ? 0 : counts.accepted, 'accepted, and not read back as done'],
    [counts.failed, 'refused'],
    [counts.differs, 'in another state'],
    [counts.unverified, 'not known'],
    [counts.not_attempted, 'not attempted'],
    [counts.left, 'left as they are'],
    [counts.already, 'so already'],
  ]
  const rest = parts.flatMap(([many, words]) => (many > 0 ? [`${many} ${words}`] : []))
  return [head, rest.length > 0 ? `${capital(rest.join(', '))}.` : ''].filter(Boolean).join(' ')
}

function venObject(action: VenAction, ven: ChosenVen): ShownObject {
  const { name, href, mode } = ven
  const after = {
    suspend: 'suspended',
    resume: 'active',
    unpair: undefined,
    upgrade: action.kind === 'upgrade' ? action.release : undefined,
    report: undefined,
  }[action.kind]
  const path = action.kind === 'upgrade' ? 'version' : 'status'
  const changes = action.kind !== 'report'
  return {
    kind: 'VEN',
    name,
    href,
    change: action.kind === 'unpair' ? 'delete' : action.kind === 'report' ? 'unknown' : 'update',
    ...(changesEnforcement(action) && {
      effect:
        enforces(ven) === false ? 'neutral' : action.kind === 'resume' ? ('narrowing' as const) : ('widening' as const),
    }),
    fields: [
      ...(changes ? [{ path, before: stateOf(action, ven) ?? 'unknown', ...(after !== undefined && { after }) }] : []),
      {
        path: 'enforcement_mode',
        before: mode ?? 'unknown',
        ...(action.kind !== 'unpair' && { after: mode ?? 'unknown' }),
      },
    ],
  }
}

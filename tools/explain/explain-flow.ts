import { Type, type Static } from '@sinclair/typebox'
import { findNearMisses } from '../../domain/explain/find-near-misses.js'
import type { Member, Members } from '../../domain/explain/find-members.js'
import { listAssumedFacts } from '../../domain/explain/list-assumed-facts.js'
import { holdAgainstPce, type Difference, type PceCheck } from '../../domain/explain/hold-against-pce.js'
import { speaks } from '../../domain/explain/judge-members.js'
import { observeFlow, type Observed } from '../../domain/explain/observe-flow.js'
import { judgeFlow, nameReferences, type JudgedFlow } from '../../domain/explain/prepare-flow.js'
import type { AskedEnd } from '../../domain/explain/resolve-end.js'
import { passesByDefault } from '../../domain/policy/mode-effects.js'
import { UNDECIDED } from '../../domain/policy/three-valued.js'
import { portName } from '../../domain/inventory/protocols.js'
import { loadAuthorNames } from '../../domain/inventory/reference-names.js'
import { tellMany } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { coverageNote } from '../../domain/traffic/read-flows.js'
import { JUDGED_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { EXTERNAL_NETWORK } from '../../schemas/pce/words.js'
import { Many, StringEnum } from '../../schemas/common.js'
import { SectionsInput, SectionsOutput } from '../../schemas/sections.js'
import { FlowInput } from '../../schemas/flow-input.js'
import { countRowsThatFit } from '../answers/byte-budget.js'
import { chooseSections, showLeftOut } from '../answers/choose-sections.js'
import {
  FoundRuleOut,
  NearMissOut,
  authorsOf,
  showFoundRule,
  showNearMiss,
} from '../answers/explain/show-found-rule.js'
import { listOffline, tellWhileOffline } from '../answers/explain/tell-offline.js'
import { doubtStrangers, reasonsOf, tellEnd, tellIpTablesAt, tellVerdicts } from '../answers/explain/tell-verdict.js'
import { TrafficCounts, TrafficTimes } from '../../schemas/traffic-counts.js'
import { outsideWindow } from '../../domain/traffic/outside-window.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { AssumesOut, showAssumed } from '../../schemas/assumes.js'
import { defineTool } from '../define.js'

const NAME = 'explain-flow'
const DEFAULT_DAYS = 7
/**
 * Maximum number of pairs of source and destination whose verdicts are checked with the PCE. Each is an example of a
 * different outcome.
 */
const MOST_CHECKED = 3
/** Maximum number of near misses of each kind. A near miss is a rule that almost applies. */
const MOST_MISSES = 3
/** Maximum number of rules that are shown with their authors. */
const MOST_RULES = 50

/** The optional parts of the answer. A part that is not chosen is not requested from the PCE either. */
const PARTS = ['pairs', 'rules', 'near_misses', 'observed', 'pce_check'] as const

const VERDICTS = [...JUDGED_DECISIONS, 'uncertain', 'split'] as const
const Verdict = (which: string) =>
  Type.Object(
    {
      verdict: StringEnum(VERDICTS, { description: 'split: pairs differ' }),
      why: Type.String({ description: 'In a sentence' }),
    },
    { description: which },
  )
const End = (which: string) =>
  Type.Object(
    {
      asked: Type.String({ description: 'Who' }),
      kind: Type.String({ description: 'workload, address, labels or ip_list' }),
      members: Many('Workloads, or addresses beside them'),
      modes: Type.Record(Type.String(), Many('Members'), { description: 'By enforcement mode; none: no VEN' }),
      labels: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Of the one workload' })),
      does: Type.Optional(Type.String({ description: 'What it does about the flow' })),
    },
    { description: which },
  )

const output = Type.Object({
  flow: Type.String({ description: 'What was asked' }),
  active: Verdict('By the policy in force'),
  draft: Verdict('Once everything pending is provisioned'),
  source: End('Outbound'),
  destination: End('Inbound'),
  pairs: Type.Optional(
    Type.Object(
      {
        total: Many('Pairs of ends'),
        judged: Many('Of these'),
        outcomes: Type.Array(Type.Unknown(), { description: '{active, draft, pairs, examples}' }),
      },
      { description: 'Where there is more than one' },
    ),
  ),
  rules: Type.Optional(
    Type.Array(FoundRuleOut, {
      description:
        'All that are about the flow, in the order in which they decide: override deny, allow, deny; before them what VENs keep open, after them the default of the mode',
    }),
  ),
  rules_total: Type.Integer({ description: 'Shown or not' }),
  near_misses: Type.Optional(Type.Array(NearMissOut, { description: 'Allow rules of the draft that just miss' })),
  observed: Type.Optional(
    Type.Object(
      {
        days: Type.Integer({ description: 'Days back' }),
        window: TrafficCounts.window,
        connections: Type.Record(Type.String(), Type.Integer(), { description: 'By decision of the PCE' }),
        first_detected: Type.Optional(Type.String()),
        last_detected: Type.Optional(Type.String()),
        outside_window: TrafficTimes.outside_window,
        programs: Type.Optional(Type.Array(Type.String(), { description: 'At the end that reported' })),
        note: Type.Optional(Type.String()),
      },
      { description: 'Traffic that was seen' },
    ),
  ),
  pce_check: Type.Optional(
    Type.Object(
      {
        agrees: Type.Union([Type.Boolean(), Type.Null()], { description: 'null: not asked' }),
        pairs: Type.Integer({ description: 'Held against it' }),
        differences: Type.Optional(Type.Array(Type.Unknown(), { description: '{version, href, rule_type, says}' })),
        note: Type.Optional(Type.String()),
      },
      { description: "The PCE's own policy check, of rules" },
    ),
  ),
  not_judged: Type.Array(Type.String(), { description: 'What the answer does not take into account' }),
  ...SectionsOutput,
  ...AssumesOut,
})
type Output = Static<typeof output>

export default defineTool({
  name: NAME,
  summary: 'Why a flow is allowed or blocked, by active and draft policy, with the rules about it.',
  effect: 'read',
  reads: 'judged',
  toolset: 'explain',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 56,
    and: 'one for each workload that the rules name (50 at most), two for each rule set where the PCE keeps deny rules apart from it, for long lists one more each, and up to five for addresses that the traffic names from off the corporate network',
  },
  input: Type.Object(
    {
      ...FlowInput,
      ...windowInput(DEFAULT_DAYS),
      lookback_days: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 365,
          default: DEFAULT_DAYS,
          description: 'Of traffic; 0: none',
          listed: `Default ${DEFAULT_DAYS}; 0: none`,
        }),
      ),
      ...SectionsInput(PARTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { source: ['app=ordering'], destination: ['app=payments'], port: 8443, proto: 'tcp', lookback_days: 1 },
  async handler(args, ctx): Promise<Output> {
    const { lookback_days: back, start_date: start, end_date: end, sections, ...asked } = args
    const chosen = chooseSections(sections, PARTS)
    const observes = chosen.has('observed') && (back !== 0 || start !== undefined || end !== undefined)
    const { window, days } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const flow = await judgeFlow(ctx, asked)
    const { verdict, judges, service, versions, ends } = flow
    const shown = verdict.rules.slice(0, MOST_RULES)
    const examples = verdict.outcomes.flatMap((outcome) => outcome.examples.slice(0, 1))
    const check = chosen.has('pce_check') ? await holdAgainstPce(ctx, examples.slice(0, MOST_CHECKED), service) : null
    const missing = examples.find(({ draft }) => draft.decision !== 'allowed')
    const misses =
      missing === undefined || !chosen.has('near_misses')
        ? []
        : await workInTurns(
            findNearMisses(judges.draft, missing.source, missing.destination, service, MOST_MISSES),
            ctx.signal,
          )
    const names = await nameReferences(
      ctx,
      versions,
      [...shown, ...misses].map(({ held }) => held),
    )
    const authors = await loadAuthorNames(ctx.pce, chosen.has('rules') ? authorsOf(shown) : [], ctx.signal)
    const observed = observes ? await observeFlow(ctx, NAME, flow.labels, ends, service, window) : null
    const rules = shown.map((rule) => showFoundRule(rule, names, authors, check, verdict.judged))
    const byRules = tellWhileOffline(tellVerdicts(verdict, versions.draft !== versions.active, names), flow)
    const told = doubtStrangers(byRules, observed?.strangers ?? [])
    const answer: Output = {
      flow: `${ends.source.name} to ${ends.destination.name}, ${portName(service)}`,
      ...told,
      source: showEnd('source', ends.source, flow.sources, flow),
      destination: showEnd('destination', ends.destination, flow.destinations, flow),
      ...(verdict.pairs > 1 && chosen.has('pairs') && { pairs: showPairs(flow) }),
      ...(chosen.has('rules') && { rules: [] }),
      rules_total: verdict.rules.length,
      ...(misses.length > 0 && { near_misses: misses.map((miss) => showNearMiss(miss, names)) }),
      ...(observed !== null && { observed: showObserved(observed, days, told.active.verdict, passesByMode(verdict)) }),
      ...(check !== null && { pce_check: showCheck(check) }),
      not_judged: [...listOffline(flow), ...listNotJudged(flow), ...tellUnobserved(flow, observed)],
      ...showLeftOut(chosen),
      ...showAssumed(listAssumedFacts(flow)),
    }
    if (!chosen.has('rules')) return answer
    return { ...answer, rules: rules.slice(0, countRowsThatFit(rules, answer, ctx.limits)) }
  },
})

/**
 * Returns true if, for at least one pair, an end lets the flow pass because of its selective mode, and not certainly
 * because of a rule.
 */
const passesByMode = ({ outcomes }: JudgedFlow['verdict']): boolean =>
  outcomes.some(({ active: { possible, source, destination } }) =>
    [source, destination].some(
      ({ mode, byRules }) => possible.includes('allowed') && passesByDefault(mode) && byRules !== 'yes',
    ),
  )

function showEnd(
  side: 'source' | 'destination',
  { name, kind }: AskedEnd,
  { members }: Members,
  { verdict }: JudgedFlow,
): Output['source'] {
  const modes: Record<string, number> = {}
  for (const { mode, size } of members) modes[mode] = (modes[mode] ?? 0) + size
  const [only, ...others] = members
  const pair = verdict.pairs === 1 ? verdict.outcomes[0]?.examples[0] : undefined
  return {
    asked: name,
    kind,
    members: tellMany(members.reduce((sum, { size }) => sum + size, 0)),
    modes: Object.fromEntries(Object.entries(modes).map(([mode, count]) => [mode, tellMany(count)])),
    ...(only?.workload != null && only.isUnsure !== true && others.length === 0 && { labels: { ...only.labels } }),
    ...(pair !== undefined && { does: tellEnd(side, pair) }),
  }
}

function showPairs({ verdict }: JudgedFlow): NonNullable<Output['pairs']> {
  return {
    total: tellMany(verdict.pairs),
    judged: tellMany(verdict.judged),
    outcomes: verdict.outcomes.map(({ active, draft, pairs, examples }) => ({
      active: active.decision,
      draft: draft.decision,
      pairs: tellMany(pairs),
      examples: examples.map(({ source, destination }) => ({ source: source.name, destination: destination.name })),
    })),
  }
}

/**
 * Returns the output field about the observed traffic of the flow. `passesByMode` is the result of the function
 * `passesByMode`.
 */
function showObserved(
  { read, decisions, programs }: Observed,
  days: number,
  verdict: string,
  passesByMode: boolean,
): Output['observed'] {
  const { first_detected: first, last_detected: last } = read.totals
  const outside = outsideWindow(read.window, read.totals)
  const others = Object.keys(decisions).filter((word) => word !== 'unknown' && word !== verdict)
  const isByMode = others.includes('potentially_blocked') && passesByMode
  const unexplained = others.filter((word) => !(isByMode && word === 'potentially_blocked'))
  const isOther = unexplained.length > 0 && verdict !== 'split' && verdict !== 'uncertain'
  const note = [
    coverageNote(read),
    isByMode
      ? 'In selective mode, potentially_blocked means that no rule allows it: it passes for now, and full mode would block it.'
      : '',
    isOther
      ? `Some was seen as ${unexplained.join(' and ')}, which is not what is judged now: rules, labels or modes may have changed since.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
  return {
    days,
    window: read.window,
    connections: decisions,
    ...(first !== null && { first_detected: first }),
    ...(last !== null && { last_detected: last }),
    ...(outside !== null && { outside_window: outside }),
    ...(programs.length > 0 && { programs }),
    ...(note !== '' && { note }),
  }
}

const DISAGREEMENT: Readonly<Record<Difference['says'], string>> = {
  pce_applies: 'The PCE: it applies to this flow. This server: it does not.',
  pce_does_not: 'The PCE: it does not apply to this flow. This server: it does.',
}

function showCheck({ checked, differences, unavailable }: PceCheck): Output['pce_check'] {
  if (unavailable !== null) return { agrees: null, pairs: checked, note: `It could not be asked: ${unavailable}` }
  if (differences.length === 0) return { agrees: true, pairs: checked }
  const note = 'The PCE and this server disagree about these rules; trust neither verdict before you know why.'
  const told = differences.map(({ says, ...rule }) => ({ ...rule, says: DISAGREEMENT[says] }))
  return { agrees: false, pairs: checked, differences: told, note }
}

/**
 * Returns sentences about workloads that are, or may be, off the corporate network, because it is not known whether
 * rules for this network apply to them.
 */
function listOffNetwork(members: readonly Member[]): string[] {
  const tell = (isSure: boolean) => {
    const [first, ...others] = members.filter(({ offNetwork = 'no' }) => offNetwork === (isSure ? 'yes' : 'perhaps'))
    if (first === undefined) return []
    const who = others.length === 0 ? quote(first.name) : `${quote(first.name)} and ${others.length} more`
    const are = isSure ? (others.length === 0 ? 'is' : 'are') : 'may be'
    return [
      `${who} ${are} off the corporate network (on ${EXTERNAL_NETWORK}); whether rules for it reach there is not known.`,
    ]
  }
  return [...tell(true), ...tell(false)]
}

/**
 * Returns a sentence for an answer that did not read traffic: only traffic would show a workload at an address that is
 * in no list of workloads.
 */
const tellUnobserved = ({ ends }: JudgedFlow, observed: Observed | null): string[] =>
  observed === null && [ends.source, ends.destination].some((end) => end.kind === 'address' && end.bearers.length === 0)
    ? ['Traffic was not looked at, which alone would show a workload at an address that no list has.']
    : []

function listNotJudged(flow: JudgedFlow): string[] {
  const { sources, destinations, versions, verdict, service } = flow
  const undecided = verdict.rules.filter((rule) => speaks(rule) !== 'yes')
  const reasons = reasonsOf(...undecided.flatMap(({ atSource, atDestination }) => [atSource, atDestination]))
  const unread = [...versions.active.unread.keys(), ...versions.draft.unread.keys()]
  const open = verdict.outcomes.flatMap(({ active, draft }) => [active.undecided, draft.undecided])
  const rest = reasonsOf(...open)
  return [
    ...sources.notes,
    ...destinations.notes,
    ...listOffNetwork([...sources.members, ...destinations.members]),
    ...(reasons === undefined ? [] : [`Rules that may be about the flow: ${reasons}.`]),
    ...(rest === undefined || rest === reasons || rest === UNDECIDED.iptables ? [] : [`Undecided: ${rest}.`]),
    ...(service.runs === undefined && reasons?.includes('processes') === true
      ? ['process_name or windows_service_name, of the program at the destination, would decide about its rules.']
      : []),
    ...(unread.length > 0 ? [`Deny rules of ${new Set(unread).size} rule sets could not be read.`] : []),
    ...tellIpTablesAt(flow),
  ]
}

import { listAssumedFacts } from '../../domain/explain/list-assumed-facts.js'
import { Type, type Static } from '@sinclair/typebox'
import type { ToolContext } from '../../domain/call.js'
import { chooseRule, withListsOf, type SuggestedRule } from '../../domain/explain/choose-rule.js'
import { findNearMisses } from '../../domain/explain/find-near-misses.js'
import { findNamed, findOpened, type Opened } from '../../domain/explain/find-opened.js'
import { createPairJudge, type PairVerdict } from '../../domain/explain/judge-pair.js'
import { hasNoVen, judgeByRules, modesThatLetPass } from '../../domain/explain/judge-by-rules.js'
import { judgeFlow, nameReferences, type JudgedFlow } from '../../domain/explain/prepare-flow.js'
import { portName } from '../../domain/inventory/protocols.js'
import type { Version } from '../../domain/inventory/find-object.js'
import type { ReferenceNames } from '../../domain/inventory/reference-names.js'
import { countOf, tellMany } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { Many, StringEnum } from '../../schemas/common.js'
import { FlowInput } from '../../schemas/flow-input.js'
import { countRowsThatFit } from '../answers/byte-budget.js'
import { NearMissOut, showNearMiss } from '../answers/explain/show-found-rule.js'
import { narrowToWorkloads, writeSuggestion } from '../answers/explain/show-suggestion.js'
import { tellWhileOffline, warnOfOffline } from '../answers/explain/tell-offline.js'
import { KIND_WORDS, describeRule, reasonsOf, tellIpTablesAt, tellVerdicts } from '../answers/explain/tell-verdict.js'
import { AssumesOut, showAssumed } from '../../schemas/assumes.js'
import { defineTool } from '../define.js'

const NAME = 'suggest-rule'
/**
 * Maximum number of examples of pairs of source and destination that a suggested rule would allow although the caller
 * did not ask about them.
 */
const MOST_EXAMPLES = 25
const MOST_MISSES = 3

const STATUSES = ['suggested', 'already_allowed', 'allowed_when_provisioned', 'no_rule_helps'] as const

const Told = (which: string) =>
  Type.Object(
    { verdict: Type.String({ description: 'As in explain-flow' }), why: Type.String({ description: 'In a sentence' }) },
    { description: which },
  )

const output = Type.Object({
  status: StringEnum(STATUSES, { description: 'What came of it' }),
  message: Type.String({ description: 'In a sentence' }),
  flow: Type.String({ description: 'What was asked' }),
  active: Told('By the policy in force'),
  draft: Told('Once everything pending is provisioned'),
  suggestion: Type.Optional(
    Type.Object(
      {
        rule: Type.String({ description: 'In one line' }),
        ruleset: Type.String({ description: 'Where it belongs; existing or new' }),
        create_iplist: Type.Optional(Type.Object({}, { description: 'First: arguments of create-iplist' })),
        create_service: Type.Optional(Type.Object({}, { description: 'First: arguments of create-service' })),
        create_rule: Type.Optional(Type.Object({}, { description: 'Arguments of create-rule' })),
        create_ruleset: Type.Optional(Type.Object({}, { description: 'Arguments of create-ruleset' })),
      },
      { description: 'The narrowest rule by labels; nothing was written' },
    ),
  ),
  by_workload: Type.Optional(
    Type.Object(
      {
        rule: Type.String({ description: 'In one line' }),
        create_iplist: Type.Optional(Type.Unknown({ description: 'To be created first' })),
        create_service: Type.Optional(Type.Unknown({ description: 'To be created first' })),
        create_rule: Type.Optional(Type.Unknown({ description: 'Arguments of create-rule' })),
        create_ruleset: Type.Optional(Type.Unknown({ description: 'Arguments of create-ruleset' })),
      },
      {
        description:
          'The same rule between the two workloads alone, where labels open more than was asked: it goes with these hosts',
      },
    ),
  ),
  opens: Type.Optional(
    Type.Object(
      {
        pairs: Many('Whose decision would be another'),
        asked: Many('Of these, asked about'),
        beyond: Many('Of these, not asked about'),
        uncertain: Many('Of these, perhaps the same'),
        sources: Many('Ends that the rule names as sources'),
        destinations: Many('As destinations'),
        services: Type.String({ description: 'The same for all' }),
        examples: Type.Array(Type.Unknown(), { description: 'Of those beyond: {source, destination, before, after}' }),
        notes: Type.Array(Type.String(), { description: 'What was not compared' }),
      },
      { description: 'What the rule would allow, between ends that exist today' },
    ),
  ),
  near_misses: Type.Optional(
    Type.Array(NearMissOut, { description: 'Existing rules that just miss: change one instead?' }),
  ),
  warnings: Type.Array(Type.String(), { description: 'What to consider' }),
  ...AssumesOut,
})
type Output = Static<typeof output>

export default defineTool({
  name: NAME,
  summary: 'The narrowest rule by labels that would allow a flow, and what else it allows. Writes nothing.',
  effect: 'read',
  reads: 'judged',
  toolset: 'explain',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 41,
    and: 'two for each workload that the rules name (100 at most), two for each rule set where the PCE keeps deny rules apart from it, and for long lists one more each',
  },
  input: Type.Object(FlowInput, { additionalProperties: false }),
  output,
  example: { source: ['app=ordering'], destination: ['app=payments'], port: 8443, proto: 'tcp' },
  async handler(args, ctx): Promise<Output> {
    const today = await judgeFlow(ctx, args)
    const flow = await judgeByRules(today, ctx.signal)
    const names = await nameReferences(
      ctx,
      flow.versions,
      flow.verdict.rules.map(({ held }) => held),
    )
    const told = tellVerdicts(today.verdict, flow.versions.draft !== flow.versions.active, names)
    const { active, draft } = tellWhileOffline(told, today)
    const beside = tellIpTablesAt(flow)
    const unheard = [...warnOfOffline(flow), ...beside]
    const { ends, service } = flow
    const facts = {
      flow: `${ends.source.name} to ${ends.destination.name}, ${portName(service)}`,
      active,
      draft,
      ...showAssumed([...listAssumedFacts(today), ...listAssumedFacts(flow)]),
    }
    const isAllowed = (version: Version) => flow.verdict.outcomes.every((one) => one[version].decision === 'allowed')
    if (hasNoVen(flow))
      return {
        status: 'no_rule_helps',
        message: NO_VEN,
        ...facts,
        warnings: [...flow.sources.notes, ...flow.destinations.notes],
      }
    if (isAllowed('draft')) {
      const status = alreadyAllowed(flow, isAllowed('active'), beside.length > 0)
      return { ...status, ...facts, warnings: unheard }
    }

    const rule = await chooseRule(ctx, flow.versions.draft, flow.labels, ends, service)
    const opened = await compare(ctx, flow, rule)
    const misses = await missesOf(ctx, flow)
    const known = await nameReferences(ctx, flow.versions, [...misses.map(({ held }) => held)])
    const nearMisses = misses.length > 0 ? { near_misses: misses.map((miss) => showNearMiss(miss, known)) } : {}
    if (opened.remaining !== null && !opened.helps) {
      const what = opened.isCut.asked ? 'any more of the pairs compared' : 'it'
      const message = `No allow rule would let ${what} through for certain: ${tellRemaining(opened.remaining.example, names)}.`
      const notes = [...flow.sources.notes, ...flow.destinations.notes, ...opened.notes.asked]
      const warnings = [...new Set([...unheard, ...notes])]
      return { status: 'no_rule_helps', message, ...facts, ...nearMisses, warnings }
    }
    const narrower = showByWorkload(flow, rule, opened)
    const answer: Output & Pick<Required<Output>, 'opens'> = {
      status: 'suggested',
      message: `${tellToday(today)}${tellPlace(rule)} ${tellNarrower(narrower)}${tellOpened(opened, narrower)} Nothing was written.`,
      ...facts,
      ...narrower,
      suggestion: {
        rule: tellRule(rule),
        ruleset: rule.ruleSet?.name ?? `${rule.name} (new)`,
        ...writeSuggestion(rule, `Allows ${facts.flow}`),
      },
      opens: showOpened(opened, portName(service)),
      ...nearMisses,
      warnings: [...unheard, ...warningsOf(flow, rule, opened, names)],
    }
    const examples = opened.examples.slice(0, countRowsThatFit(opened.examples, answer, ctx.limits))
    return { ...answer, opens: { ...answer.opens, examples } }
  },
})

const NO_VEN = 'No end has a VEN, so no rule has an effect on it.'

/** Returns a sentence that says that the flow passes today although no rule allows it; empty if that is not so. */
function tellToday(flow: JudgedFlow): string {
  const modes = modesThatLetPass(flow)
  return modes.length === 0
    ? ''
    : `It flows today, because ${modes.join(' and ')} ${modes.length === 1 ? 'mode lets' : 'modes let'} pass what no rule allows; full mode would need the rule. `
}

/**
 * Returns the status and message for a flow that the rules already allow. `isBeside` is true if there are also iptables
 * rules, which may still block the flow.
 */
function alreadyAllowed(
  { verdict }: JudgedFlow,
  isActive: boolean,
  isBeside: boolean,
): Pick<Output, 'status' | 'message'> {
  // Pairs that were not evaluated may still need a rule.
  const partly = verdict.isPartial ? ' as far as it was judged' : ''
  const needless = (text: string) => (verdict.isPartial ? '' : `; ${text} is needed`)
  const beside = isBeside ? ' beside those in the words of iptables' : ''
  return isActive
    ? { status: 'already_allowed', message: `It is allowed already${beside}${partly}${needless('no rule')}.` }
    : {
        status: 'allowed_when_provisioned',
        message: `The draft allows it already${beside}${partly}: provision what is pending${needless('no further rule')}.`,
      }
}

/**
 * Compares the decisions with and without the suggested rule, for all pairs of source and destination that it covers.
 */
async function compare(ctx: ToolContext<true>, flow: JudgedFlow, rule: SuggestedRule): Promise<Opened> {
  const { service, versions, ends, labels, lists } = flow
  const named = await findNamed(ctx, rule, ends, labels, lists)
  const draft = withListsOf(versions.draft, rule)
  const judges = [
    createPairJudge(draft, service, { needsRules: true, ignoresIpTables: true }),
    createPairJudge(draft, service, { needsRules: true, ignoresIpTables: true, more: [rule.held] }),
  ] as const
  return workInTurns(findOpened(...judges, named, flow, MOST_EXAMPLES), ctx.signal)
}

async function missesOf(ctx: ToolContext<true>, { verdict, judges, service }: JudgedFlow) {
  const missing = verdict.outcomes.find(({ draft }) => draft.decision !== 'allowed')?.examples[0]
  if (missing === undefined) return []
  const { source, destination } = missing
  return workInTurns(findNearMisses(judges.draft, source, destination, service, MOST_MISSES), ctx.signal)
}

function tellRemaining({ rules, undecided, decision }: PairVerdict, names: ReferenceNames): string {
  const overriding = rules.filter(({ held }) => held.kind === 'override_deny')
  const [first] = overriding
  if (first !== undefined)
    return `the ${KIND_WORDS.override_deny} ${describeRule(first, names)}${overriding.length > 1 ? ` and ${overriding.length - 1} more` : ''} beats every allow rule`
  return reasonsOf(undecided) ?? `it would still be ${decision}`
}

/**
 * Returns an alternative rule for only the two workloads in the question; none if the rule by labels allows no other
 * traffic anyway.
 */
function showByWorkload(
  { ends, service }: JudgedFlow,
  rule: SuggestedRule,
  opened: Opened,
): Pick<Output, 'by_workload'> {
  const narrower = opened.pairs > opened.asked ? narrowToWorkloads(rule, ends) : undefined
  if (narrower === undefined) return {}
  const own = { ...rule, ...narrower }
  const flow = `${ends.source.name} to ${ends.destination.name}, ${portName(service)}`
  return { by_workload: { rule: tellRule(own), ...writeSuggestion(own, `Allows ${flow}`) } }
}

/** Returns a sentence about the alternative rule between the two workloads; empty if there is none. */
const tellNarrower = ({ by_workload: narrower }: Pick<Output, 'by_workload'>): string =>
  narrower === undefined ? '' : `by_workload is for these two workloads alone, until one of them is replaced. `

function tellRule({ consumers, providers, service }: SuggestedRule): string {
  const nameEnd = (end: typeof consumers): string =>
    end.kind === 'labels'
      ? end.labels.map(({ key, value }) => `${key}=${value}`).join(' + ')
      : end.kind === 'ams'
        ? 'all workloads of the scope'
        : end.name
  const on = service.kind === 'port' ? portName(service) : service.name
  return `${nameEnd(consumers)} to ${nameEnd(providers)}, ${on}`
}

function tellPlace({ ruleSet, name, scope }: SuggestedRule): string {
  const where = scope.length > 0 ? scope.map(({ key, value }) => quote(`${key}=${value}`)).join(' ') : 'all workloads'
  return ruleSet === null
    ? `A rule in a new rule set ${quote(name)} for ${where}.`
    : `A rule in the existing rule set ${quote(ruleSet.name)} for ${where}.`
}

function tellOpened({ pairs, asked, isCut }: Opened, { by_workload: narrower }: Pick<Output, 'by_workload'>): string {
  const atLeast = (isLess: boolean) => (isLess ? 'at least ' : '')
  const those = `${atLeast(isCut.asked)}${tellMany(asked)} ${asked === 1 ? 'pair' : 'pairs'} that ${asked === 1 ? 'was' : 'were'} asked about`
  return `${narrower === undefined ? 'It' : 'By labels it'} would allow ${those}, and ${atLeast(isCut.beyond)}${tellMany(pairs - asked)} beyond.`
}

const showOpened = (opened: Opened, services: string): NonNullable<Output['opens']> => ({
  pairs: tellMany(opened.pairs),
  asked: tellMany(opened.asked),
  beyond: tellMany(opened.pairs - opened.asked),
  uncertain: tellMany(opened.uncertain),
  sources: tellMany(opened.sources),
  destinations: tellMany(opened.destinations),
  services,
  examples: [],
  notes: [...new Set([...opened.notes.beyond, ...opened.notes.asked])],
})

function warningsOf(flow: JudgedFlow, rule: SuggestedRule, opened: Opened, names: ReferenceNames): string[] {
  const { remaining, isCut } = opened
  const denies = flow.verdict.rules.filter(({ held, versions }) => held.kind === 'deny' && versions.includes('draft'))
  const [first] = denies
  const byLabels = [rule.consumers, rule.providers].some(({ kind }) => kind === 'labels' || kind === 'ams')
  return [
    ...(first === undefined
      ? []
      : [
          `A deny rule is about it: ${describeRule(first, names)}${denies.length > 1 ? ` and ${denies.length - 1} more` : ''}. The allow rule would be an exception to it; ask its author first.`,
        ]),
    ...(remaining === null
      ? []
      : [
          `${isCut.asked ? 'At least ' : ''}${tellMany(remaining.pairs)} ${remaining.pairs === 1 ? 'pair' : 'pairs'} of those asked about would still not be allowed for certain: ${tellRemaining(remaining.example, names)}.`,
        ]),
    ...(byLabels ? ['Workloads that get these labels later are allowed as well.'] : []),
    ...(rule.scope.length === 0 ? ['The ends have no app or env label, so the rule set is for all workloads.'] : []),
    ...(rule.others > 0
      ? [`${countOf(rule.others, 'more rule set')} of exactly this scope: choose where it belongs.`]
      : []),
    ...(flow.versions.draft === flow.versions.active ? [] : ['Other changes are pending; it is judged with them.']),
  ]
}

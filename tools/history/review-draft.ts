import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut, showAssumed } from '../../schemas/assumes.js'
import { Count, Counts, StringEnum, Text } from '../../schemas/common.js'
import type { Limits } from '../../schemas/config.js'
import { FieldsInput, MAX_PAGE, usualSize } from '../../schemas/paging.js'
import { CHANGE_EFFECTS, RISKS } from '../../schemas/policy-changes.js'
import { RuleTypeOut } from '../../schemas/rule-shapes.js'
import { comparePolicies, describeDifference } from '../../domain/history/compare-policies.js'
import { loadPolicy } from '../../domain/history/load-policy.js'
import { assumesOf, observeDraft, type ChangeEvidence } from '../../domain/history/observe-draft.js'
import { parseHref, toDraftHref } from '../../domain/inventory/parse-href.js'
import { updateTypeOf } from '../../domain/policy/choose-changes.js'
import { selectPending } from '../../domain/policy/select-changes.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { coverageNote, dataSpan } from '../../domain/traffic/read-flows.js'
import { answerBudget, jsonBytes, rowsWithin } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, encodeCursor, sliceOfList } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import {
  countRules,
  describeRules,
  EVIDENCE,
  EVIDENCE_MEANINGS,
  showEvidence,
  showRules,
  sumRules,
  type Evidence,
  type EvidenceShown,
} from '../answers/show-evidence.js'
import { orderForReview } from '../answers/show-provisioning.js'
import { defineTool } from '../define.js'

const NAME = 'review-draft'
/** The number of changes to review by default, and the maximum that one call judges. */
const USUAL = 10
const MOST = 50

/** The numbers of pairs of each kind to try if a call is about a single change. The first one that fits is used. */
const PAIRS_OF_ONE = [100, 50, 25, 10] as const
/**
 * The numbers of changed rules shown for each rule set, and of pairs for each rule: if a call is about several changes,
 * and if it is about a single one.
 */
const RULES_OF_MANY = { rules: 3, pairs: 1 }
const RULES_OF_ONE = { rules: 25, pairs: 2 }
const MORE_RULES = {
  many: 'With the href of its rule set, the answer lists all changed rules page by page; with that of a rule, it is about this rule.',
  one: 'next_cursor has the next ones; with the href of a rule, the answer is about this rule.',
}
const ONE_CHANGE = `With href, the answer is about one change and has up to ${PAIRS_OF_ONE[0]} pairs of each kind.`
const SMALLER_CALL =
  'The others are in get-traffic-flows: with the ends of a rule of the change, and decide_by draft or active.'

const Pair = Type.Object({
  source: Text('Application, host or address'),
  destination: Text('Application, host or address'),
  ports: Type.Array(Type.String(), { description: 'The busiest' }),
  connections: Count('Observed'),
  effect: Text('Of the change'),
  last_seen: Type.Optional(Text('Day, UTC')),
})
const EVIDENCE_OUT = {
  evidence: StringEnum(EVIDENCE, { description: 'What observed traffic says' }),
  says: Text('In a sentence'),
  depends: Type.Optional(Type.Array(Pair, { description: 'Traffic that depends on what it takes away, the busiest' })),
  asked_for: Type.Optional(Type.Array(Pair, { description: 'Traffic that asked for what it lets pass, the busiest' })),
  pairs_total: Type.Optional(Count('Pairs of both kinds, where more than shown')),
}
const RuleOut = Type.Object({
  href: Text('Draft href'),
  rule_type: RuleTypeOut,
  change: StringEnum(['added', 'changed', 'removed'] as const, { description: 'Draft against active' }),
  position: Count('Place in its list of the rule set, from 1'),
  rule: Text('In one line, as it is in force; a new one as in draft'),
  becomes: Type.Optional(Text('The same of a changed one, in draft')),
  description: Type.Optional(Text('Its own')),
  by_rule_set: Type.Optional(Type.Boolean({ description: 'By the scopes or enabled of its rule set alone' })),
  ...EVIDENCE_OUT,
})
const RuleCountsOut = Type.Object(
  {
    added: Count('Rules'),
    changed: Count('Rules'),
    removed: Count('Rules'),
    unchanged: Count('Rules, not listed'),
    reordered: Type.Optional(Count('Rules at another place, which changes no traffic')),
    iptables_not_judged: Type.Optional(Count('Changed rules in the words of iptables')),
    others: Type.Optional(Count('Changed rules that were not asked for')),
    evidence: Counts('Changed rules by what observed traffic says'),
  },
  { description: 'Of changed rule sets' },
)
const ReviewedOut = Type.Object({
  href: Text('Draft href'),
  type: Text('rule_sets, ip_lists …'),
  name: Type.Optional(Text('Its name')),
  update_type: Type.Optional(Text('create, update or delete')),
  effect: Type.Optional(
    StringEnum(CHANGE_EFFECTS, { description: 'On permitted traffic; absent: mixed or undecided' }),
  ),
  effect_note: Type.Optional(Text('Why there is no effect')),
  risks: Type.Optional(Type.Array(StringEnum(RISKS), { description: 'To review' })),
  updated_by: Type.Optional(Text('Last editor')),
  updated_at: Type.Optional(Text('When, UTC')),
  ...EVIDENCE_OUT,
  rule_changes: Type.Optional(RuleCountsOut),
  rules: Type.Optional(
    Type.Array(RuleOut, {
      description: 'Its changed rules: those that cut traffic, then those without evidence first',
    }),
  ),
  rules_from: Type.Optional(Count('Of them before the first one here')),
  rules_left: Type.Optional(Count('Of them after the last one here')),
})
type Reviewed = Static<typeof ReviewedOut>

const output = Type.Object({
  summary: Type.String({ description: 'What to look at' }),
  total_pending_changes: Count('That match'),
  evidence: Counts('Changes of this page by what observed traffic says'),
  rule_changes: Type.Optional(RuleCountsOut),
  more_rules: Type.Optional(Text('How to see the rules that are not shown')),
  more_pairs: Type.Optional(Text('How to see the pairs that are not shown')),
  meanings: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Of these words' })),
  changes: Type.Array(Type.Partial(ReviewedOut), { description: 'Of this page, those that cut traffic first' }),
  observed: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'The traffic that was read: window, rows, what is missing',
    }),
  ),
  ...AssumesOut,
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
})

export default defineTool({
  name: NAME,
  summary: 'Pending changes, each with the observed traffic that depends on it or asked for it.',
  effect: 'read',
  reads: 'judged',
  toolset: 'history',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 80,
    and: 'two for each rule set where the release keeps deny rules apart, two for each workload that changed rules name (50 at most), and for long lists one more each',
  },
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Only this; a rule: its own evidence', listed: 'Only this' })),
      name: Type.Optional(Type.String({ minLength: 1, description: 'Exact', listed: '' })),
      max_results: usualSize(
        Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: `Changes a page, at most ${MOST}` }),
        USUAL,
      ),
      cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
      ...FieldsInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: {},
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { href, name, cursor, fields, max_results: asked = USUAL } = args
    const maxResults = Math.min(asked, MOST)
    const select = selectFields(fields, ReviewedOut)
    const { pce, signal } = ctx
    const filters = { href, name }
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const pending = await pce.getPendingPolicyChanges({ signal })
    const wanted = await selectPending(ctx, pending, {
      ...(href !== undefined && { href }),
      ...(name !== undefined && { name }),
    })
    const slice = sliceOfList(orderForReview(wanted), position, maxResults)
    if (slice.items.length === 0) {
      const none =
        pending.length === 0
          ? 'Nothing is pending; draft and active policy are the same.'
          : 'None of the pending changes matches.'
      return { summary: none, total_pending_changes: wanted.length, evidence: {}, changes: [], truncated: false }
    }
    const active = await loadPolicy(pce, 'active', signal)
    const draft = await loadPolicy(pce, 'draft', signal)
    const difference = await comparePolicies(active, draft, signal)
    const hrefs = new Set(slice.items.map((change) => toDraftHref(change.href)))
    const objects = difference.objects.filter(({ change }) => hrefs.has(change.href))
    const judged = new Map((await describeDifference(ctx, difference, objects)).map((one) => [one.href, one]))
    const only = href === undefined ? undefined : ruleHrefOf(href)
    const observed = await observeDraft(ctx, slice.items, { active, draft }, only)
    const { read, modes } = observed
    const isCut = read?.truncated ?? false
    const isOnly = wanted.length === 1
    const from = isOnly ? (position.within?.parts ?? 0) : 0
    const assumes = new Set<string>()
    const rows = slice.items.map((change): Reviewed => {
      const own = toDraftHref(change.href)
      const found: ChangeEvidence = observed.changes.get(own) ?? { kind: 'no_rules' }
      for (const fact of assumesOf(found)) assumes.add(fact)
      const {
        effect,
        effect_note: note,
        risks,
        updated_by: by = change.updated_by,
        updated_at: at,
      } = judged.get(own) ?? {}
      for (const fact of judged.get(own)?.assumes ?? []) assumes.add(fact)
      const author = (by as { name?: string } | null | undefined)?.name ?? by?.href
      const updateType = updateTypeOf(change)
      const time = at ?? change.updated_at
      return {
        href: own,
        type: change.type,
        ...(change.name !== undefined && { name: change.name }),
        ...(updateType !== null && { update_type: updateType }),
        // The effect and the risks are those of the whole rule set, which may differ from those of the only rule asked for.
        ...(only === undefined && {
          ...(effect !== undefined && { effect }),
          ...(note !== undefined && { effect_note: note }),
          ...(risks !== undefined && { risks }),
        }),
        ...(author !== undefined && { updated_by: author }),
        ...(time !== undefined && { updated_at: time }),
        ...fitEvidence(found, isCut, isOnly && from === 0, ctx.limits),
        ...(fields?.includes('rules') !== false && fitRules(found, { isCut, isOnly, from }, ctx.limits)),
      }
    })
    const say = (shown: readonly Reviewed[]) => ({
      summary: [
        summarise(shown, wanted.length),
        only === undefined ? '' : 'The evidence is of the rule asked for alone.',
        describeRules(countOfRules(shown)),
      ]
        .filter(Boolean)
        .join(' '),
      total_pending_changes: wanted.length,
      evidence: countEvidence(shown),
      ...(shown.length > 1 && countOfRules(shown) !== null && { rule_changes: countOfRules(shown)! }),
      ...(shown.some(({ rules_left: left }) => left !== undefined) && {
        more_rules: isOnly ? MORE_RULES.one : MORE_RULES.many,
      }),
      ...(shown.some(({ pairs_total: total }) => total !== undefined) && {
        more_pairs: wanted.length === 1 ? SMALLER_CALL : ONE_CHANGE,
      }),
      meanings: Object.fromEntries(shown.map(({ evidence }) => [evidence, EVIDENCE_MEANINGS[evidence]])),
      ...(read !== null && {
        observed: {
          window: read.window,
          rows: read.rows,
          ...(isCut && { flows_truncated: true, row_limit: read.rowLimit }),
          ...(dataSpan([read]) !== null && { data_span: dataSpan([read]) }),
          note: [
            'Each change is judged by the policies with and without it, whatever the PCE recorded.',
            ...modes,
            ...(isCut ? [`The limit of ${read.rowLimit} rows was reached: counts are lower bounds.`] : []),
            coverageNote({ ...read, full: 0, announced: null }),
          ]
            .filter(Boolean)
            .join(' '),
        },
      }),
      ...showAssumed([...assumes]),
    })
    const { rows: fit, paging } = await answerPage(NAME, filters, slice, rows, ctx, { ...say(rows), changes: [] })
    const [first] = slice.items
    const within = isOnly &&
      fit[0]?.rules_left !== undefined &&
      first && { href: first.href, parts: from + fit[0].rules!.length }
    const next = within ? await encodeCursor(ctx, NAME, filters, { ...position, within }) : paging.next_cursor
    const truncated = paging.truncated || next !== undefined
    return {
      ...say(fit),
      changes: fit.toSorted((a, b) => EVIDENCE.indexOf(a.evidence) - EVIDENCE.indexOf(b.evidence)).map(select),
      truncated,
      ...(next !== undefined && { next_cursor: next }),
    }
  },
})

/**
 * Shows the evidence of a change with its busiest pairs. If the call is about this change only, it shows as many pairs
 * as fit.
 */
function fitEvidence(found: ChangeEvidence, isCut: boolean, isOnly: boolean, limits: Limits): EvidenceShown {
  const room = answerBudget(limits) / 2
  const fitting = PAIRS_OF_ONE.find((most) => isOnly && jsonBytes(showEvidence(found, isCut, most)) <= room)
  return showEvidence(found, isCut, fitting)
}

/** Shows as many changed rules of a rule set as fit, beginning with the given one. */
function fitRules(
  { rules }: ChangeEvidence,
  { isCut, isOnly, from }: { isCut: boolean; isOnly: boolean; from: number },
  limits: Limits,
): Pick<Reviewed, 'rule_changes' | 'rules' | 'rules_from' | 'rules_left'> {
  if (rules === undefined) return {}
  const { rules: most, pairs } = isOnly ? RULES_OF_ONE : RULES_OF_MANY
  const all = showRules(rules, isCut, pairs)
  const shown = rowsWithin(all.slice(from, from + most), answerBudget(limits) / 3)
  const left = Math.max(0, all.length - from - shown.length)
  return {
    rule_changes: countRules(rules, isCut),
    ...(shown.length > 0 && { rules: shown }),
    ...(from > 0 && { rules_from: from }),
    ...(left > 0 && { rules_left: left }),
  }
}

const countOfRules = (rows: readonly Reviewed[]) => sumRules(rows.flatMap(({ rule_changes: counts }) => counts ?? []))

/** Returns the draft href of a rule; undefined if the href is that of another object. */
function ruleHrefOf(href: string): string | undefined {
  const text = href.trim()
  return parseHref(text)?.parent === undefined ? undefined : toDraftHref(text)
}

function countEvidence(rows: readonly Reviewed[]): Partial<Record<Evidence, number>> {
  const counts: Partial<Record<Evidence, number>> = {}
  for (const { evidence } of rows) counts[evidence] = (counts[evidence] ?? 0) + 1
  return counts
}

function summarise(rows: readonly Reviewed[], total: number): string {
  const counts = countEvidence(rows)
  const what =
    rows.length === total ? countOf(total, 'pending change') : `${rows.length} of ${countOf(total, 'pending change')}`
  const parts = EVIDENCE.filter((word) => counts[word] !== undefined).map(
    (word) => `${counts[word]}: ${EVIDENCE_MEANINGS[word]}`,
  )
  return `${what}. ${parts.join('; ')}.`
}

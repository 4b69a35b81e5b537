import { Type, type Static } from '@sinclair/typebox'
import { LabelReference } from '../../schemas/label-reference.js'
import { PagingInput, PagingOutput } from '../../schemas/paging.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { RuleOut, ScopeOut } from '../../schemas/rule-shapes.js'
import { defineTool } from '../define.js'
import { parseLabelList, resolveLabels, unresolvedFilter } from '../../domain/inventory/labels.js'
import { allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { loadDenyRules } from '../../domain/inventory/read-rules.js'
import { loadReferenceNames } from '../../domain/inventory/reference-names.js'
import { answerBudget, countRowsThatFit, jsonBytes, mostRowsThatFit } from '../answers/byte-budget.js'
import {
  answerPage,
  type CursorContext,
  decodeCursor,
  encodeCursor,
  fetchSlice,
  type Paging,
  type Position,
  type Slice,
} from '../answers/page-list.js'
import { showRuleSet } from '../answers/show-rules.js'

const NAME = 'get-rulesets'
/** A rule set takes at least this many times the shortest row, so that no more deny rules are fetched than can be shown. */
const ROWS_PER_RULE_SET = 8

const output = Type.Object({
  rulesets: Type.Array(
    Type.Object({
      href: Type.String(),
      name: Type.String(),
      enabled: Type.Boolean(),
      description: Type.Union([Type.String(), Type.Null()], { description: 'Description' }),
      scopes: Type.Array(Type.Array(ScopeOut), { description: 'Inner ANDed, outer ORed; [[]] is everything' }),
      update_type: Type.Optional(Type.String({ description: 'Pending draft change' })),
      deny_rules_error: Type.Optional(Type.String({ description: 'Why deny rules are missing' })),
      rules_total: Type.Integer({ description: 'Rules it has' }),
      rules_from: Type.Optional(Type.Integer({ description: 'Continued: earlier rules were on earlier pages' })),
      rules: Type.Array(RuleOut, { description: 'Allow rules, then deny rules' }),
    }),
    { description: 'Draft rule sets of this page' },
  ),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  area: 'rulesets',
  summary: 'Draft rule sets with scopes and allow, deny, override-deny rules.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part(),
      description: Part(),
      ...ExactInput,
      enabled: Type.Optional(Type.Boolean({ description: 'In force' })),
      labels: Type.Optional(
        Type.Union([Type.String({ maxLength: 16_384 }), Type.Array(LabelReference, { maxItems: 50 })], {
          description: 'Of the scope: one or a list',
        }),
      ),
      ...PagingInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'payments' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults, ...question } = args
    const { exact, ...filters } = question
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const labels = await resolveLabels(ctx.pce, parseLabelList(filters.labels), ctx, unresolvedFilter)
    const { name, description, enabled } = filters
    const params = { name, description, labels: labels.length > 0 ? [labels.map(({ href }) => href)] : undefined }
    const limit = Math.min(maxResults ?? Infinity, Math.ceil(mostRowsThatFit(ctx.limits) / ROWS_PER_RULE_SET))
    // The PCE has no filter for `enabled` (P9).
    const ownFilter = allOf<RuleSet>(
      enabled === undefined ? undefined : (ruleSet) => ruleSet.enabled === enabled,
      matchExactly(exact, filters, {
        name: (ruleSet) => [ruleSet.name],
        description: (ruleSet) => [ruleSet.description],
      }),
    )
    const query = { api: ctx.pce.ruleSets, params, signal: ctx.signal }
    const slice = await fetchSlice(query, position, limit, ctx.limits, ownFilter)
    const complete = await loadDenyRules(ctx.pce, slice.items, ctx.signal)
    const names = await loadReferenceNames(
      ctx.pce,
      complete.map(({ ruleSet }) => referring(ruleSet)),
      ctx,
    )
    const shown = complete.map(({ ruleSet, error }) => showRuleSet(ruleSet, names, error))
    const { rulesets, paging } = await pageRuleSets(NAME, question, position, slice, shown, ctx)
    return { rulesets, ...paging }
  },
})

/** The parts of a rule set that point at other objects. */
function referring({ scopes, rules, deny_rules: denyRules }: RuleSet) {
  const ends = [...(rules ?? []), ...(denyRules ?? [])].map((rule) => [
    rule.providers,
    rule.consumers,
    rule.ingress_services,
    rule.egress_services,
  ])
  return [scopes, ends]
}

interface ShownRuleSet {
  href: string
  rules: unknown[]
}

/** Room left for the paging facts and a cursor. */
const ENVELOPE_BYTES = 2_000

/**
 * Pages rule sets, and inside a rule set that is larger than one answer its rules: that one comes alone, with `rules_from`
 * where it continues, and the cursor goes on in the middle of it. Nothing is out of reach because of its size.
 */
async function pageRuleSets<T extends { href: string }, R extends ShownRuleSet>(
  tool: string,
  filters: object,
  position: Position,
  slice: Slice<T>,
  ruleSets: readonly R[],
  ctx: CursorContext,
): Promise<{ rulesets: (R & { rules_from?: number })[]; paging: Paging }> {
  const { limits } = ctx
  const [first, ...rest] = ruleSets
  if (first === undefined) return finish(await answerPage(tool, filters, slice, ruleSets, ctx))
  const from = position.within?.href === first.href ? position.within.parts : 0
  const opened = from === 0 ? first : { ...first, rules: first.rules.slice(from), rules_from: from }
  if (jsonBytes(opened) + ENVELOPE_BYTES <= answerBudget(limits)) {
    return finish(await answerPage(tool, filters, slice, [opened, ...rest], ctx, { rulesets: [] }))
  }
  const kept = countRowsThatFit(opened.rules, [{ ...opened, rules: [] }, ' '.repeat(ENVELOPE_BYTES)], limits)
  const whole = kept === opened.rules.length
  const next: Position = whole
    ? { offset: slice.start + 1, after: first.href, within: null }
    : { offset: slice.start, after: position.after, within: { href: first.href, parts: from + kept } }
  const more = !whole || slice.more || ruleSets.length > 1
  const cursor = more ? await encodeCursor(ctx, tool, filters, next) : undefined
  return {
    rulesets: [{ ...opened, rules: opened.rules.slice(0, kept) }],
    paging: {
      total_count: slice.totalCount,
      pce_total: slice.pceTotal,
      truncated: more,
      ...(cursor !== undefined && { next_cursor: cursor }),
    },
  }
}

function finish<R>({ rows, paging }: { rows: R[]; paging: Paging }) {
  return { rulesets: rows, paging }
}

import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, type PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelReference } from '../../schemas/label-reference.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { ExactInput, Part, PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { ActorInput, RuleOut, ServiceInput, WrittenOut } from '../../schemas/rule-shapes.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import type { ActorReference } from '../../domain/drafts/resolve-actors.js'
import type { ServiceReference } from '../../domain/drafts/resolve-services.js'
import { createRuleTest } from '../../domain/rule-search/name-tests.js'
import { createPolicyLookups, findByHref } from '../../domain/inventory/find-object.js'
import { parseHref, toDraftHref } from '../../domain/inventory/parse-href.js'
import { loadLabels, parseLabelList, resolveLabels, unresolvedFilter } from '../../domain/inventory/labels.js'
import { allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { readPolicyVersion, requirePolicyVersion, versionInCursor } from '../../domain/inventory/policy-version.js'
import { loadDenyRules } from '../../domain/inventory/read-rules.js'
import { loadReferenceNames } from '../../domain/inventory/reference-names.js'
import { quote } from '../../domain/text/escape-text.js'
import { mapInTurns } from '../../domain/text/pace-work.js'
import { answerBudget, countRowsThatFit, jsonBytes } from '../answers/byte-budget.js'
import {
  answerPage,
  type CursorContext,
  decodeCursor,
  encodeCursor,
  fetchSlice,
  pageSize,
  defaultSize,
  type Paging,
  type Position,
  type Slice,
} from '../answers/page-list.js'
import { selectFields, type Select } from '../answers/select-fields.js'
import { referencesOf, ServicesOut, showPorts, showRuleSet } from '../answers/show-rules.js'

const NAME = 'get-rulesets'
/**
 * Assumed minimum size of a rule set with rules, as a multiple of the minimum size of a row. It keeps the number of
 * rule sets low that are fetched with their deny rules but then do not fit into the answer.
 */
const ROWS_PER_RULE_SET = 8

const LabelsInput = Type.Union([Type.Array(LabelReference, { maxItems: 50 }), Type.String({ maxLength: 16_384 })], {
  description: 'Of the scope',
})

/**
 * The output form of a rule. At detail `full`, consumers, providers and scopes are objects with href, type, and key and
 * value or name, and conditions are fields as the PCE has them.
 */
const RuleRow = Type.Object({
  ...RuleOut.properties,
  ingress_services: Type.Array(WrittenOut, { description: 'A name, or {port, to_port?, proto}; full: {href, name}' }),
})

const Row = Type.Object({
  href: Type.String(),
  name: Type.String(),
  enabled: Type.Boolean(),
  description: Type.Union([Type.String(), Type.Null()], { description: 'Description' }),
  scopes: Type.Array(Type.Array(WrittenOut), { description: 'Inner ANDed, outer ORed; [[]] is everything' }),
  update_type: Type.Optional(Type.String({ description: 'Pending draft change' })),
  deny_rules_error: Type.Optional(Type.String({ description: 'Why deny rules are missing' })),
  rules_total: Type.Integer({ description: 'Rules it has' }),
  ip_tables_rules: Type.Optional(Type.Object({}, { description: 'Their count: not shown or judged' })),
  rules_matching: Type.Optional(Type.Integer({ description: 'Those of actor, service or href' })),
  rules_from: Type.Optional(Type.Integer({ description: 'Continued: earlier rules were on earlier pages' })),
  rules: Type.Array(RuleRow, { description: 'Allow rules, then deny rules' }),
})

const output = Type.Object({
  rulesets: Type.Array(Type.Partial(Row), { description: 'Of this page' }),
  ...PolicyVersionOut,
  ...ServicesOut,
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Rule sets: scopes, allow, deny, override-deny rules.',
  effect: 'read',
  reads: 'shown',
  toolset: 'rules',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part(),
      description: Part(),
      ...ExactInput,
      ...PolicyVersionInput,
      enabled: Type.Optional(Type.Boolean({ description: 'Switched on' })),
      labels: Type.Optional(LabelsInput),
      href: Type.Optional(Type.String({ description: 'Rule set or rule' })),
      actor: Type.Optional(
        Type.Union([...ActorInput.anyOf], {
          description: 'At an end, or in the scope',
          listed: 'At an end or in scope',
        }),
      ),
      service: Type.Optional(
        Type.Union([...ServiceInput.anyOf], { description: 'Named, or port covered', listed: 'Named or covered' }),
      ),
      detail_level: DetailLevel('full: objects with href'),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'payments' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults, fields, detail_level: detail = 'standard', ...given } = args
    const { policy_version: asked, ...parts } = given
    const version = readPolicyVersion(asked)
    const question = { ...parts, ...versionInCursor(version) }
    const select = selectFields(fields, Row)
    const { exact, href, actor, service, ...filters } = parts
    if (href !== undefined && Object.keys(filters).length > 0) {
      const text = `href is one rule set; leave out ${Object.keys(filters).join(', ')}.`
      throw new ToolError('conflicting_identifiers', text, { arguments: ['href', ...Object.keys(filters)] })
    }
    const position = await decodeCursor(ctx, NAME, question, cursor)
    await requirePolicyVersion(ctx.pce, version, ctx.signal)
    const wantedIn = await createTest(ctx, version, { href, actor, service })
    const shows = (...names: string[]) => fields === undefined || names.some((name) => fields.includes(name))
    const rowsPerRuleSet = shows('rules') ? ROWS_PER_RULE_SET : 1
    const limit = Math.ceil(pageSize(Infinity, ctx.limits, fields) / rowsPerRuleSet)
    const errors = new Map<string, string>()
    const complete = async (ruleSets: readonly RuleSet[]) => {
      const loaded = await loadDenyRules(ctx.pce, ruleSets, ctx.signal)
      for (const { ruleSet, error } of loaded) if (error !== undefined) errors.set(ruleSet.href, error)
      return loaded.map(({ ruleSet }) => ruleSet)
    }
    const hasWanted =
      wantedIn && ((ruleSet: RuleSet) => holdsWanted(ruleSet, wantedIn(ruleSet)) || errors.has(ruleSet.href))
    const slice =
      href === undefined
        ? await findRuleSets(
            ctx,
            version,
            { exact, ...filters },
            { position, limit: Math.min(maxResults ?? defaultSize(detail, LONG_ROWS), limit) },
            hasWanted,
            complete,
          )
        : await sliceOfOne(ctx, version, href, hasWanted, complete)
    const isCounted = shows('rules', 'rules_total')
    const found = wantedIn === undefined && isCounted ? await complete(slice.items) : slice.items
    const names = await loadReferenceNames(
      ctx.pce,
      await mapInTurns(
        found,
        (ruleSet) => [
          shows('scopes') ? ruleSet.scopes : [],
          shows('rules') ? endsOf(ruleSet, wantedIn?.(ruleSet)) : [],
        ],
        ctx.signal,
      ),
      ctx,
      version,
      [],
      true,
    )
    const show = (ruleSet: RuleSet) =>
      showRuleSet(ruleSet, names, { detail, denyError: errors.get(ruleSet.href), isWanted: wantedIn?.(ruleSet) })
    const shown = await mapInTurns(found, show, ctx.signal)
    const from = partsBefore(position, found[0])
    // The rules for this page, selected in the same way as by the function `show` above.
    const listed = shows('rules')
      ? found.map((ruleSet, at) => shownRules(ruleSet, wantedIn?.(ruleSet)).slice(at === 0 ? from : 0))
      : []
    const facts = { policy_version: String(version) }
    const most = { ...facts, ...showPorts(listed.flat(), names, ctx.limits) }
    const { rulesets, paging } = await pageRuleSets(NAME, question, position, slice, shown, most, ctx, select)
    const kept = rulesets.flatMap(({ rules }, at) => listed[at]?.slice(0, rules?.length) ?? [])
    return { rulesets, ...facts, ...showPorts(kept, names, ctx.limits), ...paging }
  },
})

type Ctx = ToolContext<true>
type RuleSetTest = (ruleSet: RuleSet) => boolean
/** A function that adds deny rules to rule sets, because in some releases the PCE returns rule sets without them. */
type Complete = (ruleSets: readonly RuleSet[]) => Promise<RuleSet[]>

const rulesOf = ({ rules, deny_rules: denyRules }: RuleSet) => [...(rules ?? []), ...(denyRules ?? [])]

/**
 * Returns true if at least one rule of the rule set passes the test. A rule set without rules is tested by its scopes
 * alone.
 */
function holdsWanted(ruleSet: RuleSet, isWanted: (rule: Rule | DenyRule | undefined) => boolean): boolean {
  const rules = rulesOf(ruleSet)
  return rules.length === 0 ? isWanted(undefined) : rules.some(isWanted)
}

/**
 * Creates the function that tests whether a rule of a rule set was requested. If `href` is the href of a rule, only
 * that rule passes. With `actor`, a rule must name the actor or belong to a scope that names it. With `service`, the
 * rule must use the service. Returns undefined if there are no such conditions.
 */
async function createTest(
  ctx: Ctx,
  version: PolicyVersionSelector,
  { href, actor, service }: { href?: string; actor?: ActorReference; service?: ServiceReference },
) {
  const { kind } = parseHref(href?.trim() ?? '') ?? {}
  const draft = kind === 'sec_rules' || kind === 'deny_rules' ? toDraftHref((href as string).trim()) : undefined
  const isMeant = draft === undefined ? undefined : (rule: Rule | DenyRule) => toDraftHref(rule.href) === draft
  const lookups = async () => createPolicyLookups(ctx.pce, await loadLabels(ctx.pce, ctx), version, ctx.signal)
  const test =
    actor === undefined && service === undefined
      ? undefined
      : await createRuleTest(ctx.pce, await lookups(), { actor, service }, ctx.signal, version)
  if (isMeant === undefined && test === undefined) return undefined
  return ({ scopes }: RuleSet) =>
    (rule: Rule | DenyRule | undefined) =>
      (isMeant === undefined || (rule !== undefined && isMeant(rule))) && test?.(rule, scopes) !== false
}

/**
 * Returns the rule set with the given href, or the rule set of the rule with this href. Throws invalid_href and
 * not_found.
 */
async function sliceOfOne(
  { pce, signal }: Ctx,
  version: PolicyVersionSelector,
  href: string,
  test: RuleSetTest | undefined,
  complete: Complete,
): Promise<Slice<RuleSet>> {
  const parent = parseHref(href.trim())?.parent
  const isRule = parent?.kind === 'rule_sets'
  const ruleSet = await findByHref(pce, 'rule_sets', isRule ? parent.href : href.trim(), version, signal)
  const [whole] = await complete([ruleSet])
  const isMeant = (rule: Rule | DenyRule) => toDraftHref(rule.href) === toDraftHref(href.trim())
  if (isRule && !rulesOf(whole as RuleSet).some(isMeant)) {
    throw new ToolError(
      'not_found',
      `The rule set ${quote(ruleSet.name)} has no rule with the href ${quote(href.trim())}.`,
      { href },
    )
  }
  const items = test === undefined || test(whole as RuleSet) ? [whole as RuleSet] : []
  return { items, start: 0, totalCount: items.length, pceTotal: 1, more: false }
}

interface Filters {
  exact?: boolean
  name?: string
  description?: string
  enabled?: boolean
  labels?: Static<typeof LabelsInput>
}

/**
 * Finds a page of rule sets that pass the filters. The filters by `enabled` and by the objects in rules are applied
 * here, because the PCE does not have them (P9).
 */
async function findRuleSets(
  ctx: Ctx,
  policyVersion: PolicyVersionSelector,
  { exact, enabled, labels: asked, ...filters }: Filters,
  { position, limit }: { position: Position; limit: number },
  test: RuleSetTest | undefined,
  complete: Complete,
): Promise<Slice<RuleSet>> {
  const { ruleSets: api } = ctx.pce
  const labels = await resolveLabels(ctx.pce, parseLabelList(asked), ctx, unresolvedFilter)
  const params = { ...filters, labels: labels.length > 0 ? [labels.map(({ href }) => href)] : undefined }
  const ownFilter = allOf<RuleSet>(
    enabled === undefined ? undefined : (ruleSet) => (ruleSet.enabled !== false) === enabled,
    matchExactly(exact, filters, {
      name: (ruleSet) => [ruleSet.name],
      description: (ruleSet) => [ruleSet.description],
    }),
    test,
  )
  const withDenyRules: Pick<typeof api, 'scan'> = {
    scan: (version, parent, options) =>
      api.scan(version, parent, { ...options, onItems: async (items) => options.onItems(await complete(items)) }),
  }
  const query = { api: test === undefined ? api : withDenyRules, policyVersion, params, signal: ctx.signal }
  return fetchSlice(query, position, limit, ownFilter)
}

/** Returns the parts of the shown rules that refer to other objects, such as consumers, providers and services. */
function endsOf(ruleSet: RuleSet, isWanted: ((rule: Rule | DenyRule) => boolean) | undefined) {
  return shownRules(ruleSet, isWanted).map(referencesOf)
}

const shownRules = (ruleSet: RuleSet, isWanted: ((rule: Rule | DenyRule) => boolean) | undefined) =>
  isWanted === undefined ? rulesOf(ruleSet) : rulesOf(ruleSet).filter(isWanted)

interface ShownRuleSet {
  href: string
  rules: unknown[]
}

/** Returns how many rules of the page's first rule set were already on earlier pages. */
const partsBefore = ({ within }: Position, first: { href: string } | undefined): number =>
  within !== null && within.href === first?.href ? within.parts : 0

/** Bytes reserved for the paging fields and a cursor. */
const ENVELOPE_BYTES = 2_000

/**
 * Cuts a page of rule sets to the budget. A rule set that is larger than an answer is shown alone, with its rules
 * spread over several pages: `rules_from` is the position of the first shown rule, and the cursor points into the rule
 * set. This way, a rule set of any size can be read completely.
 */
async function pageRuleSets<T extends { href: string }, R extends ShownRuleSet>(
  tool: string,
  filters: object,
  position: Position,
  slice: Slice<T>,
  ruleSets: readonly R[],
  facts: object,
  ctx: CursorContext,
  select: Select,
): Promise<{ rulesets: Partial<R & { rules_from?: number }>[]; paging: Paging }> {
  const { limits } = ctx
  const [first, ...rest] = ruleSets
  if (first === undefined) return finish(await answerPage(tool, filters, slice, ruleSets, ctx, facts))
  const from = partsBefore(position, first)
  const opened: R & { rules_from?: number } =
    from === 0 ? first : { ...first, rules: first.rules.slice(from), rules_from: from }
  const shown = select(opened)
  if (shown.rules === undefined || jsonBytes(shown) + jsonBytes(facts) + ENVELOPE_BYTES <= answerBudget(limits)) {
    return finish(await answerPage(tool, filters, slice, [shown, ...rest.map(select)], ctx, { ...facts, rulesets: [] }))
  }
  const kept = countRowsThatFit(opened.rules, [{ ...shown, rules: [] }, facts, ' '.repeat(ENVELOPE_BYTES)], limits)
  const whole = kept === opened.rules.length
  const next: Position = whole
    ? { offset: slice.start + 1, after: first.href, within: null }
    : { offset: slice.start, after: position.after, within: { href: first.href, parts: from + kept } }
  const more = !whole || slice.more || ruleSets.length > 1
  const cursor = more ? await encodeCursor(ctx, tool, filters, next) : undefined
  return {
    rulesets: [{ ...shown, rules: opened.rules.slice(0, kept) }],
    paging: {
      total_count: slice.totalCount,
      pce_total: slice.pceTotal,
      truncated: more || slice.isWithheld === true,
      ...(cursor !== undefined && { next_cursor: cursor }),
    },
  }
}

function finish<R>({ rows, paging }: { rows: R[]; paging: Paging }) {
  return { rulesets: rows, paging }
}

import { AssumesOut, showAssumed } from '../../schemas/assumes.js'
import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, DetailLevel, StringEnum, Text } from '../../schemas/common.js'
import { LabelReference } from '../../schemas/label-reference.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import { ActorInput, RULE_TYPES, RuleTypeOut, ServiceInput, WrittenOut } from '../../schemas/rule-shapes.js'
import { loadReferenceNames, type ReferenceNames } from '../../domain/inventory/reference-names.js'
import { PolicyVersionOut } from '../../schemas/search-filters.js'
import { readPolicyVersion } from '../../domain/inventory/policy-version.js'
import { FORM, readExpiry } from '../../domain/policy/read-expiry.js'
import { nameRule } from '../../domain/policy/name-rule.js'
import { assumedBy, describeReasons, unknown } from '../../domain/policy/three-valued.js'
import { findRules, type FoundRule, type RuleSearchResult } from '../../domain/rule-search/find-rules.js'
import { asVersion } from '../../domain/rule-search/read-rules.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { nameScopes } from '../answers/hygiene/name-scopes.js'
import { answerPage, decodeCursor, sliceOfList } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { referencesOf, ServicesOut, showPorts, showConditionFields, showRule } from '../answers/show-rules.js'
import { defineTool } from '../define.js'

const NAME = 'find-rules'
const DEFAULT_MAX_RESULTS = 50

const End = (description: string) => Type.Optional(Type.Union([...ActorInput.anyOf], { description }))

const Row = Type.Object({
  rule_type: RuleTypeOut,
  href: Type.String(),
  rule: Text('In one line: sources to destinations, services; conditions'),
  enabled: Type.Boolean(),
  rule_set: Text('Its name, or that of the enforcement boundary'),
  rule_set_href: Text('Of the rule set, or the boundary'),
  rule_set_enabled: Type.Optional(Type.Boolean({ description: 'false: none of its rules is in force' })),
  scope: Text('Of its rule set'),
  unscoped_consumers: Type.Optional(Type.Boolean({ description: 'Sources beyond the scope' })),
  description: Type.Optional(Type.String()),
  expires: Type.Optional(Text('Last day, UTC, if asked for or over; or why it cannot be read')),
  pending: Type.Optional(Text('Change that is not provisioned')),
  updated_at: Type.Optional(Type.String()),
  updated_by: Type.Optional(Text('Name, or href')),
  as: Type.Optional(
    Type.Array(StringEnum(['provider', 'consumer'] as const), { description: 'Where it names what was asked for' }),
  ),
  by_address: Type.Optional(
    Type.Array(StringEnum(['provider', 'consumer'] as const), {
      description: 'Of these, through an IP list alone: the rule is not written to the workload there',
    }),
  ),
  uncertain: Type.Optional(Text('Why it may not be one of them')),
  consumers: Type.Optional(Type.Array(WrittenOut)),
  providers: Type.Optional(Type.Array(WrittenOut)),
  ingress_services: Type.Optional(Type.Array(WrittenOut, { description: 'Services' })),
  egress_services: Type.Optional(Type.Array(WrittenOut)),
})

const output = Type.Object({
  summary: Text('What was found, and how'),
  ...PolicyVersionOut,
  applies_to: Type.Optional(Text('Who that is')),
  ...ServicesOut,
  counts: Counts('Rules found, by type'),
  uncertain_count: Type.Optional(Count('Of these, rules that may not be meant')),
  found_by: StringEnum(['rule_search', 'own'] as const, {
    description: 'rule_search: narrowed by the PCE, each compared here; own: every rule read and compared',
  }),
  not_read: Type.Optional(Type.Array(Type.String(), { description: 'What the answer lacks' })),
  ...AssumesOut,
  rules: Type.Array(Type.Partial(Row), { description: 'By rule set' }),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Rules by what they name, state or author; or all that apply to a workload, address or labels.',
  effect: 'read',
  reads: 'shown',
  toolset: 'explain',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 32,
    and: 'one for each workload that the rules of the page name (50 at most), and for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      actor: End('Named at either end, or an address. By scope: applies_to'),
      provider: End('Destination'),
      consumer: End('Source'),
      service: Type.Optional(
        Type.Union([...ServiceInput.anyOf], { description: 'Named, or port covered', listed: 'Named or covered' }),
      ),
      process: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'In a process or Windows service name',
          listed: 'Or Windows service',
        }),
      ),
      text: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'In a description or rule set name',
          listed: 'In description or rule set',
        }),
      ),
      expires_before: Type.Optional(
        Type.String({
          minLength: 1,
          description:
            'Ends before this day, even one to come, or today (expired): by [expires: YYYY-MM-DD] in the description',
          listed: 'Ends before this day, or today',
        }),
      ),
      rule_type: Type.Optional(StringEnum(RULE_TYPES, { description: 'Rules of this type', listed: '' })),
      enabled: Type.Optional(
        Type.Boolean({
          description: 'Rule and rule set. Default true with applies_to, else both',
          listed: 'With its rule set',
        }),
      ),
      pending: Type.Optional(
        StringEnum(['create', 'update', 'delete', 'any', 'none'] as const, {
          description: 'Change not provisioned',
          listed: 'Not provisioned',
        }),
      ),
      policy_version: Type.Optional(
        Type.Union([Type.String(), Type.Integer()], {
          description: 'draft (default), active, number',
        }),
      ),
      author: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'Made or changed it: user name, full name or href',
          listed: 'Made or changed it',
        }),
      ),
      applies_to: Type.Optional(
        Type.Union([Type.Array(LabelReference, { minItems: 1, maxItems: 20 }), Type.String({ minLength: 1 })], {
          description:
            'workload:NAME, name or href of one, address, or labels: with scopes, groups and IP lists resolved',
          listed: 'Workload, address or labels; scopes and groups resolved',
        }),
      ),
      as: Type.Optional(
        StringEnum(['provider', 'consumer'] as const, {
          description: 'Of applies_to; default both',
          listed: '',
        }),
      ),
      detail_level: DetailLevel('full: ends and services with hrefs'),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { actor: 'app=payments' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const {
      cursor,
      max_results: maxResults = DEFAULT_MAX_RESULTS,
      fields,
      detail_level: detail = 'standard',
      ...question
    } = args
    const select = selectFields(fields, Row)
    const version = readPolicyVersion(question.policy_version)
    const position = await decodeCursor(ctx, NAME, question, cursor)
    const {
      actor,
      provider,
      consumer,
      rule_type: type,
      applies_to: appliesTo,
      expires_before: endsBefore,
      ...rest
    } = question
    const result = await findRules(ctx, {
      ...rest,
      version,
      ends: {
        ...(actor !== undefined && { actor }),
        ...(provider !== undefined && { provider }),
        ...(consumer !== undefined && { consumer }),
      },
      types: type && [type],
      endsBefore,
      appliesTo,
    })
    const { found } = result
    const keyed = found.map((one) => ({ ...one, href: one.rule.href }))
    const slice = sliceOfList(keyed, position, maxResults)
    const names = await loadReferenceNames(
      ctx.pce,
      slice.items.map(({ rule, holder }) => [referencesOf(rule), holder.scopes]),
      ctx,
      version,
      [],
      true,
    )
    const rows = slice.items.map((one) =>
      select({ ...showFound(one, names, result, version, detail), ...showEnd(one, endsBefore, ctx.now()) }),
    )
    const namesServices =
      fields === undefined || fields.some((field) => field === 'rule' || field.endsWith('_services'))
    const servicesOf = (items: readonly FoundRule[]) =>
      namesServices
        ? showPorts(
            items.map(({ rule }) => rule),
            names,
            ctx.limits,
          )
        : {}
    const uncertain = found.filter((one) => one.uncertain.length > 0).length
    const envelope = {
      summary: `${summarise(result, version, uncertain, rest.as)}${found.length === 0 ? adviseOnNone(question) : ''}`,
      policy_version: String(version),
      ...(result.target !== undefined && { applies_to: result.target }),
      counts: countTypes(found),
      ...(uncertain > 0 && { uncertain_count: uncertain }),
      found_by: result.engine,
      ...(result.unread.length > 0 && { not_read: result.unread }),
      ...showAssumed([
        ...assumedBy(found.map((one) => unknown(...one.uncertain))),
        ...(result.engine === 'rule_search' ? ['P96'] : []),
      ]),
    }
    const page = await answerPage(NAME, question, slice, rows, ctx, { ...envelope, ...servicesOf(slice.items) })
    const services = servicesOf(slice.items.slice(0, page.rows.length))
    return { ...envelope, ...services, rules: page.rows, ...page.paging }
  },
})

/** Shows when a rule ends, if the caller asked about ends, if the end is past, or if it cannot be read. */
function showEnd({ rule }: FoundRule, asked: string | undefined, now: number): { expires?: string } {
  const end = readExpiry(rule.description)
  if (end.kind === 'unclear') return { expires: `unclear: ${end.why}` }
  return end.kind === 'ends' && (asked !== undefined || end.over <= now) ? { expires: end.date } : {}
}

/** Returns sentences that say what an empty answer does not mean, given what was asked. */
function adviseOnNone(asked: {
  actor?: unknown
  provider?: unknown
  consumer?: unknown
  applies_to?: unknown
  expires_before?: unknown
}): string {
  const ends = (['actor', 'provider', 'consumer'] as const).filter((end) => asked[end] !== undefined)
  const scopes = ` Scopes of rule sets are not searched for ${ends.join(' and ')}: applies_to (labels, a workload or an address) counts them, too.`
  return [
    ends.length > 0 && asked.applies_to === undefined ? scopes : '',
    asked.expires_before === undefined
      ? ''
      : ` Ends are found by ${FORM} in the description of a rule; a rule without it counts as one without an end.`,
  ].join('')
}

const AS = { providers: 'provider', consumers: 'consumer' } as const

function showFound(
  { type, rule, holder, isBoundary, sides, byAddress, uncertain }: FoundRule,
  names: ReferenceNames,
  { authors }: RuleSearchResult,
  version: 'draft' | 'active' | number,
  detail: 'standard' | 'full',
): Static<typeof Row> {
  const { consumers, providers, ingress_services: ingress, egress_services: egress } = showRule(rule, type, names)
  const by = rule.updated_by?.href
  return {
    rule_type: type,
    href: asVersion(rule.href, version),
    rule: nameRule(rule, names),
    enabled: rule.enabled,
    rule_set: isBoundary ? `enforcement boundary ${holder.name}` : holder.name,
    rule_set_href: asVersion(holder.href, version),
    ...(holder.enabled === false && { rule_set_enabled: false }),
    scope: nameScopes(holder.scopes, names),
    ...(rule.unscoped_consumers === true && !isBoundary && { unscoped_consumers: true }),
    ...(rule.description && { description: rule.description }),
    ...(rule.update_type != null && { pending: rule.update_type }),
    ...(rule.updated_at != null && { updated_at: rule.updated_at }),
    ...(by !== undefined && { updated_by: authors.nameOf(by) ?? by }),
    ...(sides !== undefined && { as: sides.map((side) => AS[side]) }),
    ...(byAddress.length > 0 && { by_address: byAddress.map((side) => AS[side]) }),
    ...(uncertain.length > 0 && { uncertain: describeReasons(uncertain) }),
    ...(detail === 'full' && { consumers, providers, ingress_services: ingress }),
    ...(detail === 'full' && egress !== undefined && { egress_services: egress }),
    ...(detail === 'full' && showConditionFields(rule, names)),
  }
}

function countTypes(found: readonly FoundRule[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { type } of found) counts[type] = (counts[type] ?? 0) + 1
  return counts
}

function summarise(
  { found, searched, engine, instead, target }: RuleSearchResult,
  version: 'draft' | 'active' | number,
  uncertain: number,
  as: 'provider' | 'consumer' | undefined,
): string {
  const of = typeof version === 'number' ? `policy version ${version}` : `the ${version} policy`
  const doubt = uncertain === 0 ? '' : ` (${uncertain} of them uncertain)`
  const apply = found.length === 1 ? 'applies' : 'apply'
  const who = target === undefined ? '' : ` that ${apply} to ${target}${as === undefined ? '' : ` as ${as}`}`
  const how =
    engine === 'rule_search'
      ? 'narrowed by the rule search of the PCE'
      : `out of ${searched ?? 0} compared here${instead === undefined ? '' : `, since ${instead}`}`
  return `${countOf(found.length, 'rule')}${doubt} of ${of}${who}, ${how}.`
}

import { Type, type Static } from '@sinclair/typebox'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { pagingInput } from '../../schemas/paging.js'
import { CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { VersionChangeOut, type JudgedChange } from '../../schemas/policy-changes.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { type PolicyDifference, comparePolicies, describeDifference } from '../../domain/history/compare-policies.js'
import { loadPolicy } from '../../domain/history/load-policy.js'
import { selectDifferences } from '../../domain/history/select-differences.js'
import { type ChosenVersion, chooseVersion, loadVersions } from '../../domain/history/read-versions.js'
import { readPolicyVersion } from '../../domain/inventory/policy-version.js'
import { loadAuthorNames } from '../../domain/inventory/reference-names.js'
import { rankForReview } from '../../domain/policy/judge-change.js'
import { capital } from '../../domain/text/capital.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { BRIEFLY, briefChange, shareBytes } from '../answers/brief-change.js'
import { answerBudget } from '../answers/byte-budget.js'
import { describeEffects, explainWords } from '../answers/explain-changes.js'
import { type Slice, answerPage, decodeCursor, sliceOfList } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { VersionOut, showVersion, showVersionChange } from '../answers/show-versions.js'
import { trimChange } from '../answers/trim-change.js'

const NAME = 'compare-policy-versions'
const DEFAULT_MAX_RESULTS = 100
/**
 * Up to this number of changes, all effects are determined before the page is cut, so that the worst change can come
 * first. With more changes, only the effects of those on the page are determined.
 */
const MOST_RANKED = 500
/** Number of bytes reserved for everything except the changes: other fields, explanations of effects, and a cursor. */
const ENVELOPE_BYTES = 3_500

const VersionInput = (description: string) => Type.Union([Type.String(), Type.Integer()], { description })

/** The words for these arguments have always been accepted in upper and lower case. */
const readVersion = (asked: string | number, argument: string) =>
  readPolicyVersion(typeof asked === 'string' ? asked.toLowerCase() : asked, argument)

const Side = (description: string) =>
  Type.Object(
    { ...Type.Partial(VersionOut).properties, is: Type.String({ description: 'Number, draft or active' }) },
    { description },
  )

const output = Type.Object({
  from: Side('What is compared with; the draft has no facts'),
  to: Side('What has changed'),
  total_changes: Type.Integer({ description: 'Objects that differ and match' }),
  total_unfiltered: Type.Integer({ description: 'All' }),
  created_count: Type.Integer({ description: 'Not in the first version' }),
  updated_count: Type.Integer({ description: 'In both, and different' }),
  deleted_count: Type.Integer({ description: 'Not in the second version' }),
  summary: Type.String({ description: 'What the changes do to permitted traffic, and what to review' }),
  meanings: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Of the words for effects and risks' }),
  ),
  ...AssumesOut,
  changes: Type.Array(Type.Partial(VersionChangeOut), {
    description: `The worst first; more than ${MOST_RANKED} by type`,
  }),
  left_out: Type.Optional(Type.String({ description: 'What each change lacks' })),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
  not_compared: Type.Optional(Type.String({ description: 'What the answer does not cover' })),
})

export default defineTool({
  name: NAME,
  summary: 'What changed between two policy versions: wider or narrower, what to review.',
  effect: 'read',
  reads: 'everything',
  toolset: 'history',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 48,
    and: 'two for each workload that changed rules name (50 at most), and for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      from: VersionInput('Number, active, draft'),
      to: Type.Optional(VersionInput('Default active')),
      resource_type: Type.Optional(
        StringEnum([...CHANGE_SUBSET_TYPES, 'all'] as const, {
          default: 'all',
          description: 'Only objects of this type',
          listed: '',
        }),
      ),
      href: Type.Optional(
        Type.String({ description: 'Only this object; a rule is its rule set', listed: 'A rule is its rule set' }),
      ),
      name: Type.Optional(
        Type.String({ minLength: 1, description: 'Only objects with this exact name, in either', listed: '' }),
      ),
      author: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'Only what this user edited last, by exact name or href',
          listed: 'Last editor',
        }),
      ),
      detail_level: DetailLevel('full: all fields of new and deleted rules and objects'),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { from: '1', to: 'draft' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, resource_type: type = 'all' } = args
    const { href, name, author, detail_level: detail = 'standard' } = args
    const select = selectFields(fields, VersionChangeOut)
    const asked = { from: readVersion(args.from, 'from'), to: readVersion(args.to ?? 'active', 'to') }
    const list = await loadVersions(ctx.pce, ctx.signal)
    const from = chooseVersion(list, asked.from)
    const to = chooseVersion(list, asked.to)
    if (from.selector === to.selector) {
      const text = `from and to are the same: ${from.name}.`
      throw new ToolError('invalid_argument', text, { argument: 'to', version: from.selector })
    }
    // The cursor is bound to these filters. They contain version numbers instead of `active`, so that it becomes
    // invalid when another version becomes active.
    const filters = { from: from.selector, to: to.selector, type, href, name, author, detail }
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const before = await loadPolicy(ctx.pce, from.selector, ctx.signal)
    const after = await loadPolicy(ctx.pce, to.selector, ctx.signal)
    const difference = await comparePolicies(before, after, ctx.signal)
    const { wanted, note } = await selectDifferences(ctx, difference, {
      ...(type !== 'all' && { type }),
      ...(href !== undefined && { href }),
      ...(name !== undefined && { name }),
      ...(author !== undefined && { author }),
    })
    const count = (kind: string) => wanted.filter(({ change }) => change.update_type === kind).length
    const newest = list.versions[0]?.version
    const [fromShown, toShown] = await showSides(ctx, [from, to], newest)
    const facts = {
      from: fromShown,
      to: toShown,
      total_changes: wanted.length,
      total_unfiltered: difference.objects.length,
      created_count: count('create'),
      updated_count: count('update'),
      deleted_count: count('delete'),
      ...sayNotCompared([from, to]),
    }
    const since = `in ${from.name}`
    if (wanted.length === 0) {
      const other = difference.objects.length
      const summary =
        other === 0
          ? `${capital(from.name)} and ${to.name} are the same.`
          : (note ??
            `Nothing ${describeAsked({ type, ...(href !== undefined && { href }), ...(name !== undefined && { name }) })} differs; ${countOf(other, 'other object')} ${other === 1 ? 'does' : 'do'}.`)
      return { ...facts, summary, changes: [], truncated: false }
    }
    const slice = await judgePage(ctx, difference, wanted, (all) => sliceOfList(all, position, maxResults))
    const most = answerBudget(ctx.limits) - ENVELOPE_BYTES
    const whole = slice.items.map(({ change, object }) =>
      detail === 'full' ? change : briefChange(change, object.change.update_type),
    )
    const say = (shown: readonly JudgedChange[]) => ({
      ...facts,
      summary: summarise(shown, wanted.length, [from, to], since),
      ...(detail === 'standard' && { left_out: [BRIEFLY, ...(note === undefined ? [] : [note])].join(' ') }),
      meanings: explainWords(shown, since),
      ...showAssumedBy(slice.items.slice(0, shown.length).map(({ change }) => change)),
    })
    const show = (change: JudgedChange, at: number) =>
      select(showVersionChange(change, (slice.items[at] as Judged).object.change.update_type, since))
    const shares =
      detail === 'full' ? whole.map(() => most) : shareBytes(whole.map(show), { ...say(whole), changes: [] }, most)
    const changes = whole.map((change, at) => trimChange(change, shares[at] as number))
    const rows = changes.map(show)
    const { rows: fit, paging } = await answerPage(NAME, filters, slice, rows, ctx, { ...say(changes), changes: [] })
    const { truncated, next_cursor: next } = paging
    return {
      ...say(changes.slice(0, fit.length)),
      changes: fit,
      truncated,
      ...(next !== undefined && { next_cursor: next }),
    }
  },
})

function summarise(
  shown: readonly JudgedChange[],
  total: number,
  [from, to]: [ChosenVersion, ChosenVersion],
  since: string,
) {
  const what = shown.length === total ? countOf(total, 'object') : `${shown.length} of ${countOf(total, 'object')}`
  const cut = shown.filter(({ omitted }) => omitted !== undefined).length
  const more = cut === 0 ? '' : ` ${cut} of them cut, see omitted: by href alone one is shown further.`
  return `${what} changed from ${from.name} to ${to.name}. ${describeEffects(shown, since)}${more}`
}

/** Returns a phrase for the filters of the comparison. */
const describeAsked = ({ type, href, name }: { type: string; href?: string; name?: string }) =>
  [type !== 'all' && `of type ${type}`, href !== undefined && quote(href), name !== undefined && `named ${quote(name)}`]
    .filter(Boolean)
    .join(' ')

type Changed = PolicyDifference['objects'][number]
interface Judged {
  href: string
  object: Changed
  change: JudgedChange
}

/**
 * Describes the changes of one page. If the effects of all changes can be determined together, the worst changes come
 * first; otherwise the changes are sorted by type.
 */
async function judgePage(
  ctx: ToolContext<true>,
  difference: PolicyDifference,
  wanted: readonly Changed[],
  cut: <T extends { href: string }>(all: readonly T[]) => Slice<T>,
): Promise<Slice<Judged>> {
  const judge = async (objects: readonly Changed[]): Promise<Judged[]> => {
    const described = await describeDifference(ctx, difference, objects)
    return described.map((change, at) => ({ href: change.href, object: objects[at] as Changed, change }))
  }
  if (wanted.length <= MOST_RANKED) {
    const all = await judge(wanted)
    return cut(all.sort((a, b) => rankForReview(a.change) - rankForReview(b.change)))
  }
  const slice = cut(wanted.map((object) => ({ href: object.change.href, object })))
  return { ...slice, items: await judge(slice.items.map(({ object }) => object)) }
}

/** Returns the facts about both versions, as far as they are known. */
async function showSides(ctx: ToolContext<true>, chosen: readonly ChosenVersion[], newest: number | undefined) {
  const authors = chosen.flatMap(({ facts }) => facts?.created_by?.href ?? [])
  const names = await loadAuthorNames(ctx.pce, authors, ctx.signal)
  return chosen.map(({ selector, facts }) => ({
    is: String(selector),
    ...(facts !== null && showVersion(facts, newest, (href) => names.get(href))),
  })) as [Static<typeof output>['from'], Static<typeof output>['to']]
}

/** Returns a note that secure connect gateways cannot be compared, if either version has any. */
function sayNotCompared(chosen: readonly ChosenVersion[]): { not_compared?: string } {
  const counts = chosen.map(({ facts }) => facts?.object_counts?.secure_connect_gateways)
  if (counts.every((count) => count === 0)) return {}
  const isKnown = counts.some((count) => count !== undefined && count > 0)
  return isKnown ? { not_compared: 'Secure connect gateways are not read.' } : {}
}

import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, Nullable, StringEnum } from '../../schemas/common.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import type { Limits } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { readEvidence, type AppliedRule, type TwinEvidence } from '../../domain/hygiene/evidence-of-twins.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import type { ToolContext } from '../../domain/call.js'
import type { Machine } from '../../domain/hygiene/known-machines.js'
import type { ReferenceNames } from '../../domain/inventory/reference-names.js'
import { ambiguousName } from '../../domain/inventory/tell-apart.js'
import { withUserGroups } from '../../domain/policy/name-references.js'
import { nameRuleIn } from '../../domain/policy/name-rule.js'
import { describeReasons, isUnknown, type Answer } from '../../domain/policy/three-valued.js'
import { compareTexts, nearNames } from '../../domain/text/compare-texts.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote, trimBlanks } from '../../domain/text/escape-text.js'
import { chooseWindow, windowInput, type TrafficWindow } from '../../domain/traffic/traffic-window.js'
import {
  advise,
  findLists,
  findStale,
  STALE_ADVICE,
  type Advised,
  type ListsOf,
  type StaleFound,
  type StaleVen,
  type Twin,
} from '../../domain/ven-actions/find-stale.js'
import { countRowsThatFit, fitRow, mostRowsThatFit } from '../answers/byte-budget.js'
import { KIND_WORDS } from '../answers/explain/tell-verdict.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'
import { defineTool } from '../define.js'

const NAME = 'find-stale-vens'
const DEFAULT_DAYS = 7
const DEFAULT_WINDOW = 7
const DEFAULT_RESULTS = 8
/** Number of VENs whose evidence is read together. One traffic query names all their addresses. */
const BLOCK = 50
const MOST_NAMES = 3
const DAY_MS = 86_400_000
/** Number of bytes that are kept free for a cursor. */
const CURSOR_BYTES = 400
const Text = (description: string) => Nullable(Type.String({ description }))
const Known = (description: string) => Nullable(Type.Integer({ description }))

/** The schema of a list of names that belongs to a count in the same row. */
const Names = (description: string) => Type.Optional(Type.Array(Type.String(), { description }))

const Row = Type.Object({
  name: Type.String(),
  href: Type.String({ description: 'Of the VEN' }),
  workload_href: Text('null: the PCE lists no workload of it'),
  advice: StringEnum(STALE_ADVICE, {
    description: 'Not done here; look: its host may live, or something is not known',
  }),
  why: Type.String({ description: 'The reason' }),
  first: Type.Optional(Type.Array(Type.String(), { description: 'What hangs on it, to be settled before' })),
  last_heartbeat_at: Type.String({ description: 'Last heard of' }),
  silent_days: Count('Whole days since'),
  status: Text('As the PCE has it'),
  online: Nullable(
    Type.Boolean({ description: 'As the PCE counts it; offline ones are left out of the policy of others' }),
  ),
  enforcement_mode: Text('Of its workload: what it enforces if the host lives'),
  labels: Type.Array(Type.String(), { description: 'key=value' }),
  rules_naming_it: Known('By itself, in draft or active; null, here and below: not known'),
  named_in: Names('Their rule sets and boundaries'),
  rules_applying: Known('In force, in any way: by address, too, without Any'),
  rules: Names('Which'),
  rules_undecided: Type.Optional(Count('In force, not known whether they apply')),
  undecided_rules: Names('Which, and why'),
  rules_only_it: Known('Of these, a side of which reaches nobody else'),
  rules_only_it_undecided: Type.Optional(Count('Of which that is not known')),
  virtual_services: Known('Bound to it'),
  ip_lists: Known('Of the draft that have its address, without Any'),
  ip_list_names: Names('Which'),
  ip_lists_undecided: Type.Optional(Count('Of which that is not known')),
  undecided_ip_lists: Names('Which, and why'),
  ip_lists_naming: Names('Those that name its address alone'),
  traffic_since: Nullable(
    Type.Object(
      {
        from: Count('Connections from it, whoever reported them'),
        answered: Count('To it, and answered with data'),
        to: Count('To it in all'),
        undecided: Count('Of an address that other workloads have as well'),
        last_seen: Text('UTC'),
      },
      { description: 'In the window, more than an hour after it was last heard of' },
    ),
  ),
  same_address: Names('Other workloads with its address'),
  omitted: Type.Optional(Type.String({ description: 'What was cut' })),
})

const output = Type.Object({
  summary: Type.String({ description: 'What was found' }),
  vens: Counts('vens that match; heard, stale, uninstalled; not_known: no heartbeat is told, so not called stale'),
  counts: Counts('Stale VENs that were examined, by advice; alive: hosts that live, for certain; left: not examined'),
  stale: Type.Array(Row, {
    description: 'Hosts that live first, then those to look at; of each list of names the first 3, and all with `ven`',
  }),
  truncated: PagingOutput.truncated,
  next_cursor: PagingOutput.next_cursor,
  window: Type.Optional(TrafficCounts.window),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What is not known' })),
})

interface Judged extends Advised {
  ven: StaleVen
  evidence: TwinEvidence | null
  lists: ListsOf | null
}

/**
 * The fields of a row that list the names of what was counted, in the order in which the pages of one VEN show them.
 */
const NAMED = [
  'rules',
  'undecided_rules',
  'named_in',
  'ip_list_names',
  'undecided_ip_lists',
  'ip_lists_naming',
  'same_address',
] as const
type Named = Record<(typeof NAMED)[number], readonly (() => string)[]>

export default defineTool({
  name: NAME,
  summary: 'VENs that fell silent, what hangs on each, whether its host lives, and what to do.',
  effect: 'read',
  reads: 'everything',
  toolset: 'vens-plus',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 60,
    and: 'one for each label group, for each user group that the rules shown name (50 at most), and two for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      silent_days: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 3650, default: DEFAULT_DAYS, description: 'Without a heartbeat for' }),
      ),
      labels: LabelsFilter,
      ven: Type.Optional(
        Type.String({ minLength: 1, description: 'Exact name or href of one: all that hangs on it, by name' }),
      ),
      ...windowInput(DEFAULT_WINDOW),
      max_results: pagingInput(DEFAULT_RESULTS).max_results,
      cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
    },
    { additionalProperties: false },
  ),
  output,
  example: { silent_days: 14, labels: ['env=prod'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: most = DEFAULT_RESULTS, ...question } = args
    const { silent_days: days = DEFAULT_DAYS } = question
    const now = ctx.now()
    const { window, period } = chooseWindow(now, question, DEFAULT_WINDOW)
    const { offset, within } = await decodeCursor(ctx, NAME, question, cursor)
    ctx.progress({ progress: 0, total: 2, message: 'Reading VENs and workloads' })
    const found = await findStale(ctx, question.labels, now - days * DAY_MS)
    if (args.ven !== undefined) found.stale = [findOne(found.stale, args.ven)]
    const begin = Math.floor(offset / BLOCK) * BLOCK
    const block = found.stale.slice(begin, begin + BLOCK)
    ctx.progress({ progress: 1, total: 2, message: 'Reading what hangs on them' })
    const { judged, warnings, names: known } = await judge(ctx, block, found.everyone, window)
    const shown = judged.slice(offset - begin, offset - begin + most)
    const mostNamed = args.ven === undefined ? MOST_NAMES : Infinity
    const rules = shown.flatMap(({ evidence }) => rulesShown(evidence, mostNamed))
    const names = await withUserGroups(ctx, known, rules)
    const left = Math.max(0, found.stale.length - begin - block.length)
    const said = [...warnOf(found, left), ...warnings]
    const counts = {
      ...Object.fromEntries(STALE_ADVICE.map((word) => [word, judged.filter(({ advice }) => advice === word).length])),
      alive: judged.filter(({ isAlive }) => isAlive).length,
      left,
    }
    const facts = {
      summary:
        args.ven === undefined || judged[0] === undefined
          ? summarise(found, counts, days, period)
          : summariseOne(judged[0], now),
      vens: { ...found.counts, stale: found.stale.length },
      counts,
    }
    const tail = {
      ...(block.length > 0 && { window }),
      ...(said.length > 0 && { warnings: said }),
    }
    const envelope = [facts, tail, ' '.repeat(CURSOR_BYTES)]
    if (args.ven !== undefined && shown[0] !== undefined) {
      const { row, next } = cutOne(shown[0], names, within?.parts ?? 0, now, envelope, ctx.limits)
      const position = { offset: 0, after: null, within: { href: shown[0].ven.href, parts: next ?? 0 } }
      const more = next === null ? undefined : await encodeCursor(ctx, NAME, question, position)
      return {
        ...facts,
        stale: [row],
        truncated: next !== null,
        ...(more !== undefined && { next_cursor: more }),
        ...tail,
      }
    }
    const page = shown.map((one) => fitRow({ ...showStale(one, now), ...firstNames(one, names) }, ctx.limits))
    const kept = countRowsThatFit(page, envelope, ctx.limits)
    const next = { offset: offset + kept, after: null, within: null }
    const more = next.offset < found.stale.length ? await encodeCursor(ctx, NAME, question, next) : undefined
    return {
      ...facts,
      stale: page.slice(0, kept),
      truncated: more !== undefined,
      ...(more !== undefined && { next_cursor: more }),
      ...tail,
    }
  },
})

/** Reads what depends on the VENs of a block, and sorts the VENs. The most urgent come first. */
async function judge(ctx: ToolContext<true>, vens: StaleVen[], everyone: readonly Machine[], window: TrafficWindow) {
  const now = ctx.now()
  const machines = vens.flatMap(({ machine }) => machine ?? [])
  const heardAt = new Map(vens.map(({ machine, heardAt: at }) => [machine?.href ?? '', at]))
  const gone = { everyone, silentSince: (href: string) => heardAt.get(href) ?? now }
  const asked = { window, name: 'mcp-stale-vens' }
  const isNone = machines.length === 0
  const read = isNone ? null : await readEvidence(ctx, machines, await loadLabels(ctx.pce, ctx), asked, gone)
  const lists = isNone ? new Map<string, ListsOf>() : await findLists(ctx, machines)
  const judged = vens.map((ven): Judged => {
    const href = ven.machine?.href ?? ''
    const evidence = ven.machine === null ? null : (read?.of(href) ?? null)
    const own = typeof lists === 'string' ? null : (lists.get(href) ?? null)
    return { ven, evidence, lists: own, ...advise(ven, evidence, own, now) }
  })
  const warnings = [...(read?.warnings ?? []), ...(typeof lists === 'string' ? [lists] : [])]
  return { judged: judged.sort(mostUrgentFirst), warnings, names: read?.names ?? (() => ({})) }
}

/**
 * Returns the stale VEN that has this name or href, or whose workload has it.
 * @throws {ToolError} not_found with similar names, or ambiguous_name with candidates.
 */
function findOne(stale: readonly StaleVen[], asked: string): StaleVen {
  const wanted = trimBlanks(asked)
  const namesOfVen = ({ name, href, machine }: StaleVen) =>
    [name, href, machine?.ownName, machine?.hostname, machine?.href].filter((one) => one != null)
  const [only, ...others] = stale.filter((ven) => namesOfVen(ven).includes(wanted))
  if (only !== undefined && others.length === 0) return only
  const details = { argument: 'ven', ven: wanted }
  if (only !== undefined) {
    const all = [only, ...others].map(({ href, name, machine }) => ({
      href,
      name,
      hostname: machine?.hostname ?? null,
    }))
    throw ambiguousName(`${all.length} stale VENs are named ${quote(wanted)}.`, all, details)
  }
  const near = nearNames(
    wanted,
    stale.map(({ name }) => name),
  )
  const text = `No VEN named ${quote(wanted)} fell silent, among those asked about.`
  throw new ToolError('not_found', text, { ...details, near_names: near })
}

const mostUrgentFirst = (a: Judged, b: Judged): number =>
  Number(b.isAlive) - Number(a.isAlive) ||
  STALE_ADVICE.indexOf(a.advice) - STALE_ADVICE.indexOf(b.advice) ||
  a.ven.heardAt - b.ven.heardAt ||
  compareTexts(a.ven.href, b.ven.href)

/** Shows a VEN without the names of the objects that depend on it. */
function showStale({ ven, evidence, lists, advice, why, first }: Judged, now: number): Static<typeof Row> {
  const { machine } = ven
  const { rules, named, bindings, alone, later } = evidence ?? NOTHING
  return {
    name: ven.name,
    href: ven.href,
    workload_href: machine?.href ?? null,
    advice,
    why,
    ...(first.length > 0 && { first }),
    last_heartbeat_at: new Date(ven.heardAt).toISOString(),
    silent_days: Math.floor((now - ven.heardAt) / DAY_MS),
    status: ven.status,
    online: ven.online,
    enforcement_mode: ven.mode,
    labels: (machine?.labels ?? []).map(({ key, value, href }) =>
      key == null || value == null ? href : `${key}=${value}`,
    ),
    rules_naming_it: named,
    rules_applying: rules?.applying ?? null,
    ...((rules?.undecided ?? 0) > 0 && { rules_undecided: rules!.undecided }),
    rules_only_it: alone?.rules.size ?? null,
    ...((alone?.undecided ?? 0) > 0 && { rules_only_it_undecided: alone!.undecided }),
    virtual_services: bindings,
    ip_lists: lists?.names.length ?? null,
    ...((lists?.undecided.length ?? 0) > 0 && { ip_lists_undecided: lists!.undecided.length }),
    traffic_since: later && {
      from: later.from,
      answered: later.answered,
      to: later.to,
      undecided: later.undecided,
      last_seen: later.last === null ? null : new Date(later.last).toISOString(),
    },
  }
}

/** The evidence for a VEN without a workload, about which nothing is known. */
const NOTHING: TwinEvidence = {
  rules: null,
  applied: null,
  named: null,
  namedIn: null,
  bindings: null,
  traffic: null,
  alone: null,
  later: null,
}

/**
 * Returns the rules that apply to a VEN and, apart from them, those that may apply. The first ones select nothing else.
 */
function rulesOf(evidence: TwinEvidence | null) {
  const { applied, alone } = evidence ?? NOTHING
  const isLonely = ({ rule }: AppliedRule) => alone?.rules.has(rule.href) === true
  const certain = (applied ?? []).filter(({ applies }) => !isUnknown(applies))
  return {
    certain: [...certain.filter(isLonely), ...certain.filter((one) => !isLonely(one))],
    undecided: (applied ?? []).filter(({ applies }) => isUnknown(applies)),
    isLonely,
  }
}

/** Returns the rules that an answer names: at most `most` certain ones and as many undecided ones. */
function rulesShown(evidence: TwinEvidence | null, most: number) {
  const { certain, undecided } = rulesOf(evidence)
  return [...certain.slice(0, most), ...undecided.slice(0, most)].map(({ rule }) => rule)
}

/**
 * Lists the objects that depend on a VEN, as functions that return their descriptions, because few of them are shown.
 */
function listNamed({ ven, evidence, lists }: Judged, names: ReferenceNames): Named {
  const { certain, undecided, isLonely } = rulesOf(evidence)
  const nameOf = ({ type, rule, ruleSet, isByAddress }: AppliedRule) =>
    `${KIND_WORDS[type]} ${nameRuleIn(rule, ruleSet, names)}${isByAddress ? ', by its address' : ''}`
  const asIs = (texts: readonly string[]) => texts.map((text) => () => text)
  return {
    rules: certain.map((one) => () => `${nameOf(one)}${isLonely(one) ? ', which reaches nobody else' : ''}`),
    undecided_rules: undecided.map((one) => () => `${nameOf(one)}: ${reasonOf(one.applies)}`),
    named_in: asIs(evidence?.namedIn ?? []),
    ip_list_names: asIs(lists?.names ?? []),
    undecided_ip_lists: (lists?.undecided ?? []).map(
      ({ name, because }) =>
        () =>
          `${quote(name)}: ${reasonOf(because)}`,
    ),
    ip_lists_naming: asIs(lists?.naming ?? []),
    same_address: ven.twins.map((twin) => () => describeTwin(twin)),
  }
}

const reasonOf = (answer: Answer): string => (isUnknown(answer) ? describeReasons(answer.unknown) : '')

/** Returns the first names of each list of a VEN, with the number of those that are left out. */
function firstNames(one: Judged, names: ReferenceNames): Partial<Record<keyof Named, string[]>> {
  const lists = listNamed(one, names)
  return Object.fromEntries(
    NAMED.filter((field) => lists[field].length > 0).map((field) => {
      const all = lists[field]
      const more = all.length - MOST_NAMES
      return [field, [...all.slice(0, MOST_NAMES).map((text) => text()), ...(more > 0 ? [`${more} more`] : [])]]
    }),
  )
}

/**
 * Shows one VEN with as many names as fit, beginning at a position in the list of all names.
 * @returns the row, and the position of the next page, or null if this is the last page.
 */
function cutOne(
  one: Judged,
  names: ReferenceNames,
  from: number,
  now: number,
  envelope: unknown[],
  limits: Limits,
): { row: Static<typeof Row>; next: number | null } {
  const lists = listNamed(one, names)
  const all = NAMED.flatMap((field) => lists[field].map((text) => ({ field, text })))
  const row: Static<typeof Row> = showStale(one, now)
  // Each name is measured together with the name of its field, because most lists are short.
  const most = mostRowsThatFit(limits)
  const texts = all.slice(from, from + most).map(({ field, text }) => ({ field, text: text() }))
  const kept = countRowsThatFit(texts, [row, ...envelope], limits)
  for (const { field, text } of texts.slice(0, kept)) (row[field] ??= []).push(text)
  return { row, next: from + kept < all.length ? from + kept : null }
}

function describeTwin({ name, managed, isNamesake, isHeard }: Twin): string {
  const heard = isHeard === null ? 'not known when heard of' : isHeard ? 'heard of since' : 'silent for longer'
  return `${name} (${managed ? `VEN ${heard}` : 'no VEN'}${isNamesake ? ', same host name' : ''})`
}

function warnOf({ counts, unknown, stale }: StaleFound, left: number): string[] {
  const more = counts.not_known > unknown.length ? ' …' : ''
  return [
    ...(counts.not_known > 0
      ? [`Of ${countOf(counts.not_known, 'VEN')} no heartbeat is known: ${unknown.map(quote).join(', ')}${more}.`]
      : []),
    ...(left > 0
      ? [`Of ${countOf(stale.length, 'stale VEN')}, ${left} were not examined yet: next_cursor leads to them.`]
      : []),
  ]
}

function summariseOne({ ven, advice, why }: Judged, now: number): string {
  const silent = countOf(Math.floor((now - ven.heardAt) / DAY_MS), 'day')
  const what = { look: 'to look at', unpair: 'may be unpaired', keep: 'to keep' }[advice]
  return `${quote(ven.name)} without a heartbeat for ${silent}: ${what}. ${why} Nothing is unpaired here.`
}

function summarise({ counts, stale }: StaleFound, by: Record<string, number>, days: number, period: string): string {
  const silent = `${countOf(stale.length, 'VEN')} of ${counts.vens} without a heartbeat for ${countOf(days, 'day')}`
  if (stale.length === 0) return `${silent}.`
  const parts = [
    `${by['look']} to look at`,
    `${by['unpair']} that may be unpaired`,
    ...((by['keep'] ?? 0) > 0 ? [`${by['keep']} to keep`] : []),
  ]
  const alive =
    (by['alive'] ?? 0) > 0 ? ` Of these, ${by['alive']} run on hosts that live, by traffic of ${period}.` : ''
  return `${silent}: ${parts.join(', ')}.${alive} Nothing is unpaired here.`
}

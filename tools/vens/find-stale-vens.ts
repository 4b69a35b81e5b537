import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, Nullable, StringEnum } from '../../schemas/common.js'
import { LabelsFilter } from '../../schemas/label-reference.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { readEvidence, type TwinEvidence } from '../../domain/hygiene/evidence-of-twins.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import type { ToolContext } from '../../domain/call.js'
import type { Machine } from '../../domain/hygiene/known-machines.js'
import { compareTexts } from '../../domain/text/compare-texts.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
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
import { countRowsThatFit } from '../answers/byte-budget.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'
import { defineTool } from '../define.js'

const NAME = 'find-stale-vens'
const DEFAULT_DAYS = 7
const DEFAULT_WINDOW = 7
const DEFAULT_RESULTS = 8
/** Number of VENs whose evidence is read together: the traffic query names each of them with its addresses. */
const BLOCK = 50
const MOST_NAMES = 3
const DAY_MS = 86_400_000
/** Number of bytes that are kept free for a cursor. */
const CURSOR_BYTES = 400
const Text = (description: string) => Nullable(Type.String({ description }))
const Known = (description: string) => Nullable(Type.Integer({ description }))

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
  named_in: Type.Optional(Type.Array(Type.String(), { description: 'Their rule sets and boundaries, the first 3' })),
  rules_applying: Known('In force, in any way'),
  rules_undecided: Type.Optional(Count('In force, not known whether they apply')),
  rules_only_it: Known('Of these, a side of which reaches nobody else'),
  rules_only_it_undecided: Type.Optional(Count('Of which that is not known')),
  virtual_services: Known('Bound to it'),
  ip_lists: Known('Of the draft that have its address, without Any'),
  ip_lists_undecided: Type.Optional(Count('Of which that is not known')),
  ip_lists_naming: Type.Optional(
    Type.Array(Type.String(), { description: 'Those that name its address alone, the first 3' }),
  ),
  traffic_since: Nullable(
    Type.Object(
      {
        from: Count('Connections from it that others reported'),
        answered: Count('To it, and answered with data'),
        to: Count('To it in all'),
        undecided: Count('Of an address that other workloads have as well'),
        last_seen: Text('UTC'),
      },
      { description: 'In the window, more than an hour after it was last heard of' },
    ),
  ),
  same_address: Type.Optional(
    Type.Array(Type.String(), { description: 'Other workloads with its address, the first 3' }),
  ),
})

const output = Type.Object({
  summary: Type.String({ description: 'What was found' }),
  vens: Counts('vens that match; heard, stale, uninstalled; not_known: no heartbeat is told, so not called stale'),
  counts: Counts('Stale VENs that were examined, by advice; alive: hosts that live, for certain; left: not examined'),
  stale: Type.Array(Row, { description: 'Hosts that live first, then those to look at' }),
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
    and: 'one for each label group, and two for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      silent_days: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 3650, default: DEFAULT_DAYS, description: 'Without a heartbeat for' }),
      ),
      labels: LabelsFilter,
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
    const { offset } = await decodeCursor(ctx, NAME, question, cursor)
    ctx.progress({ progress: 0, total: 2, message: 'Reading VENs and workloads' })
    const found = await findStale(ctx, question.labels, now - days * DAY_MS)
    const begin = Math.floor(offset / BLOCK) * BLOCK
    const block = found.stale.slice(begin, begin + BLOCK)
    ctx.progress({ progress: 1, total: 2, message: 'Reading what hangs on them' })
    const { judged, warnings } = await judge(ctx, block, found.everyone, window)
    const page = judged.slice(offset - begin, offset - begin + most).map((one) => showStale(one, now))
    const left = Math.max(0, found.stale.length - begin - block.length)
    const said = [...warnOf(found, left), ...warnings]
    const counts = {
      ...Object.fromEntries(STALE_ADVICE.map((word) => [word, judged.filter(({ advice }) => advice === word).length])),
      alive: judged.filter(({ isAlive }) => isAlive).length,
      left,
    }
    const facts = {
      summary: summarise(found, counts, days, period),
      vens: { ...found.counts, stale: found.stale.length },
      counts,
    }
    const tail = {
      ...(block.length > 0 && { window }),
      ...(said.length > 0 && { warnings: said }),
    }
    const kept = countRowsThatFit(page, [facts, tail, ' '.repeat(CURSOR_BYTES)], ctx.limits)
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

/** Reads what hangs on the VENs of a block, and sorts them by what is to be done. */
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
  return { judged: judged.sort(mostUrgentFirst), warnings }
}

const mostUrgentFirst = (a: Judged, b: Judged): number =>
  Number(b.isAlive) - Number(a.isAlive) ||
  STALE_ADVICE.indexOf(a.advice) - STALE_ADVICE.indexOf(b.advice) ||
  a.ven.heardAt - b.ven.heardAt ||
  compareTexts(a.ven.href, b.ven.href)

function showStale({ ven, evidence, lists, advice, why, first }: Judged, now: number): Static<typeof Row> {
  const { machine, twins } = ven
  const { rules, named, namedIn, bindings, alone, later } = evidence ?? NOTHING
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
    ...(namedIn !== null && namedIn.length > 0 && { named_in: firstOf(namedIn) }),
    rules_applying: rules?.applying ?? null,
    ...((rules?.undecided ?? 0) > 0 && { rules_undecided: rules!.undecided }),
    rules_only_it: alone?.rules ?? null,
    ...((alone?.undecided ?? 0) > 0 && { rules_only_it_undecided: alone!.undecided }),
    virtual_services: bindings,
    ip_lists: lists?.total ?? null,
    ...((lists?.undecided ?? 0) > 0 && { ip_lists_undecided: lists!.undecided }),
    ...((lists?.naming.length ?? 0) > 0 && { ip_lists_naming: firstOf(lists!.naming) }),
    traffic_since: later && {
      from: later.from,
      answered: later.answered,
      to: later.to,
      undecided: later.undecided,
      last_seen: later.last === null ? null : new Date(later.last).toISOString(),
    },
    ...(twins.length > 0 && { same_address: firstOf(twins.map(describeTwin)) }),
  }
}

/** The evidence about a VEN without a workload. */
const NOTHING: TwinEvidence = {
  rules: null,
  named: null,
  namedIn: null,
  bindings: null,
  traffic: null,
  alone: null,
  later: null,
}

/** Returns the first names of a list, with the number of those that are left out. */
const firstOf = (names: readonly string[]): string[] => [
  ...names.slice(0, MOST_NAMES),
  ...(names.length > MOST_NAMES ? [`${names.length - MOST_NAMES} more`] : []),
]

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

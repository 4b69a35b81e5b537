import { Type, type Static } from '@sinclair/typebox'
import type { ToolContext } from '../../../domain/call.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { nameRule } from '../../../domain/policy/name-rule.js'
import { namesOf } from '../../../domain/policy/name-references.js'
import {
  CLOSURE_FATES,
  NOT_KEPT,
  type ClosureFate,
  type JudgedClosure,
} from '../../../domain/ringfence/plan-closure.js'
import type { ClosureWritten, PreparedClosure } from '../../../domain/ringfence/prepare-closure.js'
import { listDifferences } from '../../../domain/policy/compare-stored.js'
import { compareTexts } from '../../../domain/text/compare-texts.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { describeReading, Reading } from '../../../domain/traffic/read-flows.js'
import { AssumesOut, explainAssumed, showAssumed } from '../../../schemas/assumes.js'
import { Count, Counts, Text } from '../../../schemas/common.js'
import { DryRunOutput } from '../../../schemas/dry-run.js'
import { DifferencesOut } from '../../../schemas/update-output.js'
import { answerBudget, showSections, Truncation } from '../byte-budget.js'
import { tellSilent } from '../tell-silent.js'

/** The answer of plan-port-closure. */
export const ClosureOutput = Type.Object({
  message: Text('What happened, or would'),
  rule_set: Type.Object(
    { href: Type.Optional(Text('Absent: it would be created')), name: Text('Its name') },
    { description: 'Of all rules of the closure' },
  ),
  rules: Counts('exceptions, used, deny: of the plan; present: there already; written: by this call'),
  connections: Counts(
    'Observed to these services, by what the closure does. cut_once_online: only by VENs that may not enforce, once they are back; opened: blocked today, let in by a rule by label; kept_by_exception: exceptions or kept uses let it in; kept_by_rule: rules of others do; not_reached: it concerns none of them',
  ),
  destinations: Counts('Applications, and other ends that were asked, by the worst that happens to them'),
  without_traffic: Count('Further applications with workloads: nobody asked them, so they lose nothing that was seen'),
  enforced_by: Counts('Workloads with a VEN by mode: only selective needs the deny rule, full blocks without it'),
  kept: Type.Array(
    Type.Object({ to: Text('Application'), from: Type.Array(Type.String(), { description: 'Users' }) }),
    {
      description: 'Uses that get an allow rule',
    },
  ),
  kept_total: Count('All of them; what exceptions keep is in connections'),
  not_kept: Type.Optional(
    Type.Array(
      Type.Object({
        reason: Text(NOT_KEPT.join(', ')),
        pairs: Count('Of source and destination'),
        connections: Count('Observed'),
        examples: Type.Array(Type.String(), { description: 'The busiest' }),
      }),
      { description: 'Observed, and without an allow rule of keep_used' },
    ),
  ),
  lost: Type.Array(
    Type.Object({
      from: Text('Source'),
      to: Text('Destination'),
      effect: Text('cut, undecided, cut_once_online, or cut_once_enforced'),
      connections: Count('Observed'),
      ports: Type.Array(Type.String(), { description: 'All of them' }),
    }),
    { description: 'Who would be cut, or may be; worst first' },
  ),
  lost_total: Count('All of them'),
  open_rules: Type.Array(
    Type.Object({ rule_set: Text('Its name'), href: Text('Of the rule'), rule: Text('In one line') }),
    { description: 'Allow rules of others that let these services in at workloads: they beat the deny rule' },
  ),
  open_rules_total: Count('All of them'),
  differences: DifferencesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...Reading,
  ...AssumesOut,
  ...Truncation,
  ...DryRunOutput,
})

/** The default number of rows that an answer shows of each list. */
export const SHOWN_ROWS = 15
/** Maximum number of rules whose requests a dry run lists. A confirmation covers all of them nevertheless. */
const MOST_REQUESTS = 10

/**
 * Builds the answer of plan-port-closure. `written` is null in a dry run. `asked` is the number of rows per list that the
 * caller wants.
 */
export function showClosure(
  ctx: Pick<ToolContext<true>, 'pce' | 'limits'>,
  prepared: PreparedClosure,
  written: ClosureWritten | null,
  asked?: number,
): Static<typeof ClosureOutput> {
  const { body, existing, uses, notKept, rules, missing, isWithheld, read, judged, open, groups, managedModes } =
    prepared
  const names = namesOf(prepared.draft, () => undefined)
  const href = written?.href ?? existing?.href
  const requests = written === null ? requestsOf(ctx.pce.orgId, prepared) : []
  const isAll = answerBudget(ctx.limits) === Infinity
  const destinations = countDestinations(judged.destinations)
  const applications = groups.filter(({ app, env }) => app !== null && env !== null)
  const differences = [...(written?.stored?.differences ?? []), ...(written?.stored?.ruleDifferences ?? []).flat()]
  const warnings = warningsOf(prepared, written)
  return showSections(
    {
      ...(written === null && { dry_run: true }),
      message: describe(prepared, written),
      rule_set: { ...(href !== undefined && { href: toDraftHref(href) }), name: body.name },
      rules: {
        exceptions: rules.length - uses.length - 1,
        used: uses.length,
        deny: isWithheld ? 0 : 1,
        present: rules.length - Number(isWithheld) - missing.length,
        written: written?.ruleHrefs.length ?? 0,
      },
      connections: onlySome(judged.connections),
      destinations,
      without_traffic: applications.filter(({ app, env }) => !judged.destinations.has(`${app} (${env})`)).length,
      enforced_by: { ...managedModes },
      kept_total: uses.length,
      ...(notKept.length > 0 && { not_kept: notKept }),
      lost_total: judged.lost.length,
      open_rules_total: open.length,
      ...listDifferences(differences),
      ...(warnings.length > 0 && { warnings }),
      ...describeReading(read),
      ...showAssumed(judged.assumes),
      ...(written === null && { requests: isAll ? requests : requests.slice(0, MOST_REQUESTS) }),
    },
    {
      kept: {
        total: uses.length,
        rows: uses.map(({ destination: { app, env }, sources, env: from }) => ({
          to: `${app} (${env})`,
          from: sources.map((source) => `${source} (${from})`),
        })),
      },
      lost: {
        total: judged.lost.length,
        rows: judged.lost.map(({ source, destination, fate, connections, ports }) => ({
          from: source,
          to: destination,
          effect: fate,
          connections,
          ports,
        })),
      },
      open_rules: {
        total: open.length,
        rows: open.map(({ placed: { rule }, ruleSet }) => ({
          rule_set: ruleSet,
          href: toDraftHref((rule as { href: string }).href),
          rule: nameRule(rule as Parameters<typeof nameRule>[0], names),
        })),
      },
    },
    {
      detail: 'standard',
      standard: SHOWN_ROWS,
      asked,
      limits: ctx.limits,
      hint: (longest) =>
        `At most ${longest} rows of a list are shown; the totals count all. ${asked === undefined ? 'max_results shows more.' : 'A larger max_results shows more, as far as it fits.'}`,
    },
  )
}

const onlySome = (counts: Record<ClosureFate, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).filter(([, many]) => many > 0))

/** Counts the destinations by the worst effect on their traffic. */
function countDestinations(destinations: ReadonlyMap<string, Record<ClosureFate, number>>): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const fates of destinations.values()) {
    const worst = CLOSURE_FATES.find((fate) => fates[fate] > 0)
    if (worst !== undefined) counts[worst] = (counts[worst] ?? 0) + 1
  }
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => compareTexts(a, b)))
}

/** Returns the requests of the plan. Braces stand for ids that the PCE will assign to a new rule set. */
function requestsOf(orgId: string, { body, existing, missing }: PreparedClosure) {
  const sets = `/orgs/${orgId}/sec_policy/draft/rule_sets`
  const parent = existing === null ? `${sets}/{new}` : toDraftHref(existing.href)
  return [
    ...(existing === null ? [{ method: 'POST', path: sets, body }] : []),
    ...missing.map((rule) => ({ method: 'POST', path: `${parent}/${rule.collection}`, body: rule.body })),
  ]
}

function describe(prepared: PreparedClosure, written: ClosureWritten | null): string {
  const { body, existing, missing, rules, judged } = prepared
  const { connections } = judged
  const later = connections.cut_once_online > 0 ? ` ${connections.cut_once_online} once their VENs are back,` : ''
  const open = connections.kept_by_rule > 0 ? `, and ${connections.kept_by_rule} stay open by other rules` : ''
  const lost = `${connections.cut} connections of the window would be cut,${later} ${connections.cut_once_enforced} once their workloads enforce, of ${connections.undecided} it is undecided${open}`
  const what = `${existing === null ? 'the rule set' : 'to the rule set'} ${quote(body.name)}`
  if (written === null) {
    if (missing.length === 0 && existing !== null) return `${quote(body.name)} has all of it already; ${lost}.`
    return `Would ${existing === null ? 'create' : 'add'} ${existing === null ? `${what} with ` : ''}${countOf(missing.length, 'rule')}${existing === null ? '' : ` ${what}`}; ${lost}.`
  }
  if (written.ruleHrefs.length === 0) return `${quote(body.name)} has all of it already; nothing was written.`
  return `Wrote ${countOf(written.ruleHrefs.length, 'rule')} of ${rules.length} into ${quote(body.name)} in draft; ${lost}. It takes effect when provisioned.`
}

const MOST_NAMED = 3
const listSome = (names: readonly string[]): string =>
  names.slice(0, MOST_NAMED).join(', ') + (names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '')

function tellSilentEnds({ silent, connections: { cut_once_online: cut } }: JudgedClosure): string[] {
  const { workloads, blocked, onceEnforced } = silent
  const effects = [
    ...(cut > 0 ? [`${countOf(cut, 'connection')} would be cut only then (cut_once_online)`] : []),
    ...(onceEnforced > 0 ? [`${countOf(onceEnforced, 'connection')} of cut_once_enforced also wait for that`] : []),
    ...(blocked > 0 ? [`${countOf(blocked, 'connection')} of blocked_already may pass until then`] : []),
  ]
  if (effects.length === 0) return []
  return [`${tellSilent(workloads)}, and until that changes no new policy is certain there: ${effects.join(', ')}.`]
}

function warningsOf(prepared: PreparedClosure, written: ClosureWritten | null): string[] {
  const { judged, isWithheld, isAnyListMissing, open, overriding, besides, managedModes, modeNotes, warnings } =
    prepared
  const unused = prepared.unusedExceptions.map((at) => `exceptions[${at}]`)
  const { visibility_only: visible = 0, idle = 0 } = managedModes
  return [
    ...(isWithheld
      ? [
          'Not all traffic was read, so the deny rule is left out for now: who is not seen would be cut. complete: true reads all of it.',
        ]
      : []),
    ...(judged.lost.length > 0
      ? [
          `${countOf(judged.lost.length, 'pair')} in use would lose it, or may (${listSome(judged.lost.map(({ source, destination }) => `${quote(source)} to ${quote(destination)}`))}; all in lost).${prepared.notKept.length > 0 ? ' not_kept says why keep_used does not keep them.' : ''} Name them in exceptions, by workload, IP list or labels.`,
        ]
      : []),
    ...(unused.length > 0
      ? [
          `No traffic ${isWithheld ? 'that was read' : 'of the window'} uses ${listSome(unused)}: ${unused.length === 1 ? 'it opens' : 'they open'} what nobody was seen to need.`,
        ]
      : []),
    ...(open.length > 0
      ? [
          `${countOf(open.length, 'allow rule')} of other rule sets ${open.length === 1 ? 'covers' : 'cover'} these services and ${open.length === 1 ? 'decides' : 'decide'} before the deny rule: what they let in stays open (open_rules). Change them, or add an override deny rule.`,
        ]
      : []),
    ...(overriding.length > 0
      ? [
          `${countOf(overriding.length, 'override deny rule')} ${overriding.length === 1 ? 'covers' : 'cover'} these services and ${overriding.length === 1 ? 'beats' : 'beat'} the allow rules of the closure: ${listSome(overriding.map(({ placed: { rule }, ruleSet }) => `${toDraftHref((rule as { href?: string }).href ?? '')} of ${quote(ruleSet)}`))}.`,
        ]
      : []),
    ...(judged.opened.length > 0
      ? [
          `Rules by label let in what is blocked today, or may: ${countOf(judged.connections.opened, 'connection')} (${listSome(judged.opened.map(({ source, destination }) => `${quote(source)} to ${quote(destination)}`))}). For fewer, name the users as exceptions with keep_used: false.`,
        ]
      : []),
    ...tellSilentEnds(judged),
    ...(besides > 0
      ? [
          `The rule set has ${countOf(besides, 'further rule')}, which ${besides === 1 ? 'stays' : 'stay'} in force: what the rule set lets in is counted as kept.`,
        ]
      : []),
    ...(visible + idle > 0
      ? [
          `${countOf(visible + idle, 'workload')} in visibility_only or idle ${visible + idle === 1 ? 'blocks' : 'block'} nothing: the services stay open there until policy is enforced.`,
        ]
      : []),
    ...(isAnyListMissing
      ? ['There is no Any IP list, so the deny rule is for workloads alone: addresses without one are not denied.']
      : []),
    ...(judged.undecided === '' ? [] : [`Traffic is ${judged.undecided}.`]),
    ...modeNotes,
    ...explainAssumed(judged.assumes),
    ...(written?.stored?.warning === undefined ? [] : [written.stored.warning]),
    ...warnings,
  ]
}

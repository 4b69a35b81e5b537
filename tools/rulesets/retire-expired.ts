import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { AssumesOut, showAssumed } from '../../schemas/assumes.js'
import { Counts, StringEnum, Text } from '../../schemas/common.js'
import { DRY_RUN_BINDING, DryRunInput, DryRunOutput, type PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../../domain/call.js'
import { warnOfOthers } from '../../domain/drafts/warn-of-others.js'
import { findExpired, RETIREMENTS, type ExpiredRules, type Retirement } from '../../domain/history/find-expired.js'
import { loadPolicy, READ_TYPES, type WholePolicy } from '../../domain/history/load-policy.js'
import { observeRetirement } from '../../domain/history/observe-retirement.js'
import { retireRules } from '../../domain/history/retire-rules.js'
import { isUnread } from '../../domain/inventory/fetch-every.js'
import { loadReferenceNames } from '../../domain/inventory/reference-names.js'
import { digestContents } from '../../domain/policy/digest-content.js'
import { requireApproved } from '../../domain/policy/require-approved.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { answerBudget, countRowsThatFit, rowsWithin } from '../answers/byte-budget.js'
import {
  assumedByEvidence,
  pageOfRetirement,
  RetiredRuleOut,
  showPlanned,
  showReading,
  showRetired,
  warnOfEvidence,
  warnOfRest,
  type RetiredRule,
  type RetirementEvidence,
} from '../answers/show-retirement.js'
import { referencesOf } from '../answers/show-rules.js'
import { defineTool } from '../define.js'

/** Maximum number of rules that one call retires, because each comes with its evidence. */
const MOST_RULES = 50
/** Maximum number of rules with an unclear end that an answer lists. */
const MOST_UNCLEAR = 20
/** Maximum size of the rules in a confirm_required answer, in bytes. */
const PREVIEW_BYTES = 4_000

const input = Type.Object(
  {
    action: Type.Optional(
      StringEnum(RETIREMENTS, { default: 'disable', description: 'What becomes of them', listed: '' }),
    ),
    hrefs: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: MOST_RULES,
        description: 'Only these rules; one that is not over is an error',
        listed: 'Only these rules',
      }),
    ),
    ...DryRunInput,
  },
  { additionalProperties: false },
)
type Arguments = Static<typeof input>

const output = Type.Object({
  message: Type.String({ description: 'What happened, or would' }),
  counts: Counts('Rules: over, already disabled, left for the next call; ends that cannot be read'),
  rules: Type.Array(RetiredRuleOut, { description: 'In a dry run, those that traffic depends on first' }),
  rules_cut: Type.Optional(Type.Integer({ description: 'Rules that are not shown' })),
  unclear: Type.Optional(
    Type.Array(Type.Object({ href: Type.String(), rule_set: Text('Its name'), why: Text('Why') }), {
      description: 'What says something of an end that cannot be read: left alone',
    }),
  ),
  observed: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'The traffic that was read' })),
  ...AssumesOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})
type Output = Static<typeof output>

export default defineTool({
  name: 'retire-expired',
  summary:
    'Disable or delete, as a draft, the rules that are over by [expires: YYYY-MM-DD]; dry_run shows what depends on them.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'rules-plus',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 70,
    and: 'up to six for each rule that it retires (50 at most), two for each rule set where the release keeps deny rules apart, and two for each workload that the rules name (50 at most)',
  },
  input,
  output,
  example: { dry_run: true },
  async boundTo(args, ctx) {
    if (args.dry_run === true) return DRY_RUN_BINDING
    return bind(args, (await find(args, ctx)).found, ctx)
  },
  async preview(args, ctx) {
    const { answer, rows, found } = await plan(args, ctx)
    const isDryRun = args.dry_run === true
    const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
    const warnings = answer.warnings ?? []
    return {
      summary: `${answer.message}${warnings.map((text) => ` ${text}`).join('')}${dry}`,
      details: { rules_total: rows.length, rules: rowsWithin(rows, PREVIEW_BYTES), warnings },
      page: pageOfRetirement(rows, actionOf(args), warnings),
      boundTo: isDryRun ? DRY_RUN_BINDING : await bind(args, found, ctx),
    }
  },
  async handler(args, ctx): Promise<Output> {
    if (args.dry_run === true) {
      const { answer, rows } = await plan(args, ctx)
      return fit(answer, rows, ctx)
    }
    const { found } = await find(args, ctx)
    const text = 'The rules that are over have changed since the call was confirmed. Nothing was written.'
    if (ctx.approved !== undefined) requireApproved(ctx.approved, await bind(args, found, ctx), text)
    const action = actionOf(args)
    const names = await namesOf(found, ctx)
    const { retired, warnings: said } = await retireRules(ctx, found.chosen, action)
    const done = retired.filter(({ outcome }) => outcome === 'disabled' || outcome === 'deleted').length
    const message =
      found.chosen.length === 0
        ? tellNone(found)
        : `${action === 'delete' ? 'Deleted' : 'Disabled'} ${done} of ${countOf(found.chosen.length, 'rule')} that ${found.chosen.length === 1 ? 'is' : 'are'} over, in draft. It takes effect when provisioned.`
    const warnings = [...said, ...warnOfRest(found)]
    const answer = { message, ...common(found), ...(warnings.length > 0 && { warnings }) }
    return fit(answer, showRetired(found.chosen, names, retired), ctx)
  },
})

const actionOf = ({ action = 'disable' }: Arguments): Retirement => action

const reading = (ctx: ToolContext<true>): ToolContext<true> => ({ ...ctx, signal: ctx.beforeWriting })

/** Finds the rules to retire in the draft as it is now. */
async function find(args: Arguments, ctx: ToolContext<true>): Promise<{ found: ExpiredRules; draft: WholePolicy }> {
  const draft = await loadPolicy(ctx.pce, 'draft', ctx.beforeWriting, ['rule_sets'])
  const wanted = { action: actionOf(args), hrefs: args.hrefs, now: ctx.now(), most: MOST_RULES }
  return { found: findExpired(draft, wanted), draft }
}

/** Returns the digest of what the call would write: each rule in its present state, and what the call does with it. */
function bind(args: Arguments, { chosen }: ExpiredRules, ctx: ToolContext<true>): Promise<string> {
  const rows = chosen.map(({ href, rule, ruleSet }) => [href, rule, ruleSet.name, ruleSet.scopes, ruleSet.enabled])
  return digestContents([actionOf(args), rows], ctx.beforeWriting)
}

const namesOf = ({ chosen }: ExpiredRules, ctx: ToolContext<true>) =>
  loadReferenceNames(
    ctx.pce,
    chosen.map(({ rule }) => referencesOf(rule)),
    reading(ctx),
  )

/** Plans the call without writing: the rules, the traffic that depends on them, and the requests. */
async function plan(args: Arguments, ctx: ToolContext<true>) {
  const action = actionOf(args)
  const { found, draft } = await find(args, ctx)
  const { chosen } = found
  const evidence = chosen.length === 0 || ctx.isBindingOnly === true ? null : await observe(found, draft, action, ctx)
  const rows = showPlanned(chosen, await namesOf(found, ctx), evidence)
  const sets = new Map(chosen.map(({ ruleSet }) => [ruleSet.href, ruleSet]))
  const others = new Set<string>()
  for (const ruleSet of sets.values())
    for (const text of await warnOfOthers({ pce: ctx.pce, signal: ctx.beforeWriting }, ruleSet)) others.add(text)
  const warnings = [...warnOfEvidence(rows, evidence), ...others, ...warnOfRest(found)]
  const requests = chosen.map(({ href }): PlannedRequest => ({
    method: action === 'delete' ? 'DELETE' : 'PUT',
    path: href,
    body: action === 'delete' ? null : { enabled: false },
  }))
  const many = `${countOf(chosen.length, 'rule')} of ${countOf(sets.size, 'rule set')}`
  const answer = {
    dry_run: true,
    message:
      chosen.length === 0
        ? tellNone(found)
        : `Would ${action}, in draft, ${many} that ${chosen.length === 1 ? 'is' : 'are'} over.`,
    ...common(found),
    ...showReading(evidence),
    ...showAssumed(assumedByEvidence(evidence)),
    ...(warnings.length > 0 && { warnings }),
    requests,
  }
  return { answer, rows, found }
}

/** Reads the traffic that depends on the rules. If it cannot be read, a dry run does not fail but says so. */
async function observe(
  { chosen }: ExpiredRules,
  { rule_sets }: WholePolicy,
  action: Retirement,
  outer: ToolContext<true>,
): Promise<RetirementEvidence> {
  const ctx = reading(outer)
  try {
    const others = READ_TYPES.filter((type) => type !== 'rule_sets')
    const draft = { ...(await loadPolicy(ctx.pce, 'draft', ctx.signal, others)), rule_sets }
    const active = await loadPolicy(ctx.pce, 'active', ctx.signal)
    return await observeRetirement(ctx, { active, draft }, chosen, action)
  } catch (error) {
    const isExpected = isUnread(error) || error instanceof PceError || error instanceof ToolError
    if (!isExpected || ctx.signal.aborted) throw error
    return `What depends on these rules in the observed traffic is not known: ${error.message}`
  }
}

const tellNone = ({ done }: ExpiredRules): string =>
  done === 0 ? 'No rule of the draft is over.' : `Nothing to do: ${countOf(done, 'rule')} over, disabled already.`

function common({ chosen, done, left, unclear }: ExpiredRules) {
  return {
    counts: { over: chosen.length + done + left, already_disabled: done, left, unclear: unclear.length },
    ...(unclear.length > 0 && {
      unclear: unclear.slice(0, MOST_UNCLEAR).map(({ href, ruleSet, why }) => ({ href, rule_set: ruleSet, why })),
    }),
  }
}

/** Returns the answer with as many rules as fit. If not all of their requests fit, the requests are left out. */
function fit(envelope: Omit<Output, 'rules'>, rows: readonly RetiredRule[], { limits }: ToolContext<true>): Output {
  const isWhole = answerBudget(limits) === Infinity || countRowsThatFit(rows, envelope, limits) === rows.length
  const { requests: _requests, ...brief } = envelope
  const shown = isWhole ? envelope : brief
  const kept = isWhole ? rows.length : countRowsThatFit(rows, [shown, 'rules_cut: 50'], limits)
  return { ...shown, rules: rows.slice(0, kept), ...(kept < rows.length && { rules_cut: rows.length - kept }) }
}

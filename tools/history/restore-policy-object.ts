import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { VersionChangeOut } from '../../schemas/policy-changes.js'
import { defineTool } from '../define.js'
import { observeChange } from '../../domain/drafts/observe-change.js'
import { RESTORABLE_KINDS } from '../../domain/history/plan-object.js'
import { changeOf, describeObjectPlan, planObject, restoreObject } from '../../domain/history/restore-object.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { abbreviateRequests } from '../answers/abbreviate-requests.js'
import { briefChange } from '../answers/brief-change.js'
import { answerBudget } from '../answers/byte-budget.js'
import { explainWords } from '../answers/explain-changes.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { showVersionChange } from '../answers/show-versions.js'
import { trimAmongOthers } from '../answers/trim-change.js'

const SINCE = 'in the draft'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  status: Type.Optional(Type.String()),
  href: Type.Optional(Type.String({ description: 'Draft href; a new one if it had been deleted' })),
  version: Type.Integer({ description: 'The version that was asked for' }),
  change: Type.Optional(
    Type.Partial(VersionChangeOut, { description: 'before: the draft; after: the version; effect against the draft' }),
  ),
  meanings: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Of the words for effects and risks' }),
  ),
  ...AssumesOut,
  new_hrefs: Type.Optional(
    Type.Array(Type.Object({ was: Type.String({ description: 'In the version' }), href: Type.String() }), {
      description: 'Rules that had been deleted',
    }),
  ),
  verified: Type.Optional(Type.Boolean({ description: 'Read back, it is what the version had' })),
  ...ObservedOut,
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'restore-policy-object',
  summary: 'Put one rule set, IP list or service back to a policy version, in the draft; other pending changes stay.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'history',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  pceRequests: {
    atMost: 60,
    and: 'one for each object that its writes name (200 at most), one for each difference, and two for each workload that its rules name (50 at most); in a dry run up to twelve for the draft and the traffic, 20 for the modes of its ends or the list of managed workloads, six more for active policy where anything is pending, one for each rule set of both on releases that list deny rules apart, and up to ten for addresses that the traffic names from off the corporate network',
  },
  input: Type.Object(
    {
      version: Type.Integer({ minimum: 1, description: 'The number of the version', listed: '' }),
      href: Type.Optional(
        Type.String({
          description: 'Or name with kind; also one that is gone',
          listed: 'Or name and kind; also deleted',
        }),
      ),
      name: ByName,
      kind: Type.Optional(StringEnum(RESTORABLE_KINDS, { description: 'Of the name', listed: '' })),
      detail_level: DetailLevel('full: lists whole'),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { version: 1, name: 'Default', kind: 'rule_sets', dry_run: true },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { version, href, name, kind, dry_run: dryRun, detail_level: detail = 'standard' } = args
    const asked = {
      version,
      ...(href !== undefined && { href }),
      ...(name !== undefined && { name }),
      ...(kind !== undefined && { kind }),
    }
    const reading = { ...ctx, signal: ctx.beforeWriting }
    const plan = await planObject(reading, asked)
    const { what, steps, left, draft, wanted, warnings } = plan
    if (steps.length === 0) {
      const dry = dryRun === true ? { dry_run: true, requests: [] } : {}
      const is = left.length === 0 ? 'already is what' : 'differs, in what this tool does not write, from what'
      const message = `In the draft, ${what} ${is} ${plan.version} had; nothing was written.`
      const said = warnings.length > 0 ? { warnings } : {}
      return { message, status: 'no_changes', href: wanted.href, version, ...said, ...dry }
    }
    const updateType = draft === null ? 'create' : 'update'
    const judged = await describeObjectPlan(reading, plan)
    const shown = trimAmongOthers(
      detail === 'full' ? judged : briefChange(judged, updateType),
      answerBudget(ctx.limits),
    )
    const facts = {
      version,
      change: showVersionChange(shown, updateType, SINCE),
      meanings: explainWords([judged], SINCE),
      ...showAssumedBy([judged]),
    }
    if (dryRun === true) {
      const sent = steps.map(({ method, path, body }) => ({ method, path, body }))
      const requests = abbreviateRequests(sent, { detail, limits: ctx.limits })
      const message = `Would put ${what} back to what ${plan.version} had: ${countOf(steps.length, 'write')}.`
      const policyChange = changeOf(plan)
      const { warnings: cut, ...observed } = showObserved(
        policyChange === null ? null : await observeChange(ctx, policyChange),
      )
      return {
        dry_run: true,
        message,
        ...(draft !== null && { href: wanted.href }),
        ...facts,
        requests,
        ...observed,
        ...withWarnings(cut, warnings),
      }
    }
    ctx.beforeWriting.throwIfAborted()
    const done = await restoreObject(ctx, plan)
    const said = [...warnings, ...done.warnings]
    const newHrefs = [...done.newHrefs].map(([was, now]) => ({ was, href: now }))
    const unread = done.verified === undefined ? ' It could not be read back.' : ''
    return {
      message: `Put ${what} back to what ${plan.version} had: ${countOf(steps.length, 'write')}. It takes effect when provisioned.${unread}`,
      href: done.href,
      ...facts,
      ...(newHrefs.length > 0 && { new_hrefs: newHrefs }),
      ...(done.verified !== undefined && { verified: done.verified }),
      ...(said.length > 0 && { warnings: said }),
    }
  },
})

import { Type, type Static } from '@sinclair/typebox'
import { PceError, type PceClient } from '../../pce-client/index.js'
import { Nullable } from '../../schemas/common.js'
import { DryRunInput, DryRunOutput } from '../../schemas/dry-run.js'
import type { PolicyVersion } from '../../schemas/pce/policy.js'
import { defineTool } from '../define.js'
import { cleanDeep } from '../support/clean-text.js'
import { completeChanges } from '../support/complete-changes.js'
import { countOf } from '../support/count-of.js'
import { choosePending, fitChanges, toChangeSubset, toProvisionable } from '../support/provision-targets.js'
import { requireObject } from '../support/read-back.js'

const DEFAULT_DESCRIPTION = 'Provisioned via MCP'

const output = Type.Object({
  message: Type.String({ description: 'What happened' }),
  status: Type.Optional(Type.String()),
  change_description: Type.Optional(Type.String({ description: 'As sent' })),
  version: Type.Optional(Type.Integer({ description: 'New policy version' })),
  workloads_affected: Type.Optional(Nullable(Type.Integer({ description: 'null: not computed yet' }))),
  href: Type.Optional(Type.String()),
  commit_message: Type.Optional(Nullable(Type.String({ description: 'As stored' }))),
  changes: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        type: Type.String({ description: 'Object type' }),
        name: Type.Optional(Type.String()),
        update_type: Type.Optional(Type.String({ description: 'create, update or delete' })),
      }),
      { description: 'The pending changes concerned' },
    ),
  ),
  dependencies_included: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        type: Type.String({ description: 'Object type' }),
        required_by: Type.Array(Type.String(), { description: 'What needs it' }),
      }),
      { description: 'Not named, but needed' },
    ),
  ),
  provisioned_hrefs: Type.Optional(Type.Array(Type.String(), { description: 'What was provisioned, all of it' })),
  object_counts: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), { description: 'Active objects by type afterwards' }),
  ),
  impact: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'Workloads concerned, asked beforehand' }),
  ),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to look at' })),
  ...DryRunOutput,
})

export default defineTool({
  name: 'provision-policy',
  area: 'policy',
  summary:
    'Make pending draft policy active, so that agents enforce it: the named objects, or everything that is pending.',
  effect: 'destroy',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  input: Type.Object(
    {
      hrefs: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 1000,
          description: 'Draft objects; a rule stands for its rule set. Omit for ALL pending changes',
        }),
      ),
      change_description: Type.Optional(
        Type.String({
          maxLength: 255,
          default: DEFAULT_DESCRIPTION,
          description: 'Commit message for the audit trail',
        }),
      ),
      include_dependencies: Type.Optional(
        Type.Boolean({ default: false, description: 'Also what the named objects need; else that is refused' }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { change_description: 'Open payments to the web tier' },
  async handler(
    { hrefs, change_description: description = DEFAULT_DESCRIPTION, include_dependencies: include, dry_run: dryRun },
    ctx,
  ): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const named = hrefs === undefined ? null : toProvisionable(hrefs, pce.orgId)
    const pending = await pce.getPendingPolicyChanges({ signal })
    const asked = named === null ? pending : choosePending(named, pending)
    if (asked.length === 0)
      return { message: 'Nothing is pending; draft and active policy are the same.', status: 'no_changes' }
    const { complete: chosen, included } = await completeChanges(pce, asked, pending, include === true, signal)

    const subset = toChangeSubset(chosen)
    const targets = Object.values(subset).flatMap((references) => references.map(({ href }) => href))
    const warnings: string[] = []
    const impact = await askImpact(pce, targets, warnings, signal)
    const common = {
      change_description: description,
      provisioned_hrefs: targets,
      ...(included.length > 0 && { dependencies_included: cleanDeep(included) }),
      ...(impact !== undefined && { impact }),
    }
    if (dryRun === true) {
      const body = { update_description: description, change_subset: subset }
      const request = { method: 'POST', path: `/orgs/${pce.orgId}/sec_policy`, body }
      const { provisioned_hrefs: _notYet, ...rest } = common
      const message = `Would provision ${countOf(targets.length, 'object')}.`
      const plan = { dry_run: true, message, requests: [request], ...rest }
      return { ...plan, ...fitChanges(chosen, plan, warnings, ctx.limits) }
    }
    const version = await pce.provisionPolicyChanges(description, targets)
    const stored = await readBack(pce, version, warnings)
    const answer = {
      message: `Provisioned ${countOf(targets.length, 'object')} as policy version ${stored.version}.`,
      ...common,
      version: stored.version,
      workloads_affected: stored.workloads_affected ?? null,
      href: stored.href,
      commit_message: cleanDeep(stored.commit_message ?? null),
      object_counts: stored.object_counts ?? {},
    }
    return { ...answer, ...fitChanges(chosen, answer, warnings, ctx.limits) }
  },
})

/** The numbers help to judge the change; the change does not depend on them. */
async function askImpact(pce: PceClient, hrefs: string[], warnings: string[], signal: AbortSignal) {
  try {
    return { ...(await pce.analyzePolicyImpact(hrefs, { signal })) }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    warnings.push('The PCE did not say how many workloads are concerned.')
    return undefined
  }
}

/** The first answer may lack the counts (pce-api e.14). It is provisioned by now, so a failed look is a warning only. */
async function readBack(pce: PceClient, version: PolicyVersion, warnings: string[]): Promise<PolicyVersion> {
  try {
    const stored = (await pce.get(version.href, { includeOrg: false })).json<PolicyVersion>()
    return { ...version, ...requireObject(stored) }
  } catch {
    warnings.push('The policy was provisioned; its version could not be read back.')
    return version
  }
}

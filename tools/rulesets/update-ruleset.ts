import { Type, type Static } from '@sinclair/typebox'
import { ByName } from '../../schemas/by-name.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { ActorInput, ScopeOut } from '../../schemas/rule-shapes.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { ObservedOut } from '../../schemas/observed-traffic.js'
import { UpdateOutput } from '../../schemas/update-output.js'
import { Nullable } from '../../schemas/common.js'
import { defineTool } from '../define.js'
import { refuseHidden, refuseTakenName } from '../../domain/drafts/create-named.js'
import { createPolicyLookups, describeObject, findObject } from '../../domain/inventory/find-object.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { namesOrHrefs } from '../../domain/inventory/reference-names.js'
import { resolveScopes, toWireScopes } from '../../domain/drafts/resolve-actors.js'
import { showObserved, withWarnings } from '../answers/show-observed.js'
import { observeDryRun } from '../../domain/drafts/observe-change.js'
import { showScopes, writeScopes } from '../answers/show-rules.js'
import { orderOf } from '../../domain/drafts/order-of.js'
import { requireFields, updateObject, withoutStored } from '../../domain/drafts/change-object.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'

const output = Type.Object({
  ...UpdateOutput,
  ...ObservedOut,
  href: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Nullable(Type.String())),
  enabled: Type.Optional(Type.Boolean()),
  scopes: Type.Optional(Type.Array(Type.Array(ScopeOut), { description: '[[]] is all' })),
})

export default defineTool({
  name: 'update-ruleset',
  summary: 'Change a rule set, not its rules.',
  effect: 'write',
  scope: 'objects',
  toolset: 'rules',
  idempotent: true,
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  // A dry run is heavy, because it reads the traffic that the change would cut.
  isHeavy: ({ dry_run: dryRun }) => dryRun === true,
  input: Type.Object(
    {
      href: Type.Optional(Type.String({ description: 'Or name' })),
      name: ByName,
      new_name: Type.Optional(NewName('Rename')),
      description: Type.Optional(Type.String({ description: 'Text' })),
      enabled: Type.Optional(Type.Boolean({ description: 'Switched on' })),
      scopes: Type.Optional(
        Type.Array(Type.Array(ActorInput, { maxItems: 20 }), {
          minItems: 1,
          maxItems: 100,
          description: 'All; [[]] is all workloads',
        }),
      ),
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'payments | prod', description: 'Reviewed in March' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, signal } = ctx
    const { href, name, new_name: newName, description, enabled, scopes: asked, dry_run: dryRun } = args
    if (newName !== undefined) refuseHidden({ new_name: newName })
    const current = await findObject(pce, 'rule_sets', { href, name }, signal)
    requireFields({ newName, description, enabled, asked }, ['new_name', 'description', 'enabled', 'scopes'])
    const lookups = createPolicyLookups(pce, await loadLabels(pce, ctx, 'fresh'), 'draft', signal)
    const scopes = asked === undefined ? undefined : await resolveScopes(lookups, asked)
    if (newName !== undefined) await refuseTakenName(pce, 'rule_sets', newName, signal, current)
    const plan = {
      what: describeObject('rule_sets', current),
      current,
      body: { name: newName, description, enabled, scopes: scopes && toWireScopes(scopes) },
      read: (changed: string) => pce.ruleSets.getByReference(changed),
      order: orderOf('rule_sets', current.name),
      warnings: [
        ...warnOfSentences({ new_name: newName }),
        ...(scopes?.some((scope) => scope.length === 0) === true
          ? ['The scope is empty: its rules apply to all workloads.']
          : []),
      ],
    }
    const answer = await updateObject(ctx, plan, dryRun)
    const { stored, previous, href: draft } = answer
    const names = await namesOrHrefs(pce, [stored.scopes, previous?.scopes], ctx)
    const fields = { enabled: stored.enabled, scopes: stored.scopes }
    const change = { is: 'rule_set', href: draft, fields } as const
    const { warnings, ...observed } = showObserved(await observeDryRun(ctx, answer, change))
    return {
      ...withoutStored(answer),
      ...observed,
      ...withWarnings(warnings, answer.warnings),
      href: draft,
      ...(previous?.scopes !== undefined && {
        previous: { ...previous, scopes: writeScopes(previous.scopes as RuleSet['scopes'], names) },
      }),
      name: stored.name,
      description: stored.description ?? null,
      enabled: stored.enabled,
      scopes: showScopes(stored.scopes, names),
    }
  },
})

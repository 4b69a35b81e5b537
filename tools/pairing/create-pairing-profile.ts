import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, Text } from '../../schemas/common.js'
import { DryRunInput } from '../../schemas/dry-run.js'
import { NewName } from '../../schemas/new-name.js'
import { PairingProfileInput, PairingProfileOut } from '../../schemas/pairing-shapes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { RuleTypeOut } from '../../schemas/rule-shapes.js'
import { CreateOutput } from '../../schemas/update-output.js'
import { refuseHidden } from '../../domain/drafts/create-named.js'
import { createObject } from '../../domain/drafts/create-object.js'
import { judgeJoining, type Joining } from '../../domain/drafts/judge-joining.js'
import {
  planPairingProfile,
  USUAL_LIFESPAN,
  warnOfJoining,
  warnOfProfile,
  warnOfUses,
} from '../../domain/drafts/plan-pairing-profile.js'
import { warnOfSentences } from '../../domain/drafts/warn-of-sentences.js'
import { fitAnswer } from '../answers/byte-budget.js'
import { nameLabels } from '../answers/name-labels.js'
import { withWarnings } from '../answers/show-observed.js'
import { showLabelOf } from '../answers/show-label.js'
import { showPairingProfile } from '../answers/show-pairing-profile.js'
import { defineTool } from '../define.js'

const MOST_NAMED = 5

const output = Type.Object({
  ...CreateOutput,
  ...Type.Partial(PairingProfileOut).properties,
  left_to_pce: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Dry run: settings that are not sent, and what they decide; the PCE chooses, by what is not documented',
    }),
  ),
  policy: Type.Optional(
    Type.Object(
      {
        rule_sets: Count('Whose scopes have these labels, whether or not a rule of theirs applies'),
        named: Type.Array(Type.String(), { description: `Of these, the first ${MOST_NAMED}` }),
        rule_sets_for_all: Count('Without a scope'),
        rule_sets_undecided: Type.Optional(Count('Not known whether their scopes do')),
        rules: Counts('That apply, by type'),
        rules_undecided: Type.Optional(Count('Not known whether they do')),
        applying: Type.Array(
          Type.Object({
            rule_type: RuleTypeOut,
            rule_set: Type.Optional(Text('Absent: an enforcement boundary')),
            href: Text('Of the rule'),
            rule: Text('In one line'),
          }),
          { description: `Of rules, the first ${MOST_NAMED}, those of rule sets with a scope before others` },
        ),
      },
      { description: 'Dry run: in force for a machine with these labels and no others; absent: not known' },
    ),
  ),
})

/**
 * The settings of a profile that a request may leave out. The texts say what each decides about machines that pair with
 * the profile.
 */
const SETTINGS = {
  enforcement_mode_lock: 'whether it fixes their enforcement mode',
  allowed_uses_per_key: 'how many of them one key pairs',
  visibility_level: 'how much of their traffic they report',
  visibility_level_lock: 'whether it fixes that',
  role_label_lock: 'whether it fixes their role label',
  app_label_lock: 'whether it fixes their app label',
  env_label_lock: 'whether it fixes their env label',
  loc_label_lock: 'whether it fixes their loc label',
}

export default defineTool({
  name: 'create-pairing-profile',
  summary: 'Create a pairing profile, at once: enabled, visibility_only, keys of a day, unless said otherwise.',
  effect: 'write',
  scope: 'objects',
  toolset: 'objects-plus',
  roles: ['operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: {
    atMost: 20,
    and: 'for a dry run one for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      name: NewName('New name'),
      description: Type.Optional(Type.String({ description: 'Text' })),
      ...PairingProfileInput,
      ...DryRunInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'Web servers', labels: ['role=web', 'env=prod'], key_lifespan: 3600, allowed_uses_per_key: 10 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { name, description, dry_run: dryRun, ...given } = args
    refuseHidden({ name })
    const planned = await planPairingProfile(ctx, given)
    const body = {
      name,
      ...(description !== undefined && { description }),
      // The PCE's defaults are not documented, so they are set explicitly: nothing is enforced, and keys expire.
      enabled: true,
      enforcement_mode: 'visibility_only',
      key_lifespan: USUAL_LIFESPAN,
      ...planned,
    }
    const plan = {
      kind: 'pairing_profiles' as const,
      body,
      read: (href: string) => ctx.pce.pairingProfiles.getByReference(href),
      next: 'It has no key yet.',
      warnings: [...warnOfSentences({ name }), ...warnOfProfile(body), ...warnOfUses(planned)],
    }
    const { stored, ...answer } = await createObject(ctx, plan, dryRun)
    if (stored === undefined) {
      const { labels = [] } = planned as { labels?: LabelRef[] }
      const { expand, warnings: unread } = await nameLabels(ctx, labels, false)
      const named = labels.map(expand)
      const joining = await judgeJoining(
        ctx,
        labels.map(({ href }) => href),
      )
      const worries = warnOfJoining(
        named.map(({ key }) => key),
        joining,
        body.enforcement_mode,
      )
      const preview = {
        ...(body as Partial<PairingProfileOut>),
        labels: named.map((label) => showLabelOf(label)),
        left_to_pce: Object.entries(SETTINGS).flatMap(([setting, decides]) =>
          Object.hasOwn(body, setting) ? [] : [`${setting}: ${decides}`],
        ),
        ...(typeof joining !== 'string' && { policy: showJoining(joining) }),
      }
      const warnings = withWarnings([...unread, ...worries], answer.warnings)
      return fitAnswer({ ...answer, ...warnings, ...preview }, ctx.limits)
    }
    const { expand, warnings } = await nameLabels(ctx, stored.labels, true)
    const shown = { ...answer, ...withWarnings(warnings, answer.warnings), ...showPairingProfile(stored, expand) }
    return fitAnswer(shown, ctx.limits)
  },
})

const showJoining = ({ scoped, everywhere, undecided, rules, undecidedRules, applying }: Joining) => ({
  rule_sets: scoped.length,
  named: scoped.slice(0, MOST_NAMED),
  rule_sets_for_all: everywhere,
  ...(undecided > 0 && { rule_sets_undecided: undecided }),
  rules,
  ...(undecidedRules > 0 && { rules_undecided: undecidedRules }),
  applying: applying.slice(0, MOST_NAMED).map(({ type, ruleSet, href, line }) => ({
    rule_type: type,
    ...(ruleSet !== null && { rule_set: ruleSet }),
    href,
    rule: line,
  })),
})

import { Type } from '@sinclair/typebox'
import { DifferencesOut } from './differences.js'
import { DryRunOutput } from './dry-run.js'
import { ActorOut, RuleTypeOut, WideningOut } from './rule-shapes.js'

/** Answer of create-ruleset: the new rule set, or the plan of a dry run. */
export const RuleSetCreated = Type.Object({
  message: Type.String({ description: 'What happened' }),
  ruleset: Type.Optional(
    Type.Object(
      {
        href: Type.String(),
        name: Type.String(),
        description: Type.Optional(Type.String()),
        rules: Type.Array(
          Type.Object({
            href: Type.String(),
            rule_type: RuleTypeOut,
            providers: Type.Array(ActorOut, { description: 'Destinations' }),
            consumers: Type.Array(ActorOut, { description: 'Sources' }),
            services: Type.Array(Type.Object({}), { description: '{href, resolved_name} or {port, to_port?, proto}' }),
            egress_services: Type.Optional(Type.Array(Type.Object({}), { description: '{href, resolved_name}' })),
            unscoped_consumers: Type.Boolean({ description: 'Extra-scope rule' }),
            policy_widening_warning: WideningOut,
            differences: DifferencesOut,
          }),
          { description: 'In the order given' },
        ),
        differences: DifferencesOut,
      },
      { description: 'The new draft rule set' },
    ),
  ),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to look at' })),
  ...DryRunOutput,
})

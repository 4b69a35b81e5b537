import { Type } from '@sinclair/typebox'
import { DifferencesOut } from './differences.js'
import { DryRunOutput } from './dry-run.js'
import { ActorOut, RuleTypeOut } from './rule-shapes.js'

/** Answer of create-ruleset: the new rule set, or the plan of a dry run. */
export const RuleSetCreated = Type.Object({
  message: Type.String({ description: 'What happened' }),
  ruleset: Type.Optional(
    Type.Object(
      {
        href: Type.String({ description: 'Rule set href' }),
        name: Type.String({ description: 'Name' }),
        description: Type.Optional(Type.String({ description: 'Description' })),
        rules: Type.Array(
          Type.Object({
            href: Type.String({ description: 'Rule href' }),
            rule_type: RuleTypeOut,
            providers: Type.Array(ActorOut, { description: 'Destinations' }),
            consumers: Type.Array(ActorOut, { description: 'Sources' }),
            services: Type.Array(Type.Unknown(), { description: '{href, resolved_name} or {port, to_port?, proto}' }),
            egress_services: Type.Optional(Type.Array(Type.Unknown(), { description: '{href, resolved_name}' })),
            unscoped_consumers: Type.Boolean({ description: 'Extra-scope rule' }),
            policy_widening_warning: Type.Optional(
              Type.Object(
                {
                  warning: Type.String({ description: 'Code' }),
                  services: Type.Array(Type.String(), { description: 'Windows services' }),
                  non_windows_consumer_count: Type.Integer({ description: 'Consumers without Windows agent' }),
                  examples: Type.Array(Type.String(), { description: 'At most 5' }),
                  message: Type.String({ description: 'What it means' }),
                },
                { description: 'The rule admits more than it reads' },
              ),
            ),
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

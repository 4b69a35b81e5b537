import { Type, type Static, type TProperties, type TSchema } from '@sinclair/typebox'
import { AssumesOut } from './assumes.js'
import { RecordedOut } from './recorded-otherwise.js'
import { Count, Counts, Flag, Nullable, Text, Total } from './common.js'
import { DifferencesOut } from './update-output.js'
import { DryRunOutput } from './dry-run.js'
import { ApplicationReference, LabelReference } from './label-reference.js'

const Maybe = <T extends TSchema>(schema: T) => Type.Optional(schema)
const Rows = <P extends TProperties>(row: P, description: string) => Type.Array(Type.Object(row), { description })

const Plain = Type.String()
const Connections = Type.Integer()
const Coverage = Text('already_allowed: rules allow every flow today; else newly_allowed')
const DenyConsumer = Text('Whom the deny rule names: any, ams or ams_and_any')
const DependsOn = Text('What possibly_cut depends on')
const PlannedFor = Text('Its allow rule: new, existing, excluded or none')

const application = { app: Plain, env: Plain }
/**
 * The fields that classify a rule: its type and, for an extra-scope rule, its source application (`app`, `env`) and
 * that application's `coverage`.
 */
const standing = {
  type: Text('intra-scope, extra-scope allow (inbound) or deny (block all inbound)'),
  app: Maybe(Plain),
  env: Maybe(Plain),
  coverage: Maybe(Coverage),
}

/** A rule of a ringfence, either planned or already written. */
const rule = {
  ...standing,
  description: Maybe(Plain),
  consumers: Maybe(Plain),
  providers: Maybe(Plain),
  services: Maybe(Plain),
  deny_consumer_mode: Maybe(DenyConsumer),
  ingress_services_resolved: Maybe(
    Type.Array(Type.Unsafe<object>({ type: 'object' }), { description: 'What the deny rule denies' }),
  ),
  href: Maybe(Plain),
  differences: DifferencesOut,
}

/**
 * The traffic between the application and one peer, in one direction. Only the ports of inbound traffic have an
 * `effect`.
 */
const traffic = {
  connections: Connections,
  ports_total: Total,
  observed_ports: Rows(
    {
      port: Nullable(Type.Integer()),
      proto: Nullable(Type.Integer()),
      connections: Connections,
      policy_decision: Text('As the PCE recorded it; effect does not rely on it'),
      effect: Maybe(
        Text(
          'Once enforced: allowed, allowed_by_other_rules, not_affected, possibly_cut, cut or blocked_by_override_deny',
        ),
      ),
      depends_on: Maybe(DependsOn),
    },
    'Busiest first, at most 20 (full: 200)',
  ),
}

/** The arguments that decide for which sources of inbound traffic the ringfence gets an allow rule. */
export const SourcesInput = {
  exclude_sources: Maybe(
    Type.Array(ApplicationReference, {
      description: 'Keep out: app|env, app=X, env=X',
      listed: 'app|env, app=X, env=X',
    }),
  ),
  environments: Maybe(Type.Array(LabelReference, { minItems: 1, description: 'Only these env labels', listed: '' })),
}

/** The output of create-ringfence, both for a plan and for a written ringfence (T15). */
export const RingfenceOutput = {
  message: Plain,
  app: Plain,
  env: Plain,
  app_label_href: Maybe(Text('Href of the app label')),
  env_label_href: Maybe(Text('Href of the env label')),
  lookback_days: Maybe(Type.Integer()),
  selective: Flag('As asked: deny all other inbound'),
  skip_allowed: Maybe(Flag('As asked: no rule for sources that are allowed today')),
  enforcement_mode: Maybe(Text('Mode that it is made for; workloads has those of today')),
  deny_consumer: Maybe(DenyConsumer),
  deny_withheld: Maybe(Text('Why the deny rule is left out for now')),
  deny_service_ignored: Maybe(Flag('deny_service was given without selective')),
  has_deny_all_inbound: Flag('An existing rule denies all inbound, from any address or from workloads'),
  merged: Flag('The rule set existed: only what it lacks is added'),
  workloads: Type.Object(
    { total: Count('Managed or not'), managed: Type.Integer(), enforcement_modes: Counts('Managed ones by mode') },
    { description: 'With both labels' },
  ),
  flows_analysed: Type.Object(
    { inbound: Count('To the application'), outbound: Count('From the application') },
    { description: 'Rows, those inside it in both' },
  ),
  discovery_truncated: Type.Array(Plain, { description: 'Queries that reached the row limit' }),
  discovery_warning: Maybe(Text('What a query that reached it left out')),
  policy_coverage: Type.Object(
    {
      already_allowed: Count('Rules allow every flow today'),
      newly_allowed: Count('Of some flow that is not so, or not known'),
      excluded: Maybe(Count('Left out by the caller, in neither of these')),
      total_remote_apps: Count('Source applications, itself left out'),
      allowed_by_default_possible: Count('Some flow passes, maybe only as no deny rule matches'),
      description: Maybe(Plain),
    },
    { description: 'Source applications by what policy decides today' },
  ),
  section_totals: Maybe(Counts('Rows per list, where one was cut')),
  ruleset: Type.Object(
    { href: Maybe(Plain), name: Plain, rules: Maybe(Rows(rule, 'Written; in words only with detail_level full')) },
    { description: 'Of the ringfence, in draft; without href it does not exist yet' },
  ),
  planned_rules: Maybe(Rows(rule, 'Dry run: rules a real call would add; detail_level full has requests instead')),
  skipped_existing_rules: Rows({ ...standing, href: Plain }, 'Standing already'),
  skipped_already_allowed: Maybe(Rows(application, 'No rule')),
  inbound_remote_apps: Maybe(
    Rows(
      {
        ...application,
        ...traffic,
        coverage: Coverage,
        rule: PlannedFor,
        allowed_by_default_possible: Maybe(Flag('Some flow passes, maybe only as no deny rule matches')),
      },
      'Source applications, itself left out',
    ),
  ),
  outbound_remote_apps: Maybe(
    Rows({ ...application, ...traffic }, 'Destination applications, itself left out; no rules'),
  ),
  unlabelled_inbound: Maybe(
    Rows(
      {
        kind: Plain,
        ip: Nullable(Text('null: the PCE names none')),
        name: Maybe(Text('Of the workload, where it is not its host name')),
        hostname: Maybe(Plain),
        fqdn: Maybe(Plain),
        ip_lists: Maybe(Type.Array(Plain, { description: 'Names of those it is in, Any left out' })),
        labels: Maybe(Type.Record(Type.String(), Plain, { description: 'Those it has, value by key' })),
        managed: Maybe(Flag('Of a workload: it has a VEN')),
        ...traffic,
      },
      'Sources without both labels, worst first',
    ),
  ),
  would_be_cut: Rows(
    {
      effect: Text('cut, possibly_cut or blocked_by_override_deny'),
      kind: Plain,
      source: Text('The busiest: app (env), else name, FQDN or address'),
      sources: Count('An application, or all of this kind on this port'),
      connections: Count('On these ports'),
      ports: Type.Array(Plain, { description: 'As 443/tcp' }),
      depends_on: Maybe(DependsOn),
    },
    'Once enforced (selective, else full), worst first',
  ),
  infrastructure_sources: Maybe(
    Rows(
      {
        ...application,
        tier: Text('Core Infrastructure or Shared Service'),
        infrastructure_score: Type.Number({ description: '0 to 100' }),
        rule: PlannedFor,
        loses_traffic: Flag('It is in would_be_cut'),
      },
      'Source applications that many depend on, highest score first',
    ),
  ),
  ...RecordedOut,
  ...AssumesOut,
  warnings: Type.Array(Plain, { description: 'What to check first, most serious first' }),
  warnings_of_plan: Maybe(Count('Real call: those of the plan, not among warnings')),
  left_out: Maybe(Text('Real call: what is not repeated, and what shows it')),
  ...DryRunOutput,
}

export type RingfenceAnswer = Static<ReturnType<typeof Type.Object<typeof RingfenceOutput>>>

import type { Job, Step } from './run-job.js'
import type { Json } from '../../test/tools/harness.js'

const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }
const app = (app_name: string, env_name: string) => ({ app_name, env_name })

/** Converts a table with `columns` and `data` into objects. */
const rowsOf = ({ columns, data }: Json): Json[] =>
  data.map((row: Json[]) => Object.fromEntries(row.map((value, at) => [columns[at], value])))
const list = (values: readonly Json[]): string => [...new Set(values)].join(', ')
/** Extracts facts from the dry run of a ringfence. */
const factsOfPlan = ([answer]: readonly Json[]) => ({
  applications: answer.policy_coverage.total_remote_apps,
  rules: answer.planned_rules.length,
  would_be_cut: answer.would_be_cut,
  warnings: answer.warnings,
})
const answerOfPlan = ({ applications, rules, would_be_cut: cut }: Record<string, Json>): string => {
  const sources = cut.reduce((sum: number, group: Json) => sum + group.sources, 0)
  return `${applications} applications may come in (${rules} rules in all); ${sources} sources would be cut.`
}
const only = (tool: string, args: object = {}): Step[] => [{ tool, arguments: args }]

/** Jobs of an operator on the demo estate, from looking around to changing policy. */
export const JOBS: readonly Job[] = [
  {
    name: 'what-runs-billing',
    request: 'Which workloads run billing in prod, and which of them enforce policy?',
    steps: only('get-workloads', { labels: ['app=billing', 'env=prod'] }),
    facts: ([answer]) => ({
      workloads: answer.total,
      modes: Object.fromEntries(rowsOf(answer).map((row) => [row.hostname, row.enforcement_mode])),
    }),
    answer: ({ workloads, modes }) =>
      `${workloads}: ${Object.entries(modes)
        .map(([host, mode]) => `${host} (${String(mode)})`)
        .join(', ')}.`,
    before: { calls: 1, bytes: 783 },
  },
  {
    name: 'is-there-an-application-pay',
    request: 'Is there an application called exactly "pay"?',
    steps: only('get-labels', { key: 'app', value: 'pay', exact: true }),
    facts: ([answer]) => ({ matches: answer.total_count, value: answer.labels[0].value }),
    answer: ({ matches }) => (matches === 1 ? 'Yes, one label app=pay.' : 'No.'),
    before: { calls: 1, bytes: 336 },
  },
  {
    name: 'offline-hosts',
    request: 'Which VENs are offline?',
    steps: only('get-workloads', { online: false }),
    facts: ([answer]) => ({
      offline: answer.total,
      in_prod: rowsOf(answer)
        .filter(({ env }) => env === 'prod')
        .map(({ hostname }) => hostname),
    }),
    answer: ({ offline, in_prod }) => `${offline}; in prod: ${list(in_prod)}.`,
    before: { calls: 1, bytes: 4696 },
  },
  {
    name: 'who-uses-a-service',
    request: 'We want to change the service "DNS". Which rules use it?',
    steps: only('get-rulesets', { service: { service: 'DNS' } }),
    facts: ([answer]) => ({ rule_sets: answer.rulesets.map(({ name }: Json) => name) }),
    answer: ({ rule_sets }) => `Rules of ${list(rule_sets)}.`,
    before: { calls: 1, bytes: 20_851 },
  },
  {
    name: 'who-lets-monitoring-in',
    request: 'Which rules name the application monitoring?',
    steps: only('get-rulesets', { actor: 'app=monitoring' }),
    facts: ([answer]) => ({ rule_sets: answer.rulesets.map(({ name }: Json) => name) }),
    answer: ({ rule_sets }) => `Rules of ${list(rule_sets)}.`,
    before: { calls: 1, bytes: 20_851 },
  },
  {
    name: 'who-uses-an-ip-list',
    request: 'Which rules rest on the IP list "Branch offices"?',
    steps: only('get-rulesets', { actor: 'iplist:Branch offices' }),
    facts: ([answer]) => ({ rule_sets: answer.rulesets.map(({ name }: Json) => name) }),
    answer: ({ rule_sets }) => `Rules of ${list(rule_sets)}.`,
    before: { calls: 1, bytes: 20_851 },
  },
  {
    name: 'blocked-at-billing',
    request: 'What did billing (prod) turn away on 14 June, and on which port?',
    steps: only('get-traffic-flows', {
      start_date: '2026-06-14',
      end_date: '2026-06-14',
      include_destinations: ['app=billing', 'env=prod'],
      policy_decisions: ['blocked'],
      max_results: 50,
    }),
    facts: ([answer]) => ({
      rows: answer.total_rows,
      ports: [...new Set(rowsOf(answer).map(({ port, proto }) => `${port}/${proto}`))],
      hosts: [...new Set(rowsOf(answer).map(({ dst_hostname }) => dst_hostname))],
    }),
    answer: ({ rows, ports, hosts }) => `${rows} flows, all to ${list(hosts)} on ${list(ports)}.`,
    before: { calls: 1, bytes: 7120 },
  },
  {
    name: 'who-talks-to-billing',
    request: 'Which applications connected to billing (prod) last week, and were they allowed?',
    steps: only('get-traffic-flows-summary', { ...WEEK, include_destinations: ['app=billing', 'env=prod'] }),
    facts: ([answer]) => ({
      flows: answer.totals.rows,
      complete: !answer.totals.truncated,
      applications: [...new Set(answer.app_to_app.map((row: Json) => row.from))],
      decisions: [...new Set(answer.app_to_app.map((row: Json) => row.policy))],
    }),
    answer: ({ flows, applications, decisions }) =>
      `${list(applications)}; decisions: ${list(decisions)} (${flows} flows).`,
    before: { calls: 1, bytes: 19_852 },
  },
  {
    name: 'processes-that-leave',
    request: 'Which processes of crm (prod) connect to the outside?',
    steps: only('discover-process-egress', { ...WEEK, include_sources: ['app=crm', 'env=prod'] }),
    facts: ([answer]) => ({
      findings: answer.findings.map((row: Json) => ({
        process: row.process,
        destination: row.destination,
        port: `${row.port}/${row.proto}`,
        decision: row.policy_decision,
      })),
    }),
    answer: ({ findings }) =>
      findings.map((row: Json) => `${row.process} to ${row.destination} on ${row.port} (${row.decision})`).join('; ') +
      '.',
    before: { calls: 1, bytes: 1586 },
  },
  {
    name: 'unknown-senders',
    request: 'Who without labels connects to us the most?',
    steps: only('find-unmanaged-traffic', { direction: 'inbound', top_n: 5 }),
    facts: ([answer]) => ({
      sources: answer.unmanaged_source_count,
      top: answer.unmanaged_sources.map((row: Json) => row.src_ip),
    }),
    answer: ({ sources, top }) => `${sources} sources; the busiest: ${list(top)}.`,
    before: { calls: 1, bytes: 4555 },
  },
  {
    name: 'ready-to-enforce',
    request: 'Can we switch billing (prod) to full enforcement?',
    steps: only('enforcement-readiness', app('billing', 'prod')),
    facts: ([answer]) => ({
      score: answer.readiness_score,
      level: answer.readiness_level,
      costs: answer.factors.filter((factor: Json) => factor.points < factor.max).map((factor: Json) => factor.reason),
    }),
    answer: ({ score, level, costs }) => `Not yet: ${score} of 100 (${level}). ${costs.join('; ')}.`,
    before: { calls: 1, bytes: 8924 },
  },
  {
    name: 'coverage-of-ordering',
    request: 'How much of the traffic of ordering (prod) do rules cover?',
    steps: only('get-policy-coverage-report', app('ordering', 'prod')),
    facts: ([answer]) => ({
      of_rows: answer.overall_coverage_percentage,
      of_connections: answer.overall_connection_coverage_percentage,
    }),
    answer: ({ of_rows, of_connections }) => `${of_rows} % of the flows, ${of_connections} % of the connections.`,
    before: { calls: 1, bytes: 3425 },
  },
  {
    name: 'plan-a-ringfence',
    request: 'What would a ringfence around ordering (prod) let in, and what would it cut?',
    steps: only('create-ringfence', { ...app('ordering', 'prod'), dry_run: true }),
    facts: factsOfPlan,
    answer: answerOfPlan,
    before: { calls: 1, bytes: 44_249 },
  },
  {
    name: 'ringfence-without-staging',
    request: 'The same for payments (prod), but only prod may come in.',
    steps: only('create-ringfence', { ...app('payments', 'prod'), environments: ['prod'], dry_run: true }),
    facts: factsOfPlan,
    answer: answerOfPlan,
    before: { calls: 1, bytes: 32_894 },
  },
  {
    name: 'ringfence-several',
    request: 'Plan the ringfences of ordering and shipping (prod) together.',
    steps: only('ringfence-batch', { apps: [app('ordering', 'prod'), app('shipping', 'prod')], dry_run: true }),
    facts: ([answer]) => ({ summary: answer.summary }),
    answer: ({ summary }) =>
      `${summary.successful} of ${summary.total_apps} planned; ${summary.sources_cut} sources would be cut.`,
    before: { calls: 1, bytes: 72_309 },
  },
  {
    name: 'infrastructure-first',
    request: 'Which applications does everybody depend on, so that we write policy for them first?',
    steps: only('identify-infrastructure-services', { top_n: 10 }),
    facts: ([answer]) => ({ tiers: answer.summary.tier_counts, recommendation: answer.summary.recommendation }),
    answer: ({ recommendation }) => recommendation,
    before: { calls: 1, bytes: 10_727 },
  },
  {
    name: 'way-to-treasury',
    request: 'Somebody is in web-shop (prod). Can they get to treasury (prod), and how?',
    steps: only('detect-lateral-movement-paths', {
      ...app('web-shop', 'prod'),
      target: 'treasury|prod',
    }),
    facts: ([answer]) => ({
      paths: answer.paths_total,
      message: answer.message,
      recommendation: answer.recommendation,
    }),
    answer: ({ paths, message }) => (paths === 0 ? message : `By ${paths} paths.`),
    before: { calls: 1, bytes: 12_741 },
  },
  {
    name: 'pci-of-payments',
    request: 'How does payments (prod) stand against PCI DSS?',
    steps: only('compliance-check', { framework: 'pci-dss', ...app('payments', 'prod') }),
    facts: ([answer]) => ({
      score: answer.compliance_score,
      findings: Object.fromEntries(answer.findings.map((finding: Json) => [finding.id, finding.status])),
    }),
    answer: ({ score }) => `${score} of 100.`,
    before: { calls: 1, bytes: 5689 },
  },
  {
    name: 'narrow-an-ip-list',
    request: 'What would change if "Corporate networks" were 10.0.0.0/8 only?',
    steps: only('update-iplist', { name: 'Corporate networks', ip_ranges: [{ from_ip: '10.0.0.0/8' }], dry_run: true }),
    facts: ([answer]) => ({ message: answer.message }),
    answer: ({ message }) => message,
    before: { calls: 1, bytes: 784 },
  },
  {
    name: 'keep-ssh-out',
    request: 'Deny SSH from the Internet to prod, and show what waits for provisioning.',
    steps: [
      {
        tool: 'create-deny-rule',
        arguments: {
          ruleset_name: 'Core services',
          providers: ['env=prod'],
          consumers: ['iplist:Internet'],
          ingress_services: ['SSH'],
        },
      },
      { tool: 'compare-draft-active' },
    ],
    facts: ([, pending]) => ({ pending: pending.total_pending_changes }),
    answer: ({ pending }) => `The rule is in the draft; ${pending} change waits.`,
    before: { calls: 2, bytes: 1899 },
  },
  {
    name: 'provision-one-change',
    request: 'Allow notifications (prod) to reach billing (prod) on HTTPS, and provision only that.',
    steps: [
      {
        tool: 'create-ruleset',
        arguments: {
          name: 'notifications to billing',
          scopes: [['app=billing', 'env=prod']],
          rules: [
            {
              providers: ['ams'],
              consumers: ['app=notifications', 'env=prod'],
              ingress_services: ['HTTPS'],
              unscoped_consumers: true,
            },
          ],
        },
      },
      { tool: 'compare-draft-active', arguments: { resource_type: 'rule_sets' } },
      {
        tool: 'provision-policy',
        arguments: ([made]) => ({ hrefs: [made.ruleset.href], change_description: 'notifications to billing' }),
      },
    ],
    facts: ([, pending, done]) => ({ pending: pending.total_pending_changes, done: done.message }),
    answer: ({ done }) => done,
    before: { calls: 3, bytes: 3117 },
  },
  {
    name: 'who-changed-it',
    request: 'Who changed the IP list "Branch offices" today?',
    steps: [
      {
        tool: 'update-iplist',
        arguments: { name: 'Branch offices', description: 'Sites without servers of their own' },
      },
      { tool: 'get-events', arguments: { object: 'Branch offices' } },
    ],
    facts: ([, answer]) => ({ events: answer.total_count }),
    answer: ({ events }) => `${events} event.`,
    before: { calls: 2, bytes: 1417 },
  },
  {
    name: 'onboard-a-device',
    request: 'Add a badge reader at 10.90.0.7 to a new application badge-access (prod).',
    steps: [
      { tool: 'create-label', arguments: { key: 'app', value: 'badge-access' } },
      {
        tool: 'create-workload',
        arguments: {
          name: 'badge-reader-1',
          ip_addresses: ['10.90.0.7'],
          labels: ['app=badge-access', 'env=prod'],
        },
      },
      { tool: 'get-workloads', arguments: { labels: ['app=badge-access'] } },
    ],
    facts: ([, , answer]) => ({
      workloads: rowsOf(answer).map(({ name, ip_addresses }) => `${name} (${ip_addresses})`),
    }),
    answer: ({ workloads }) => `${list(workloads)} is in the inventory.`,
    before: { calls: 3, bytes: 979 },
  },
  {
    name: 'enforce-one-workload',
    request: 'What breaks if ordering-prod-web-01 goes to full enforcement?',
    steps: only('update-workload', { name: 'ordering-prod-web-01', enforcement_mode: 'full', dry_run: true }),
    facts: ([answer]) => ({ connections: answer.effect.traffic.connections }),
    answer: ({ connections }) => `${connections.cut} of its connections would be cut, ${connections.kept} kept.`,
    before: { calls: 1, bytes: 4165 },
  },
]

import type { FlowNode } from '../../schemas/pce/traffic.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { buildPolicyView } from '../policy-versions/build-policy-view.js'
import type { World } from '../world.js'
import { reportFlows } from './report-flows.js'
import type { Parameters } from './report-parameters.js'

/** The traffic export: a head line, then one row per flow. */
export function* exportTraffic(world: World, parameters: Parameters): Generator<readonly unknown[]> {
  yield [
    'Source IP',
    'Source Hostname',
    'Source Labels',
    'Destination IP',
    'Destination Hostname',
    'Destination Labels',
  ].concat(['Port', 'Protocol', 'Process', 'Connections', 'Policy Decision', 'First Detected', 'Last Detected'])
  for (const flow of reportFlows(world, parameters)) {
    const { port, proto, process_name } = flow.service
    yield [
      ...describeEnd(flow.src),
      ...describeEnd(flow.dst),
      port,
      proto,
      process_name,
      flow.num_connections,
      flow.policy_decision,
      flow.timestamp_range?.first_detected,
      flow.timestamp_range?.last_detected,
    ]
  }
}

function describeEnd({ ip, fqdn, workload }: FlowNode): unknown[] {
  return [ip, workload?.hostname ?? fqdn, (workload?.labels ?? []).map(({ value }) => value).join(';')]
}

/** The rule hit counts: how many connections each active rule, allow or deny, was seen to decide. */
export function* countRuleHits(world: World, parameters: Parameters): Generator<readonly unknown[]> {
  const active = buildPolicyView(world, 'active')
  const hits = new Map<string, number>()
  // Judged as a draft, rows name the rules that decide them (P39).
  for (const flow of reportFlows(world, parameters, { draft: active })) {
    const deciding = [flow.rules, flow.enforcement_boundaries, flow.override_deny_rules] as (
      { href: string }[] | null
    )[]
    for (const { href } of deciding.flatMap((rules) => rules ?? [])) {
      hits.set(href, (hits.get(href) ?? 0) + (flow.num_connections ?? 0))
    }
  }
  const wanted = new Set((parameters.rule_sets ?? []).map(({ href }) => href.replace('/active/', '/draft/')))
  const rows = active.ruleSets
    .filter(({ href }) => wanted.size === 0 || wanted.has(href))
    .flatMap((ruleSet) => rulesOf(ruleSet).map(({ href, type }) => [ruleSet.name, href, type, hits.get(href) ?? 0]))
  yield ['Rule Set', 'Rule', 'Type', 'Hit Count']
  yield* rows.slice(0, parameters.max_results ?? Infinity)
}

function rulesOf({ rules, deny_rules }: RuleSet): { href: string; type: string }[] {
  return [
    ...(rules ?? []).map(({ href }) => ({ href: href ?? '', type: 'allow' })),
    ...(deny_rules ?? []).map(({ href, override }) => ({
      href: href ?? '',
      type: override === true ? 'override_deny' : 'deny',
    })),
  ]
}

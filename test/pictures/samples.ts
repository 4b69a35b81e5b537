/** Answers to draw, of any size, in the shapes of the tools. */
import type { MapAnswer } from '../../pictures/facts/map-facts.js'
import type { MovementAnswer } from '../../tools/ringfence/detect-lateral-movement-paths.js'

const ENVS = ['prod', 'staging', 'dev', 'test']
const POLICIES = ['allowed', 'potentially_blocked', 'blocked', 'unknown']
const WINDOW = { start: '2026-06-08T00:00:00Z', end: '2026-06-14T23:59:59Z' }

/** A fixed sequence of numbers from 0 up to 1. */
function numbers(): () => number {
  let state = 1
  return () => (state = (state * 1664525 + 1013904223) % 2 ** 32) / 2 ** 32
}

/** Traffic between so many groups over so many lines, some of it from and to outside. */
export function mapAnswer(groups: number, lines: number, nameOf = (at: number) => `application-${at}`): MapAnswer {
  const next = numbers()
  const names = Array.from({ length: groups }, (_, at) => `${nameOf(at)} (${ENVS[at % ENVS.length]})`)
  const outside = [
    'unlabelled',
    'external:Internet',
    ...Array.from({ length: 10 }, (_, at) => `external:host-${at}.example`),
  ]
  const seen = new Set<string>()
  const rows: MapAnswer['app_to_app'] = []
  while (rows.length < lines) {
    const pick = () =>
      next() < 0.08 ? outside[Math.floor(next() * outside.length)]! : names[Math.floor(next() ** 2 * groups)]!
    const row = { from: pick(), to: pick(), policy: POLICIES[Math.floor(next() ** 2 * POLICIES.length)]! }
    const key = JSON.stringify(row)
    if (row.from === row.to || seen.has(key)) continue
    seen.add(key)
    const connections = Math.ceil(10 ** (next() * 6))
    rows.push({ ...row, connections, bytes_in: 0, bytes_out: 0, first_detected: null, last_detected: null })
  }
  rows.sort((a, b) => b.connections - a.connections)
  return {
    app_to_app: rows,
    section_totals: { by_process: 0, external_destinations: 0, blocked: 0, app_to_app: rows.length },
    totals: {
      rows: rows.length,
      connections: rows.reduce((sum, { connections }) => sum + connections, 0),
      bytes_in: 0,
      bytes_out: 0,
      distinct_processes: 0,
      pce_flows: rows.length,
      unparseable: 0,
      truncated_at: 200_000,
      truncated: false,
    },
    window: WINDOW,
  }
}

/** Two paths from one start; the one in the middle is a bridge, and one hop uses SSH. */
export function pathsAnswer(name = 'payments'): MovementAnswer {
  const [start, middle, near, far] = [`${name}|prod`, 'jump-hosts|prod', 'ledger|prod', 'treasury|prod']
  const edge = (from: string, to: string, risky: number[]) => ({
    from,
    to,
    connections: 1200,
    ports: risky.length > 0 ? ['22/tcp'] : ['443/tcp'],
    ports_total: 1,
    high_risk_ports: risky,
    policy_decisions: { potentially_blocked: 1200 },
  })
  return {
    lookback_days: 30,
    total_apps: 4,
    app_to_app_flows: 3,
    total_edges: 3,
    blocked_edges: 0,
    articulation_points: 1,
    high_risk_bridge_nodes: [
      {
        app: 'jump-hosts',
        env: 'prod',
        is_articulation_point: true,
        reachable_apps: 2,
        direct_connections_out: 2,
        direct_connections_in: 1,
      },
    ],
    top_reachable_nodes: [],
    high_risk_edges: [],
    high_risk_edges_total: 0,
    paths_from: [start],
    max_hops: 4,
    paths: [
      { path: [start, middle, near], hops: 2 },
      { path: [start, middle, far], hops: 2 },
    ],
    paths_total: 2,
    path_edges: [edge(start, middle, [22]), edge(middle, near, []), edge(middle, far, [])],
    recommendation: 'Ringfence jump-hosts first.',
    window: WINDOW,
    flows_truncated: false,
    analysed: { pce_flows: 3, rows: 3, unparseable: 0, row_limit: 200_000 },
    truncated: false,
  }
}

const manyOf = <One>(count: number, make: (at: number) => One): One[] =>
  Array.from({ length: count }, (_, at) => make(at))

/** Changed objects, the first with so many rules, fields and risks; `name` is that of the first and in its values. */
export const changeAnswer = ({
  objects,
  rules = 0,
  fields = 1,
  risks = 0,
  name = 'Object 0',
}: {
  objects: number
  rules?: number
  fields?: number
  risks?: number
  name?: string
}) => ({
  total_pending_changes: objects,
  changes: {
    updated: manyOf(objects, (at) => ({
      type: 'rule_sets',
      name: at === 0 ? name : `Object ${at}`,
      href: `/orgs/1/sec_policy/draft/rule_sets/${at}`,
      effect: at === 0 ? 'widening' : 'neutral',
      ...(at === 0 && {
        risks: manyOf(risks, (risk) => `risk_${risk}`),
        rules: manyOf(rules, (rule) => ({
          rule_type: 'allow',
          rule: `web → rule ${rule}`,
          change: 'changed',
          effect: 'widening',
          fields: [{ field: 'consumers', active: ['web'], draft: ['web', name] }],
        })),
      }),
      fields: manyOf(at === 0 ? fields : 1, (field) => ({
        field: `field_${field}`,
        active: `${name} before`,
        draft: `${name} after`,
      })),
    })),
  },
})

/** A dry run of a ringfence: so many sources let in, one cut, and so many destinations. */
export function ringfenceAnswer({
  sources,
  destinations = 0,
  name = 'payments',
}: {
  sources: number
  destinations?: number
  name?: string
}) {
  const peer = (kind: string) => (at: number) => ({
    app: `${kind}-${at}`,
    env: 'prod',
    connections: 10,
    ports_total: 1,
    observed_ports: [{ port: 8443, proto: 6, connections: 10, policy_decision: 'potentially_blocked' }],
  })
  return {
    message: 'Nothing was written.',
    app: name,
    env: 'prod',
    selective: true,
    workloads: { total: 12, managed: 12, enforcement_modes: { visibility_only: 12 } },
    flows_analysed: { inbound: 40, outbound: 20 },
    ruleset: { name: `${name} | prod` },
    inbound_remote_apps: manyOf(sources, (at) => ({ ...peer('source')(at), coverage: 'newly_allowed', rule: 'new' })),
    outbound_remote_apps: manyOf(destinations, peer('destination')),
    would_be_cut: [
      { effect: 'cut', kind: 'unmanaged', source: `${name} intruder`, sources: 1, connections: 3, ports: ['3389/tcp'] },
    ],
    infrastructure_sources: [],
    warnings: [],
    window: WINDOW,
  }
}

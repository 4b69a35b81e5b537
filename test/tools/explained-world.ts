/** A random estate on the simulator, with what its evaluator decides: which shares no code with the tools. */
import fc from 'fast-check'
import type { Test } from 'tap'
import type { Label } from '../../schemas/pce/label.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { PolicyView } from '../../pce-simulator/model.js'
import { createEvaluator } from '../../pce-simulator/policy/evaluate.js'
import type { Verdict } from '../../pce-simulator/policy/judge-end.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { randomCase, type RandomCase } from './random-estate.js'

export interface AskedPort {
  port?: number
  proto: number
  process?: string
  service?: string
}

/** By host name or address. */
export type Evaluate = (from: string, to: string, on: AskedPort) => Verdict

const list = <T>({ simulator }: Bench, path: string) => (simulator.state.find(path) ?? []) as unknown as T[]

/** The policy of one version as the simulator has it. */
export function viewOf(bench: Bench, version: 'draft' | 'active'): PolicyView {
  const of = <T extends { href: string; update_type?: string | null }>(kind: string) =>
    list<T>(bench, `/orgs/1/sec_policy/${version}/${kind}`).filter(({ update_type: type }) => type !== 'delete')
  const byHref = <T extends { href: string }>(kind: string) => new Map(of<T>(kind).map((one) => [one.href, one]))
  return {
    ruleSets: of<RuleSet>('rule_sets'),
    boundaries: of<EnforcementBoundary>('enforcement_boundaries'),
    ipLists: byHref('ip_lists'),
    services: byHref('services'),
    labelGroups: new Map(),
  }
}

/**
 * The evaluator of a policy. Programs run at the destination, whose VEN reports. With `needsRules`, ends that let pass
 * what no rule allows count as ends that report it: in selective mode the PCE records it so, and idle ends are judged as
 * if they were in visibility_only. Hosts for which `sleeps` holds enforce nothing, so that the other end decides alone.
 */
export function evaluatorOf(
  bench: Bench,
  view: PolicyView,
  { needsRules = false, sleeps = () => false }: { needsRules?: boolean; sleeps?: (name: string) => boolean } = {},
): Evaluate {
  const asJudged = (one: Workload): Workload =>
    sleeps(one.name ?? '')
      ? { ...one, enforcement_mode: 'idle' }
      : needsRules && one.enforcement_mode === 'idle'
        ? { ...one, enforcement_mode: 'visibility_only' }
        : one
  const workloads = new Map(list<Workload>(bench, '/orgs/1/workloads').map((one) => [one.href, asJudged(one)]))
  const labels = new Map(list<Label>(bench, '/orgs/1/labels').map((one) => [one.href, one]))
  const byName = new Map([...workloads.values()].map((one) => [one.name ?? '', one]))
  const evaluate = createEvaluator(view, workloads, labels, needsRules ? 'potentially_blocked' : 'allowed')
  const endOf = (name: string) => {
    const host = byName.get(name)
    return host === undefined ? { ip: name } : { workload: host.href, ip: host.interfaces![0]!.address! }
  }
  return (from, to, { port, proto, process, service }) =>
    evaluate({
      src: endOf(from),
      dst: endOf(to),
      service: {
        ...(port !== undefined && { port }),
        proto,
        ...(process !== undefined && { process_name: process }),
        ...(service !== undefined && { windows_service_name: service }),
      },
      flowDirection: 'inbound',
    })
}

/** Where nobody has a VEN, nobody says anything, and it passes. */
export const decisionOf = ({ decision }: Verdict): string => (decision === 'unknown' ? 'allowed' : decision)

/** The arguments of a tool that is asked about a flow. */
export const flowArguments = (
  source: unknown,
  destination: unknown,
  { port, proto, process, service }: AskedPort,
): Json => ({
  source,
  destination,
  ...(port !== undefined && { port }),
  proto,
  ...(process !== undefined && { process_name: process }),
  ...(service !== undefined && { windows_service_name: service }),
})

/** Switches rules on or off in the draft; they are counted through all rule sets. */
export async function toggleRules(bench: Bench, toggled: readonly number[]): Promise<void> {
  const rules = viewOf(bench, 'draft').ruleSets.flatMap((set) => [...(set.rules ?? []), ...(set.deny_rules ?? [])])
  for (const at of toggled) {
    const rule = rules[at]
    if (rule !== undefined) await bench.pce.put(rule.href, { includeOrg: false, json: { enabled: !rule.enabled } })
  }
}

export const SEED = 20261125
export const FLOWS_OF_CASE = 20

/** Addresses that no host has. */
export const OUTSIDE = ['192.168.10.7', '192.168.10.9', '8.8.8.8', '172.16.5.5', '2a00:1450::8', '10.0.2.77']
const WORKER = 'c:\\windows\\system32\\inetsrv\\w3wp.exe'
/** Programs run at the destination. */
export const PORTS: AskedPort[] = [
  { port: 443, proto: 6 },
  { port: 443, proto: 6 },
  { port: 8531, proto: 6 },
  { port: 8531, proto: 6, service: 'WsusService' },
  { port: 8531, proto: 6, process: WORKER },
  { port: 22, proto: 6 },
  { port: 445, proto: 6 },
  { port: 53, proto: 17 },
  { port: 67, proto: 17 },
  { proto: 1 },
  { proto: 47 },
]
export interface AskedFlow {
  from: string
  to: string
  on: AskedPort
}

export const hostsOf = ({ estate }: RandomCase) => Object.keys(estate.hosts ?? {})

/** Flows between any two ends of which one is a host. */
export function flowsOf(one: RandomCase, seed: number): AskedFlow[] {
  const ends = [...hostsOf(one), ...OUTSIDE]
  const flow = fc.record({
    from: fc.constantFrom(...ends),
    to: fc.constantFrom(...ends),
    on: fc.constantFrom(...PORTS),
  })
  const isAny = ({ from, to }: AskedFlow) => from !== to && (hostsOf(one).includes(from) || hostsOf(one).includes(to))
  return fc.sample(flow.filter(isAny), { numRuns: FLOWS_OF_CASE, seed })
}

/** The estate on a simulator, with its draft changes. */
export async function startCase(t: Test, one: RandomCase): Promise<Bench> {
  const bench = await startBench(t, { estate: handMade(one.estate) })
  await toggleRules(bench, one.toggled)
  return bench
}

/** Random estates; the same for the same seed. */
export const casesOf = (count: number, seed: number) => fc.sample(randomCase, { numRuns: count, seed })

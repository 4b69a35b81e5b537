import { ENFORCEMENT_MODES } from '../../schemas/pce/workload.js'
import { POLICY_DECISIONS } from '../../schemas/pce/words.js'
import type { World } from '../world.js'
import { assessAppGroups } from './assess-app-groups.js'
import { assessRisk, isEnforced, protectionOf } from './assess-risk.js'
import { readWindow, type Parameters } from './report-parameters.js'
import { reportFlows } from './report-flows.js'

/** The lines of the executive summary. */
export function summariseForExecutives(world: World, parameters: Parameters): string[] {
  const workloads = world.workloads.live()
  const managed = workloads.filter((workload) => workload.managed !== false)
  const decisions = new Map<string, number>()
  for (const { policy_decision } of reportFlows(world, parameters)) {
    decisions.set(policy_decision, (decisions.get(policy_decision) ?? 0) + 1)
  }
  const risks = assessRisk(world)
  const unenforced = risks.filter(({ workload }) => !isEnforced(workload))
  return [
    'Executive Summary',
    ...describePeriod(world, parameters),
    '',
    `Workloads: ${workloads.length}, of them managed: ${managed.length}`,
    ...ENFORCEMENT_MODES.map(
      (mode) => `  ${mode}: ${managed.filter((workload) => workload.enforcement_mode === mode).length}`,
    ),
    `Rule sets: ${world.policy.entries('rule_sets').filter(({ active }) => active !== null).length}`,
    `Flows by decision of the active policy:`,
    ...POLICY_DECISIONS.map((decision) => `  ${decision}: ${decisions.get(decision) ?? 0}`),
    `Ransomware protection coverage: ${protectionOf(risks.flatMap(({ ports }) => ports))} %`,
    `Workloads without enforcement: ${unenforced.length}`,
  ]
}

/** The lines of the app group summary, of the groups asked for or of all. */
export function summariseAppGroups(world: World, parameters: Parameters): string[] {
  const wanted = (parameters.app_groups ?? []).map((labels) => labels.map(({ label }) => label.href))
  const groups = assessAppGroups(world).filter(({ group }) => {
    const bears = new Set(group.labels.map(({ href }) => href))
    return wanted.length === 0 || wanted.some((hrefs) => hrefs.every((href) => bears.has(href)))
  })
  return [
    'App Group Summary',
    ...describePeriod(world, parameters),
    '',
    ...groups.flatMap(({ group, risks }) => [
      group.labels.map(({ value }) => value).join(' | '),
      `  workloads: ${group.workloads.length}, managed: ${risks.length}`,
      `  ransomware protection: ${protectionOf(risks.flatMap(({ ports }) => ports))} %`,
    ]),
  ]
}

function describePeriod(world: World, parameters: Parameters): string[] {
  const { start, end } = readWindow(world, parameters)
  return [`From ${new Date(start).toISOString()} to ${new Date(end).toISOString()}`, `Generated at ${world.now()}`]
}

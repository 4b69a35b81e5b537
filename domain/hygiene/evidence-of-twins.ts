import { PceApiError, PceError } from '../../pce-client/index.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { IncompleteListError, pickEvery } from '../inventory/fetch-every.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { loadSnapshot, rulesInForce, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { isWrittenTo, type End } from '../policy/match-rules.js'
import { anyOf, isUnknown } from '../policy/three-valued.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { createConversationReader } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { Machine } from './known-machines.js'

/** What hangs on a workload. A part that could not be read is null. */
export interface TwinEvidence {
  /** Rules in force that name the workload in any way, and those of which that is not known. */
  rules: { applying: number; undecided: number } | null
  /** Rules and enforcement boundaries, in force or not, of the draft or the active policy, that name it by itself. */
  named: number | null
  /** Virtual services that are bound to it. */
  bindings: number | null
  traffic: { connections: number; last: number | null } | null
}

export interface EvidenceRead {
  of: (href: string) => TwinEvidence
  /** What could not be read, or only in part, in sentences. */
  warnings: string[]
}

type Ctx = ToolContext<true>

/** Reads which rules, virtual services and traffic hang on the given workloads. */
export async function readEvidence(
  ctx: Ctx,
  machines: readonly Machine[],
  index: LabelIndex,
  window: TrafficWindow,
): Promise<EvidenceRead> {
  const warnings: string[] = []
  /** Runs a read, and notes in a sentence what is not known if the PCE does not answer it. */
  const attempt = async <T>(what: string, read: () => Promise<T>): Promise<T | null> => {
    try {
      return await read()
    } catch (error) {
      if (ctx.signal.aborted || !(error instanceof PceError || error instanceof IncompleteListError)) throw error
      warnings.push(`${what} is not known: ${error.message}`)
      return null
    }
  }
  const hrefs = new Set(machines.map(({ href }) => href))
  const policy = await attempt('Which rules hang on them', () => readRules(ctx, machines, index, warnings))
  const bindings = await attempt('Which virtual services are bound to them', () => countBindings(ctx, hrefs))
  const traffic = await attempt('What traffic they have', () => readTraffic(ctx, hrefs, index, window, warnings))
  return {
    warnings,
    of: (href) => ({
      rules: policy?.applying.get(href) ?? null,
      named: policy === null ? null : (policy.named.get(href) ?? 0),
      bindings: bindings === null ? null : (bindings.get(href) ?? 0),
      traffic: traffic === null ? null : (traffic.get(href) ?? { connections: 0, last: null }),
    }),
  }
}

async function readRules(ctx: Ctx, machines: readonly Machine[], index: LabelIndex, warnings: string[]) {
  const [draft, active] = [
    await withDenyRules(ctx, await loadSnapshot(ctx, 'draft', index)),
    await withDenyRules(ctx, await loadSnapshot(ctx, 'active', index)),
  ]
  const unread = new Set([...draft.unread.keys(), ...active.unread.keys()]).size
  if (unread > 0) warnings.push(`The deny rules of ${unread} rule sets could not be read, and are not counted.`)
  return workInTurns(judgeRules(machines, draft, active), ctx.signal)
}

function* judgeRules(
  machines: readonly Machine[],
  draft: PolicySnapshot,
  active: PolicySnapshot,
): Steps<{ applying: Map<string, { applying: number; undecided: number }>; named: Map<string, number> }> {
  const wanted = new Set(machines.map(({ href }) => href))
  const naming = new Map<string, Set<string>>()
  for (const { ruleSets, boundaries } of [draft, active]) {
    const rules = ruleSets.flatMap((set) => [...(set.rules ?? []), ...(set.deny_rules ?? [])])
    for (const rule of [...rules, ...boundaries]) {
      yield
      for (const { workload } of [...(rule.providers ?? []), ...(rule.consumers ?? [])])
        if (workload !== undefined && wanted.has(workload.href))
          naming.set(workload.href, (naming.get(workload.href) ?? new Set()).add(toDraftHref(rule.href)))
    }
  }
  const placed = RULE_TYPES.flatMap((type) => rulesInForce(active, type))
  const applying = new Map<string, { applying: number; undecided: number }>()
  for (const machine of machines) {
    const end = endOf(machine)
    const count = { applying: 0, undecided: 0 }
    for (const rule of placed) {
      yield
      const answer = anyOf((['providers', 'consumers'] as const).map((side) => isWrittenTo(rule, side, end, active)))
      if (answer === 'yes') count.applying += 1
      else if (isUnknown(answer)) count.undecided += 1
    }
    applying.set(machine.href, count)
  }
  return { applying, named: new Map([...naming].map(([href, rules]) => [href, rules.size])) }
}

const endOf = ({ href, labels }: { href: string; labels: readonly LabelRef[] }): End => ({
  workload: href,
  labels: Object.fromEntries(
    labels.flatMap(({ key, value }) => (key === undefined || value === undefined ? [] : [[key, value]])),
  ),
  ip: null,
  fqdn: null,
})

async function countBindings({ pce, signal }: Ctx, hrefs: ReadonlySet<string>): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  try {
    const bound = await pickEvery({ api: pce.serviceBindings, params: {}, signal }, (binding: object) => {
      const { workload } = binding as { workload?: { href?: string } | null }
      return workload?.href !== undefined && hrefs.has(workload.href) ? workload.href : undefined
    })
    for (const href of bound) counts.set(href, (counts.get(href) ?? 0) + 1)
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
  }
  return counts
}

async function readTraffic(
  ctx: Ctx,
  hrefs: ReadonlySet<string>,
  index: LabelIndex,
  window: TrafficWindow,
  warnings: string[],
): Promise<Map<string, { connections: number; last: number | null }>> {
  const found = new Map<string, { connections: number; last: number | null }>()
  const own = { include: [...hrefs].map((href) => [{ workload: { href } }]), exclude: [] }
  const encoder = createFlowEncoder(index)
  const read = createConversationReader(ctx, encoder)
  const add = (end: number, connections: number, last: number) => {
    const { workload } = encoder.ends.end(end)
    if (workload === null || !hrefs.has(workload)) return
    const known = found.get(workload) ?? { connections: 0, last: null }
    known.connections += connections
    known.last = Math.max(known.last ?? 0, last)
    found.set(workload, known)
  }
  const request = { name: 'mcp-duplicate-workloads', window }
  const reads = [
    await read({ ...request, filters: { sources: anything(), destinations: own } }, (row) =>
      add(row.dst, row.connections, row.last),
    ),
    await read({ ...request, filters: { sources: own, destinations: anything() } }, (row) =>
      add(row.src, row.connections, row.last),
    ),
  ]
  if (reads.some(({ truncated }) => truncated))
    warnings.push('Not all of their traffic could be read: connections are at least these.')
  return found
}

import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Label } from '../../schemas/pce/label.js'
import type { VirtualService } from '../../schemas/pce/virtual-service.js'
import { ToolError } from '../../schemas/errors.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { parseHref } from '../inventory/parse-href.js'
import { ambiguousName } from '../inventory/tell-apart.js'
import { nearNames } from '../text/compare-texts.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { countIpTables } from '../policy/ip-tables.js'
import { namesOf, withUserGroups } from '../policy/name-references.js'
import { countIntervals, uniteAddresses } from '../policy/name-addresses.js'
import { workInTurns } from '../text/pace-work.js'
import { countModes, labelsOf, readMachines, type Machine, type MachineClass, type Machines } from './group-machines.js'
import { draftHrefOf, loadPolicy, type ReadType, type WholePolicy } from './load-policy.js'
import { divideRows, resolveRows, type ResolvedRows, type RowDirection, type RowPart } from './resolve-rows.js'
import type { Virtual } from './resolve-sides.js'
import { snapshotOf } from './snapshot-of-version.js'

/**
 * Selects the rules to resolve: those of the workloads that have all these labels, or those of one rule set, given by
 * href or name.
 */
export type Subject = { labels: readonly Label[] } | { ruleSet: string }

/** Workloads that an answer mentions: their number, and the names of the first few. */
export interface Counted {
  total: number
  examples: readonly string[]
}

/** The selected rules written as addresses and ports, and the parts of them that cannot be written in this way. */
export interface ResolvedPolicy extends Omit<ResolvedRows, 'rows' | 'named'> {
  /** The rule set; absent if the rules were selected by labels. */
  ruleSet?: RuleSet
  parts: readonly RowPart[]
  /** Number of parts beyond those in `parts`. */
  partsCut: number
  /** The workloads to which the selected rules apply. */
  workloads: { total: number; modes: Readonly<Partial<Record<EndMode, number>>>; intervals: number }
  /** Workloads named by the rules for which the rows may be wrong or lack addresses, by the reason. */
  named: Readonly<Record<'without_address' | 'offline' | 'shared_address' | 'kubernetes', Counted>>
  /** Number of iptables rules that may be in force at the workloads. */
  ipTables: number
  unreadPods: string | null
}

/** The types of policy objects that must be read to resolve rules. */
const NEEDED: readonly ReadType[] = [
  'rule_sets',
  'ip_lists',
  'services',
  'label_groups',
  'enforcement_boundaries',
  'virtual_services',
]

/** Maximum number of workload names given as examples. */
const MOST_EXAMPLES = 3

/**
 * Reads a version of the policy and the present workloads, and resolves the rules of a subject to addresses. Labels and
 * workloads have no versions, so rules of the past are resolved with the labels and addresses of today.
 * @param direction limits the rows to one direction. Rows that read the same at both ends belong to each direction.
 * @throws {ToolError} not_found if the version cannot be read, or if it does not have the rule set.
 */
export async function resolvePolicy(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  version: PolicyVersionSelector,
  subject: Subject,
  direction: RowDirection = 'both',
): Promise<ResolvedPolicy> {
  const { pce, signal } = ctx
  const labels = await loadLabels(pce, ctx)
  const whole = await loadPolicy(pce, version, signal, NEEDED)
  const machines = await readMachines(ctx, labels)
  const policy = snapshotOf(whole, version, labels)
  const only = 'ruleSet' in subject ? findRuleSet(policy.ruleSets, subject.ruleSet) : undefined
  const named = namesOf(policy, (href) => machines.byHref.get(href)?.machine.name)
  const names = await withUserGroups(
    ctx,
    named,
    (only === undefined ? policy.ruleSets : [only]).flatMap(({ rules }) => rules ?? []),
  )
  const isMeant = createMeant(subject)
  const options = { isMeant, direction, ...(only !== undefined && { only: only.href }) }
  const {
    rows,
    named: group,
    ...resolved
  } = await workInTurns(resolveRows(policy, machines, virtualOf(whole, labels), names, options), signal)
  const { parts, cut } = await workInTurns(divideRows(rows), signal)
  const own = 'ruleSet' in subject ? [] : machines.classes.filter(isMeant)
  const members = own.flatMap((one) => one.machines)
  return {
    ...resolved,
    ...(only !== undefined && { ruleSet: only }),
    parts,
    partsCut: cut,
    workloads: {
      total: members.length,
      modes: countModes(members),
      intervals: countIntervals(uniteAddresses(own.map(({ addresses }) => addresses))),
    },
    named: describeNamed(machines, [
      ...group.classes.flatMap((at) => (machines.classes[at] as MachineClass).machines),
      ...group.single,
    ]),
    ipTables: Math.max(0, ...own.map(({ end }) => countIpTables(policy, end))),
    unreadPods: machines.unreadPods,
  }
}

/** Lists the virtual services of a version as ends with their own labels, by which rules and scopes name them. */
function virtualOf({ virtual_services: all }: WholePolicy, labels: LabelIndex): Virtual[] {
  return ([...all.values()] as VirtualService[]).map(({ href, name, labels: refs }) => ({
    href,
    name,
    end: { workload: '', labels: labelsOf(refs, labels), ip: null, fqdn: null },
  }))
}

/**
 * Finds the rule set that a caller names, in the version that was read.
 * @throws {ToolError} not_found with similar names, or ambiguous_name if several have the name.
 */
function findRuleSet(all: readonly RuleSet[], asked: string): RuleSet {
  const text = trimBlanks(asked)
  const isHref = text.startsWith('/')
  const href = isHref ? (parseHref(text)?.parent?.href ?? text) : text
  const found = all.filter((one) => (isHref ? one.href === draftHrefOf(href) : one.name === text))
  const [first, ...others] = found
  if (others.length > 0)
    throw ambiguousName(`rule_set: ${found.length} rule sets are named ${quote(text)}.`, found, WHERE)
  if (first !== undefined) return first
  const near = isHref
    ? []
    : nearNames(
        text,
        all.map(({ name }) => name),
      )
  throw new ToolError('not_found', `rule_set: this version has no rule set that is exactly ${quote(text)}.`, {
    ...WHERE,
    value: text,
    near_names: near,
  })
}

const WHERE = { argument: 'rule_set' }

function createMeant(subject: Subject): (one: MachineClass) => boolean {
  if ('ruleSet' in subject) return () => true
  return ({ end }) => subject.labels.every(({ key, value }) => end.labels[key] === value)
}

function describeNamed({ sharing }: Machines, all: readonly Machine[]): ResolvedPolicy['named'] {
  const distinct = [...new Set(all)]
  const count = (isCounted: (machine: Machine) => boolean): Counted => {
    const counted = distinct.filter(isCounted)
    return { total: counted.length, examples: counted.slice(0, MOST_EXAMPLES).map(({ name }) => name) }
  }
  const isInRows = ({ addresses }: Machine) => countIntervals(addresses) > 0
  return {
    without_address: count((machine) => !isInRows(machine)),
    offline: count((machine) => machine.isOffline && isInRows(machine)),
    shared_address: count(({ href }) => sharing.has(href)),
    kubernetes: count((machine) => machine.isPod && isInRows(machine)),
  }
}

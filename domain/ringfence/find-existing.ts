import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, DenyRule, IngressService, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { Version } from '../inventory/find-object.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { ambiguousName } from '../inventory/tell-apart.js'
import type { Families } from '../policy/addresses.js'
import { isInForce, type PolicyCatalog } from '../policy/load-snapshot.js'
import { coversEveryService, coversServices } from '../policy/match-services.js'
import { isForUnknownNetwork, unknownFieldsOf } from '../policy/rule-conditions.js'
import { quote } from '../text/escape-text.js'

/** The result of searching for an application's ringfence: its rule set, and other rule sets that conflict with it. */
export interface RingfenceFound {
  /** The rule set name that was searched for. */
  name: string
  /**
   * The rule set with exactly the searched name and the scope `[[app, env]]`, even if it is disabled; null if there is
   * no such rule set.
   */
  ruleSet: RuleSet | null
  /** Further rule sets with the same name and scope. */
  others: RuleSet[]
  /**
   * Rule sets that have exactly the searched name but are not the ringfence. They prevent the creation of a ringfence
   * with this name.
   */
  conflicts: { ruleSet: RuleSet; why: 'other_scope' | 'pending_deletion' }[]
}

/**
 * Returns the default name of an application's ringfence, `RF-<app>-<env>` (T15). The person who created the ringfence
 * may have chosen another name.
 */
export const ringfenceName = (application: readonly Label[]): string =>
  ['RF', ...application.map(({ value }) => value)].join('-')

/**
 * Finds the ringfence of an application in one version of the policy. A draft marked for deletion is a conflict, not a
 * ringfence. Throws the errors of the PCE client.
 *
 * @param application the app label and the env label, in this order
 */
export async function findRingfence(
  pce: Pick<PceClient, 'ruleSets'>,
  application: readonly Label[],
  version: Version,
  signal: AbortSignal,
  name = ringfenceName(application),
): Promise<RingfenceFound> {
  const { items } = await fetchEvery({ api: pce.ruleSets, policyVersion: version, params: { name }, signal })
  const found: RingfenceFound = { name, ruleSet: null, others: [], conflicts: [] }
  // The PCE also finds names that only contain the given name, so this server compares the names exactly.
  for (const ruleSet of items.filter((item) => item.name === name)) {
    if (!hasExactScope(ruleSet, application)) found.conflicts.push({ ruleSet, why: 'other_scope' })
    else if (ruleSet.update_type === 'delete') found.conflicts.push({ ruleSet, why: 'pending_deletion' })
    else if (found.ruleSet === null) found.ruleSet = ruleSet
    else found.others.push(ruleSet)
  }
  return found
}

/** Returns true if a rule set has exactly one scope, with exactly the given labels in any order. */
export function hasExactScope({ scopes }: Pick<RuleSet, 'scopes'>, labels: readonly Label[]): boolean {
  const [scope, ...others] = scopes
  if (scope === undefined || others.length > 0 || scope.length !== labels.length) return false
  const wanted = new Set(labels.map(({ href }) => href))
  return scope.every(({ label, exclusion }) => exclusion !== true && label !== undefined && wanted.delete(label.href))
}

/**
 * Finds the application's ringfence with this name, including its deny rules; null if there is none. Throws
 * already_exists {existing_ruleset, reason} if the name belongs to another rule set, or if the ringfence is disabled or
 * pending deletion, because new rules in it would have no effect. Throws ambiguous_name if several rule sets have both
 * this name and the application's scope, because it is not clear which of them should get the rules.
 */
export async function findOwnRuleSet(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  application: readonly Label[],
  name: string,
): Promise<RuleSet | null> {
  const { ruleSet, others, conflicts } = await findRingfence(pce, application, 'draft', signal, name)
  const [conflict] = conflicts
  if (ruleSet !== null && others.length > 0) {
    const text = `${others.length + 1} rule sets are named ${quote(name)} and have exactly this scope. Nothing was written.`
    const hint = 'Rename or delete all but one, or choose another ruleset_name.'
    throw ambiguousName(text, [ruleSet, ...others], { kind: 'rule_sets', name }, hint)
  }
  if (ruleSet === null) {
    if (conflict !== undefined) throw inTheWay(conflict.ruleSet, conflict.why, CONFLICTS[conflict.why])
    return null
  }
  if (ruleSet.enabled === false)
    throw inTheWay(ruleSet, 'disabled', 'is disabled; enable it, or choose another ruleset_name', ENABLE)
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  if (complete === undefined || complete.error !== undefined) {
    const text = `The deny rules of ${quote(name)} could not be read, so nothing was planned or written. ${complete?.error ?? ''}`
    throw new ToolError('pce_error', text.trim(), { ruleset: { href: ruleSet.href, name } })
  }
  return complete.ruleSet
}

const CONFLICTS = {
  other_scope: 'has a scope other than exactly this app and env label; choose another ruleset_name',
  pending_deletion: 'is marked for deletion; provision or revert that first, or choose another ruleset_name',
}

const ENABLE = { hint: 'Look at its rules first: get-rulesets shows them; update-ruleset enables it.' }

function inTheWay({ href, name }: RuleSet, reason: string, why: string, advice: { hint?: string } = {}): ToolError {
  const text = `The rule set ${quote(name)} exists and ${why}. Nothing was written.`
  return new ToolError('already_exists', text, { existing_ruleset: { href, name }, reason }, advice)
}

/** The parts of the draft policy that are needed to interpret the rules of an existing ringfence. */
type Known = Pick<PolicyCatalog, 'keyOf' | 'serviceOf' | 'isAllServices' | 'isAnyList' | 'familiesOf'>

/** The labels of a remote application. */
export interface Remote {
  app: Label
  env: Label
}

/**
 * The traffic that an allow rule of a ringfence must permit: traffic from a remote application, or, if null, traffic
 * inside the application.
 */
export type Need = Remote | null

/**
 * What the existing rules of a ringfence already allow and deny. `covering` returns the href of a rule that allows all
 * of the traffic in question.
 */
export interface Existing {
  covering(need: Need): string | undefined
  /**
   * Returns the rules that seem to be intended for one of the given needs (see `Need`) but do not allow all of its
   * traffic, each with the reason.
   */
  shortOf(needs: readonly Need[]): { href: string; reason: string }[]
  /** Returns the href of a deny rule that covers all the given consumers and services, if there is one. */
  coveringDeny(consumers: readonly Actor[], services: readonly IngressService[]): string | undefined
  /**
   * Hrefs of deny rules in force that do more or less than block every source outside the scope on some or all
   * services. Override deny rules are not included.
   */
  otherDenies: string[]
  /** True if a deny rule in force denies everything that comes from outside the scope. */
  deniesAllInbound: boolean
  overrideDenies: string[]
}

/**
 * Interprets the rules of an existing rule set whose scope is the application. Without a rule set, nothing is covered.
 */
export function readExisting(ruleSet: Pick<RuleSet, 'rules' | 'deny_rules'> | null, known: Known): Existing {
  const rules = (ruleSet?.rules ?? []).map((rule) => ({ rule, reason: narrownessOf(rule, known) }))
  const inForce = (ruleSet?.deny_rules ?? []).filter(isInForce)
  const regular = inForce.filter(({ override }) => override !== true)
  const plain = regular.filter(isPlainDeny)
  return {
    covering: (need) => rules.find(({ rule, reason }) => reason === null && isFor(rule, need))?.rule.href,
    shortOf: (needs) =>
      rules.flatMap(({ rule, reason }) =>
        reason !== null && needs.some((need) => mayBeMeantFor(rule, need, known.keyOf))
          ? [{ href: rule.href, reason }]
          : [],
      ),
    coveringDeny: (consumers, services) =>
      plain.find(
        (rule) =>
          consumers.every((actor) => rule.consumers.some((own) => isSameActor(own, actor))) &&
          coversServices(rule.ingress_services, services, known) === 'yes',
      )?.href,
    otherDenies: regular.filter((rule) => !isForEverybody(rule, known)).map(({ href }) => href),
    deniesAllInbound: plain.some(
      (rule) =>
        coversEveryService(rule.ingress_services, known) === 'yes' &&
        rule.consumers.some((actor) => actor.actors === 'ams' || anyListOf(actor, known)?.ipv4 === 'yes'),
    ),
    overrideDenies: inForce.filter(({ override }) => override === true).map(({ href }) => href),
  }
}

/**
 * Returns the reason why an allow rule permits less than a ringfence rule for the same consumers would; null if it
 * permits no less.
 */
function narrownessOf(rule: Rule, known: Known): string | null {
  if (rule.enabled === false) return 'it is disabled'
  if (rule.update_type === 'delete') return 'its deletion is pending'
  if (coversEveryService(rule.ingress_services, known) !== 'yes') return 'it covers some services only'
  if (!rule.providers.some(({ actors }) => actors === 'ams')) return 'its providers are not all workloads of the scope'
  if ([...rule.providers, ...rule.consumers].some(({ exclusion }) => exclusion === true)) return 'it excludes labels'
  if ((rule.egress_services?.length ?? 0) > 0) return 'it is for some programs only'
  if ((rule.consuming_security_principals?.length ?? 0) > 0) return 'it is for some users only'
  const { resolve_labels_as: resolved } = rule as Partial<Rule>
  if (resolved !== undefined && !(resolved.providers.includes('workloads') && resolved.consumers.includes('workloads')))
    return 'its labels stand for something other than workloads'
  if (!rule.providers.every(isWidening)) return 'its providers include something else'
  if (!rule.consumers.some(({ actors }) => actors === 'ams')) {
    if (rule.consumers.some(({ label_group: group }) => group !== undefined))
      return 'its consumers include a label group'
    // A label with any other key narrows the set of workloads that the app and env labels select.
    if (rule.consumers.some(({ label }) => label !== undefined && !APPLICATION.has(known.keyOf(label.href) ?? '')))
      return 'further labels narrow its consumers'
  }
  if (!rule.consumers.every(isWidening)) return 'its consumers include something else'
  if (!isPlain(rule) || rule.stateless === true || rule.sec_connect === true || rule.machine_auth === true)
    return 'it has further conditions'
  return null
}

/** Returns true for actors that add workloads or addresses to a side of a rule. What other actors do is not known. */
const isWidening = ({ actors, label, label_group: group, workload, ip_list: list }: Actor) =>
  actors === 'ams' || [label, group, workload, list].some((selector) => selector !== undefined)

const APPLICATION = new Set(['app', 'env'])

/**
 * Returns true if the consumers of a rule include every source of the given need (see `Need`). Labels with the same key
 * are alternatives.
 */
function isFor({ consumers, unscoped_consumers: unscoped }: Rule, need: Need): boolean {
  const all = consumers.some(({ actors }) => actors === 'ams')
  if (need === null) return all
  const labels = consumers.flatMap(({ label }) => label?.href ?? [])
  return unscoped === true && (all || [need.app, need.env].every(({ href }) => labels.includes(href)))
}

/**
 * Returns true if a rule seems to be intended for the given need (see `Need`), even if it does not allow all of its
 * traffic. A label group or label dimension among its consumers may stand for the labels of the need.
 */
function mayBeMeantFor(rule: Rule, need: Need, keyOf: Known['keyOf']): boolean {
  if (isFor(rule, need)) return true
  const { consumers, unscoped_consumers: unscoped } = rule
  const isOpen = consumers.some(
    ({ label_group: group, label_dimension: dimension }) => (group ?? dimension) !== undefined,
  )
  if (need === null || unscoped !== true || !isOpen) return false
  return [need.app, need.env].every(({ href, key }) => {
    const ofKey = consumers.flatMap(({ label }) => (label !== undefined && keyOf(label.href) === key ? label.href : []))
    return ofKey.length === 0 || ofKey.includes(href)
  })
}

const isPlain = (
  rule: Pick<Rule, 'network_type' | 'all_ips_except_for_in_consumers' | 'all_ips_except_for_in_providers'>,
) =>
  rule.network_type !== 'non_brn' &&
  !isForUnknownNetwork(rule) &&
  unknownFieldsOf(rule).length === 0 &&
  rule.all_ips_except_for_in_consumers !== true &&
  rule.all_ips_except_for_in_providers !== true

/**
 * Returns true if a deny rule applies to sources outside the scope and to all workloads in the scope, and nothing
 * restricts it except its consumers and services.
 */
const isPlainDeny = (rule: Pick<DenyRule, 'consumers' | 'providers' | 'unscoped_consumers'> & Partial<DenyRule>) =>
  rule.unscoped_consumers === true &&
  rule.providers.some(({ actors }) => actors === 'ams') &&
  ![...rule.providers, ...rule.consumers].some(({ exclusion }) => exclusion === true) &&
  (rule.egress_services?.length ?? 0) === 0 &&
  isPlain(rule)

const isForEverybody = (rule: DenyRule, known: Known) =>
  isPlainDeny(rule) && rule.consumers.every((actor) => actor.actors === 'ams' || anyListOf(actor, known) !== undefined)

const anyListOf = ({ ip_list: list }: Actor, { isAnyList, familiesOf }: Known): Families | undefined =>
  list !== undefined && isAnyList(list.href) ? familiesOf(list.href) : undefined

const isSameActor = (a: Actor, b: Actor) =>
  b.actors === undefined
    ? a.ip_list !== undefined && toDraftHref(a.ip_list.href) === toDraftHref(b.ip_list?.href ?? '')
    : a.actors === b.actors

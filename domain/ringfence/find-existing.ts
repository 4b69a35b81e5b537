import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, DenyRule, IngressService, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { Version } from '../inventory/find-object.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import type { Families } from '../policy/addresses.js'
import { isInForce, type PolicyCatalog } from '../policy/load-snapshot.js'
import { coversEveryService, coversServices } from '../policy/match-services.js'

/** Whether an application has its ringfence, and what conflicts with it. */
export interface RingfenceFound {
  /** The name that was looked for. */
  name: string
  /** The rule set with exactly this name and exactly the scope `[[app, env]]`, even if disabled; null if there is none. */
  ruleSet: RuleSet | null
  /** Rule sets of exactly this name that are not it. They keep the name taken. */
  conflicts: { ruleSet: RuleSet; why: 'other_scope' | 'pending_deletion' }[]
}

/** Name of an application's ringfence unless its maker chose another: `RF-<app>-<env>` (T15). */
export const ringfenceName = (application: readonly Label[]): string =>
  ['RF', ...application.map(({ value }) => value)].join('-')

/**
 * The ringfence of an application, given by its app and its env label in this order, in one version of the policy. A draft that
 * is marked for deletion is a conflict, not a ringfence. Throws what the PCE client throws.
 */
export async function findRingfence(
  pce: Pick<PceClient, 'ruleSets'>,
  application: readonly Label[],
  version: Version,
  signal: AbortSignal,
  name = ringfenceName(application),
): Promise<RingfenceFound> {
  const { items } = await fetchEvery({ api: pce.ruleSets, policyVersion: version, params: { name }, signal })
  const found: RingfenceFound = { name, ruleSet: null, conflicts: [] }
  // The PCE searches substrings, so the exact comparison is ours.
  for (const ruleSet of items.filter((item) => item.name === name)) {
    if (!hasExactScope(ruleSet, application)) found.conflicts.push({ ruleSet, why: 'other_scope' })
    else if (ruleSet.update_type === 'delete') found.conflicts.push({ ruleSet, why: 'pending_deletion' })
    else found.ruleSet ??= ruleSet
  }
  return found
}

/** Exactly one scope, with each of these labels once, in any order, and nothing else. */
export function hasExactScope({ scopes }: Pick<RuleSet, 'scopes'>, labels: readonly Label[]): boolean {
  const [scope, ...others] = scopes
  if (scope === undefined || others.length > 0 || scope.length !== labels.length) return false
  const wanted = new Set(labels.map(({ href }) => href))
  return scope.every(({ label, exclusion }) => exclusion !== true && label !== undefined && wanted.delete(label.href))
}

/**
 * The application's ringfence of this name with its deny rules, or null. Throws already_exists {existing_ruleset, reason} where
 * the name belongs to something else, is disabled or waits for its deletion: rules written into that would not do what they say.
 */
export async function findOwnRuleSet(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  application: readonly Label[],
  name: string,
): Promise<RuleSet | null> {
  const { ruleSet, conflicts } = await findRingfence(pce, application, 'draft', signal, name)
  const [conflict] = conflicts
  if (ruleSet === null) {
    if (conflict !== undefined) throw inTheWay(conflict.ruleSet, conflict.why, CONFLICTS[conflict.why])
    return null
  }
  if (!ruleSet.enabled)
    throw inTheWay(ruleSet, 'disabled', 'is disabled; enable it, or choose another ruleset_name', ENABLE)
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  if (complete === undefined || complete.error !== undefined) {
    const text = `The deny rules of ${name} could not be read, so nothing was planned or written. ${complete?.error ?? ''}`
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
  const text = `The rule set ${name} exists and ${why}. Nothing was written.`
  return new ToolError('already_exists', text, { existing_ruleset: { href, name }, reason }, advice)
}

/** The draft that the rules of an existing ringfence are read with. */
type Known = Pick<PolicyCatalog, 'keyOf' | 'serviceOf' | 'isAllServices' | 'isAnyList' | 'familiesOf'>

/** A remote application with its labels. */
export interface Remote {
  app: Label
  env: Label
}

/** The part of a ringfence that a rule is for; null is the rule inside the application. */
export type Need = Remote | null

/** Href of an existing rule that does all of a need; of a rule that does only part of it, the reason. */
export interface Existing {
  covering(need: Need): string | undefined
  /** Rules that are meant for one of these needs but do not count, each with its reason. */
  shortOf(needs: readonly Need[]): { href: string; reason: string }[]
  /** Href of a deny rule that does all of what is asked. */
  coveringDeny(consumers: readonly Actor[], services: readonly IngressService[]): string | undefined
  /** Deny rules in force, override denies apart, that are for something else than everything from outside to the application. */
  otherDenies: string[]
  /** Some deny rule in force is for everything from outside. */
  deniesAllInbound: boolean
  overrideDenies: string[]
}

/** Reads the rules of an existing rule set, whose scope is the application; of none, nothing is covered. */
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

/** Why an allow rule does less than a rule of a ringfence for the same consumers; null when it does as much. */
function narrownessOf(rule: Rule, known: Known): string | null {
  if (!rule.enabled) return 'it is disabled'
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
    // A label of another key narrows what the labels of the application select.
    if (rule.consumers.some(({ label }) => label !== undefined && !APPLICATION.has(known.keyOf(label.href) ?? '')))
      return 'further labels narrow its consumers'
  }
  if (!rule.consumers.every(isWidening)) return 'its consumers include something else'
  if (!isPlain(rule) || rule.stateless === true || rule.sec_connect === true || rule.machine_auth === true)
    return 'it has further conditions'
  return null
}

/** Selectors that add to what a side names. Of any other it is not known what it does. */
const isWidening = ({ actors, label, label_group: group, workload, ip_list: list }: Actor) =>
  actors === 'ams' || [label, group, workload, list].some((selector) => selector !== undefined)

const APPLICATION = new Set(['app', 'env'])

/** Whether the consumers of a rule hold those of the need. Labels of one key are alternatives. */
function isFor({ consumers, unscoped_consumers: unscoped }: Rule, need: Need): boolean {
  const all = consumers.some(({ actors }) => actors === 'ams')
  if (need === null) return all
  const labels = consumers.flatMap(({ label }) => label?.href ?? [])
  return unscoped === true && (all || [need.app, need.env].every(({ href }) => labels.includes(href)))
}

/** Whether a rule that does not count seems to be meant for the need: label groups and dimensions may stand for its labels. */
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
  (rule.network_type ?? 'brn') !== 'non_brn' &&
  rule.all_ips_except_for_in_consumers !== true &&
  rule.all_ips_except_for_in_providers !== true

/** From outside to all workloads of the scope, with nothing that narrows it. */
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

import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import { NO_EFFECT } from '../../schemas/policy-changes.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import { type ObjectUses, type PolicyUsers, findUses } from '../inventory/find-uses.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Steps } from '../text/pace-work.js'
import { joinMovements, unknownMovement, UNMOVED } from './compare-permissions.js'
import { diffFields } from './diff-fields.js'
import {
  type Judgement,
  type Replacement,
  compareAll,
  describeMovement,
  findRuleRisks,
  inEveryVersion,
  placeBoundary,
  placeRules,
} from './judge-change.js'
import type { LoadedContents, PolicyContents, Versions } from './load-contents.js'
import { isInForce } from './load-snapshot.js'
import type { RuleInForce } from './rule-in-force.js'

/** The fields of policy objects that do not affect traffic. */
const HARMLESS = [
  'name',
  'description',
  'description_url',
  'external_data_set',
  'external_data_reference',
  'risk_details',
]

/** For each type of object to which rules refer only by href, the fields that define what the object stands for. */
const MEANINGS: Record<string, readonly string[]> = {
  ip_lists: ['ip_ranges', 'fqdns'],
  services: SERVICE_LISTS,
  label_groups: ['labels', 'sub_groups'],
}

/**
 * The rules that use policy objects, in both versions of the policy. A change that is provisioned alone affects the
 * active rules; a change that is provisioned together with all other changes affects the draft rules.
 */
export type Users = Record<'draft' | 'active', PolicyUsers>

/** Returns true if the effect of a change cannot be determined without the rules that use the changed object. */
export function needsUsers(type: string, { draft, active }: Versions): boolean {
  return type in MEANINGS && draft !== null && active !== null && changedFields(draft, active).length > 0
}

const changedFields = (draft: PceObject, active: PceObject) =>
  diffFields(draft, active).flatMap(({ field }) => (HARMLESS.includes(field) ? [] : field))

/**
 * Lists the rules that use an object, as input for `loadContents`, because they determine the effect of changing the
 * object.
 */
export function* rulesAbout(href: string, users: Users): Steps<unknown> {
  return [yield* findUses(users.draft, href), yield* findUses(users.active, href)]
}

/**
 * Determines how a change of an object other than a rule set affects permitted traffic. Most objects affect traffic
 * only through the rules that use them.
 * @param users the rules that use the object; null if they could not be read, or if `needsUsers` returned false.
 */
export function* judgeObject(
  type: string,
  versions: Versions,
  contents: LoadedContents,
  users: Users | null,
): Steps<Judgement> {
  const { draft, active } = versions
  if (type === 'enforcement_boundaries') return yield* judgeBoundary(draft, active, contents)
  const meaning = MEANINGS[type]
  // Adding or deleting an object has no effect by itself: a rule that uses a new object is a separate change, and the
  // PCE does not delete an object that is still used. Virtual services and servers are different, because rules also
  // select them by their labels.
  if (draft === null || active === null) return meaning === undefined ? UNJUDGED : { effect: 'neutral' }
  const changed = changedFields(draft, active)
  if (changed.length === 0) return { effect: 'neutral' }
  if (meaning === undefined) return UNJUDGED
  if (users === null) return { effect_note: NO_EFFECT.unreadUses }
  const inForce = yield* findUses(users.active, draft.href)
  const planned = yield* findUses(users.draft, draft.href)
  const replacements = (['active', 'draft'] as const).map((version): Replacement => {
    const uses = version === 'active' ? inForce : planned
    return {
      before: placeUses(uses, contents.withObject(version, active)),
      after: placeUses(uses, contents.withObject(version, draft)),
    }
  })
  const used = describeUses(inForce, planned)
  const elsewhere = [...inForce.others, ...planned.others].map((other) =>
    other.href?.includes('firewall_settings') === false ? 'virtual_service' : 'firewall',
  )
  const inTables = [inForce, planned].some(({ ruleSets }) =>
    ruleSets.some((ruleSet) => isInForce(ruleSet) && (ruleSet.ip_tables_rules ?? []).some(isInForce)),
  )
  const movement = joinMovements([
    yield* compareAll(replacements),
    changed.every((field) => meaning.includes(field)) ? UNMOVED : unknownMovement('field'),
    ...elsewhere.map((reason) => unknownMovement(reason)),
    inTables ? unknownMovement('iptables') : UNMOVED,
  ])
  const risks = yield* findRuleRisks(
    replacements.flatMap(({ before, after }) =>
      after.map((one, at) => ({ after: one, before: before[at] as RuleInForce })),
    ),
  )
  return {
    ...(yield* describeMovement(movement, replacements)),
    assumes: movement.assumes,
    ...(risks.length > 0 && { risks }),
    used_by: used,
  }
}

const UNJUDGED: Judgement = { effect_note: NO_EFFECT.unjudged }

const placeUses = ({ ruleSets, boundaries }: ObjectUses, contents: PolicyContents): RuleInForce[] => [
  ...ruleSets.flatMap((ruleSet: RuleSet) => placeRules(ruleSet, contents)),
  ...boundaries.flatMap((boundary: EnforcementBoundary) => placeBoundary(boundary, contents)),
]

/** Maximum number of rule sets and enforcement boundaries whose names are listed. */
const MOST_NAMED = 5

/**
 * Counts the rules that use an object in the active policy or in the draft, and lists the rule sets and enforcement
 * boundaries that contain these rules.
 */
function describeUses(...versions: readonly ObjectUses[]): NonNullable<Judgement['used_by']> {
  const rules = new Set<string>()
  const holders = new Map<string, string>()
  for (const { ruleSets, boundaries, others } of versions) {
    for (const { href, name, ...own } of ruleSets.filter(isInForce)) {
      const using = [...(own.rules ?? []), ...(own.deny_rules ?? []), ...(own.ip_tables_rules ?? [])].filter(isInForce)
      for (const rule of using) rules.add(toDraftHref(rule.href))
      if (using.length > 0) holders.set(toDraftHref(href), name)
    }
    for (const { href, name } of boundaries.filter(isInForce)) {
      rules.add(toDraftHref(href))
      holders.set(toDraftHref(href), name)
    }
    for (const { href, name } of others) holders.set(String(href), typeof name === 'string' ? name : String(href))
  }
  return { rules: rules.size, in: [...holders.values()].slice(0, MOST_NAMED) }
}

function* judgeBoundary(draft: PceObject | null, active: PceObject | null, contents: LoadedContents): Steps<Judgement> {
  const place = (boundary: PceObject | null, version: PolicyContents) =>
    placeBoundary(boundary as EnforcementBoundary | null, version)
  const replacements = inEveryVersion(contents, (version) => ({
    before: place(active, version),
    after: place(draft, version),
  }))
  const movement = yield* compareAll(replacements)
  return { ...(yield* describeMovement(movement, replacements)), assumes: movement.assumes }
}

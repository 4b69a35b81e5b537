import { PceApiError, PceError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import { ALL_SERVICES_NAME, ANY_IP_LIST_NAME } from '../../schemas/pce/words.js'
import { quote } from '../text/escape-text.js'
import { fetchEvery } from './fetch-every.js'
import { parseHref, toDraftHref } from './parse-href.js'
import { loadDenyRules } from './read-rules.js'
import { readEnds, readRuleSets } from './require-rule-shape.js'
import { type Steps, filterInSteps, mapBounded, workInTurns } from '../text/pace-work.js'

/** All objects of one policy version that can refer to policy objects. */
export interface PolicyUsers {
  ruleSets: readonly RuleSet[]
  boundaries: readonly EnforcementBoundary[]
  labelGroups: readonly PceObject[]
  others: readonly PceObject[]
}

const OTHERS = ['virtualServices', 'virtualServers', 'firewallSettings'] as const
const IN_FLIGHT = 4

/**
 * Reads all objects that can refer to policy objects, in the draft and in the active version; see `readPolicyUsers`.
 */
export async function loadPolicyUsers(
  pce: PceClient,
  signal: AbortSignal,
): Promise<Record<'draft' | 'active', PolicyUsers>> {
  return { draft: await readPolicyUsers(pce, 'draft', signal), active: await readPolicyUsers(pce, 'active', signal) }
}

/**
 * Reads the same objects as `loadPolicyUsers`, and checks the shape of rules so that they can be evaluated.
 * @throws the errors of `loadPolicyUsers`, and invalid_response for a rule set or enforcement boundary of unexpected
 * shape.
 */
export async function loadJudgedUsers(
  pce: PceClient,
  signal: AbortSignal,
): Promise<Record<'draft' | 'active', PolicyUsers>> {
  const judged = (users: PolicyUsers): PolicyUsers => ({
    ...users,
    ruleSets: readRuleSets(users.ruleSets),
    boundaries: readEnds(users.boundaries, 'an enforcement boundary'),
  })
  const { draft, active } = await loadPolicyUsers(pce, signal)
  return { draft: judged(draft), active: judged(active) }
}

/**
 * Reads all objects of one version that can refer to policy objects, a few requests at a time. A type that this PCE
 * does not know counts as empty.
 * @throws the errors of the PCE client, and {PceError} if the deny rules of any rule set cannot be read.
 */
export async function readPolicyUsers(
  pce: PceClient,
  policyVersion: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<PolicyUsers> {
  const read = async <T extends object>(kind: string): Promise<T[]> => {
    try {
      const api = pce[kind as 'labelGroups'] as never
      return (await fetchEvery<T>({ api, policyVersion, params: {}, signal })).items
    } catch (error) {
      if (error instanceof PceApiError && error.status === 404) return []
      throw error
    }
  }
  const [ruleSets = [], boundaries = [], labelGroups = [], ...others] = await mapBounded(
    ['ruleSets', 'enforcementBoundaries', 'labelGroups', ...OTHERS],
    IN_FLIGHT,
    (kind) => read<PceObject>(kind),
  )
  const complete = await loadDenyRules(pce, ruleSets as RuleSet[], signal)
  const unread = complete.find(({ error }) => error !== undefined)?.error
  if (unread !== undefined) throw new PceError('invalid_response', unread)
  return {
    ruleSets: complete.map(({ ruleSet }) => ruleSet),
    boundaries: boundaries as EnforcementBoundary[],
    labelGroups,
    others: others.flat(),
  }
}

/**
 * All rules and other objects of one policy version that refer to a certain object, directly or through a label group.
 * Disabled rules and objects are included.
 */
export interface ObjectUses {
  /**
   * The rule sets that refer to the object. Each is reduced to the rules that refer to it, but keeps all its rules if
   * one of its scopes refers to it.
   */
  ruleSets: RuleSet[]
  boundaries: EnforcementBoundary[]
  /** Objects of other types that refer to the object and affect traffic. */
  others: PceObject[]
}

/**
 * Finds the uses of an object. The function yields often, so that other work can run, because the policy may have
 * thousands of rules.
 */
export function* findUses({ ruleSets, boundaries, labelGroups, others }: PolicyUsers, href: string): Steps<ObjectUses> {
  const wanted = new Set([toDraftHref(href)])
  // A label group includes the labels of its nested groups. Therefore every group that contains the object, directly or
  // through nested groups, is added to the hrefs to search for.
  for (let before = 0; before < wanted.size;) {
    before = wanted.size
    for (const { href: own, ...group } of labelGroups) {
      yield
      if (pointsAt(group, wanted)) wanted.add(toDraftHref(own))
    }
  }
  const isUser = (value: unknown) => pointsAt(value, wanted)
  const using: RuleSet[] = []
  for (const ruleSet of ruleSets) {
    yield
    if (isUser(ruleSet.scopes)) {
      using.push(ruleSet)
      continue
    }
    const own = {
      rules: yield* filterInSteps(ruleSet.rules ?? [], isUser),
      deny_rules: yield* filterInSteps(ruleSet.deny_rules ?? [], isUser),
      ip_tables_rules: yield* filterInSteps(ruleSet.ip_tables_rules ?? [], isUser),
    }
    if (Object.values(own).some(({ length }) => length > 0)) using.push({ ...ruleSet, ...own })
  }
  return {
    ruleSets: using,
    boundaries: yield* filterInSteps(boundaries, isUser),
    // The PCE may send the firewall settings without an href (P12).
    others: yield* filterInSteps(others, (object) => {
      const { href: own, ...other }: Partial<PceObject> = object
      return (own === undefined || !wanted.has(toDraftHref(own))) && isUser(other)
    }),
  }
}

/**
 * Returns true if `value` contains, at any depth, a reference to an object with one of these hrefs. The given hrefs
 * must be draft hrefs; the reference may be to any policy version.
 */
function pointsAt(value: unknown, hrefs: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return value.some((item) => pointsAt(item, hrefs))
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([field, inner]) =>
    field === 'href' && typeof inner === 'string' ? hrefs.has(toDraftHref(inner)) : pointsAt(inner, hrefs),
  )
}

/** Maximum number of objects that an error or warning lists as referring to a given object. */
const MAX_LISTED = 20

/** The types of objects that can refer to IP lists, services and virtual services. */
const USERS = ['ruleSets', 'enforcementBoundaries', 'virtualServices'] as const
/** The types of objects that can refer to label groups. */
const GROUP_USERS = [...USERS, 'labelGroups', 'firewallSettings'] as const

/**
 * The rule sets, enforcement boundaries and virtual services that refer to an object, each with the policy versions in
 * which it does so.
 */
interface FoundUsers {
  users: { href: string; name: string; versions: string[] }[]
  /** The types that could not be read, for example because this account is not permitted to list them. */
  unread: string[]
}

/**
 * Reads the objects that refer to a given object. Both the draft and the active version are read, because a use in
 * either of them prevents the deletion of the object (P31).
 * @throws every error except an error response of the PCE.
 */
async function readUsers(pce: PceClient, object: { href: string }, signal: AbortSignal): Promise<FoundUsers> {
  const wanted = new Set([toDraftHref(object.href)])
  const isOwn = (href: string | undefined) => href !== undefined && wanted.has(toDraftHref(href))
  const users = new Map<string, FoundUsers['users'][number]>()
  const unread = new Set<string>()
  const kinds = parseHref(object.href)?.kind === 'label_groups' ? GROUP_USERS : USERS
  for (const version of ['draft', 'active'] as const) {
    for (const kind of kinds) {
      try {
        const api = pce[kind] as ObjectApi<PceObject>
        const { items } = await fetchEvery<PceObject>({ api, policyVersion: version, params: {}, signal })
        const whole = kind === 'ruleSets' ? await loadDenyRules(pce, items as unknown as RuleSet[], signal) : []
        if (whole.some(({ error }) => error !== undefined)) unread.add('denyRules')
        const candidates = kind === 'ruleSets' ? whole.map(({ ruleSet }) => ruleSet as unknown as PceObject) : items
        const using = await workInTurns(
          filterInSteps(candidates, ({ href, ...fields }) => !isOwn(href) && pointsAt(fields, wanted)),
          signal,
        )
        for (const item of using as Partial<PceObject>[]) {
          // The PCE may send the firewall settings without an href (P12).
          const user = item.href === undefined ? 'firewall_settings' : toDraftHref(item.href)
          const known = users.get(user) ?? { href: user, name: nameOf(item), versions: [] }
          users.set(user, { ...known, versions: [...known.versions, version] })
        }
      } catch (error) {
        if (!(error instanceof PceApiError)) throw error
        // 404 means that this PCE does not know this type, so no object of this type can refer to the given object.
        if (error.status !== 404) unread.add(kind)
      }
    }
  }
  return { users: [...users.values()], unread: [...unread] }
}

/**
 * Builds the details of the error when the PCE has refused to delete a policy object: `used_by` lists the objects that
 * refer to it, and `used_by_unread` the types that could not be read. For a built-in object, only a hint is returned:
 * it can never be deleted, so removing it from every rule would not help.
 */
export async function findPolicyUsers(
  pce: PceClient,
  object: { href: string; name: string },
  signal: AbortSignal,
): Promise<{ details: ErrorDetails; hint?: string }> {
  const [hint] = warnOfBuiltIn(object)
  if (hint !== undefined) return { details: {}, hint }
  const { users, unread } = await readUsers(pce, object, signal)
  return {
    details: {
      used_by: users.slice(0, MAX_LISTED),
      used_by_total: users.length,
      ...(unread.length > 0 && { used_by_unread: unread }),
    },
    ...(users.length > 0 && {
      hint: 'First remove it from everything in used_by; where versions include active, provision that change.',
    }),
  }
}

const KIND_WORDS: Readonly<Record<string, string>> = {
  ruleSets: 'rule sets',
  denyRules: 'deny rules',
  enforcementBoundaries: 'enforcement boundaries',
  virtualServices: 'virtual services',
  labelGroups: 'label groups',
  firewallSettings: 'firewall settings',
}

/**
 * Returns the warnings for the dry run of a deletion: that the object is built in, that the PCE will refuse the
 * deletion because other objects refer to the object, or that some types could not be checked. Errors of the PCE are
 * not thrown, because the dry run is useful without the warnings, too.
 */
export async function warnOfRefusal(
  pce: PceClient,
  object: { href: string; name: string },
  signal: AbortSignal,
): Promise<string[]> {
  const builtIn = warnOfBuiltIn(object)
  if (builtIn.length > 0) return builtIn
  return describeUsers(pce, object, signal, {
    used: 'The PCE will refuse it while it is used by',
    unread: 'Whether anything uses it, for which the PCE would refuse it, could not be read',
  })
}

/**
 * Returns sentences that say which rule sets, enforcement boundaries and virtual services refer to an object, and what
 * could not be read. The list is empty if nothing refers to the object. Errors of the PCE are not thrown, as in
 * `warnOfRefusal`.
 */
export function tellUsers(pce: PceClient, object: { href: string }, signal: AbortSignal): Promise<string[]> {
  return describeUsers(pce, object, signal, {
    used: 'It is used by',
    unread: 'Whether anything uses it could not be read',
  })
}

async function describeUsers(
  pce: PceClient,
  object: { href: string },
  signal: AbortSignal,
  lead: { used: string; unread: string },
): Promise<string[]> {
  let found: FoundUsers
  try {
    found = await readUsers(pce, object, signal)
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return [`${lead.unread}: ${error.message}`]
  }
  const { users, unread } = found
  const named = users.slice(0, MAX_LISTED).map(({ name, href, versions }) => {
    return `${name === '' ? href : quote(name)} (${versions.join(' and ')})`
  })
  const more = users.length > named.length ? ` and ${users.length - named.length} more` : ''
  const kinds = unread.map((kind) => KIND_WORDS[kind] ?? kind).join(', ')
  return [
    ...(users.length > 0 ? [`${lead.used}: ${named.join(', ')}${more}.`] : []),
    ...(unread.length > 0 ? [`Whether ${kinds} use it could not be read.`] : []),
  ]
}

function nameOf({ name }: Partial<PceObject>): string {
  return typeof name === 'string' ? name : ''
}

/**
 * Returns a warning if an object is built in. The PCE refuses to change a built-in object (P17, P18), and a dry run
 * alone would not show this.
 */
export function warnOfBuiltIn({ name }: { name: string }): string[] {
  return name === ANY_IP_LIST_NAME || name === ALL_SERVICES_NAME
    ? ['It is built in: a PCE refuses to change or delete it.']
    : []
}

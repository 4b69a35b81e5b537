import { AUTHORSHIP } from '../policy/authorship.js'
import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { PceEvent } from '../../schemas/pce/event.js'
import type { ModifiedPolicyObject, PolicyVersion } from '../../schemas/pce/policy.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import {
  type EventParty,
  changedParties,
  creatorOf,
  endpointOf,
  mentionedParties,
  shownName,
} from '../inventory/event-parties.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { diffFields } from '../policy/diff-fields.js'
import { changedRules } from '../policy/diff-rule-set.js'
import { type Target, TARGET_KINDS, isOfApplication } from './find-target.js'
import { draftHrefOf, inDraftForm } from './load-policy.js'
import { type FieldStep, stepsOf } from './read-changes.js'
import type { VersionStep } from './search-history.js'

/** The part of a history entry that reports the change of one object, or of one rule inside an object. */
export interface HistoryPart {
  href: string
  /** The type of the object, named as in events or versions, such as `rule_set`, `rule_sets` or `sec_rule`. */
  type: string
  name?: string
  change: string
  fields: FieldStep[]
  /** The reason why the changed fields are not listed; absent if they are listed. */
  note?: string
}

/** An event or a provisioning that changed the target of the search. */
export interface HistoryEntry {
  /** Href of the event or of the policy version. */
  href: string
  at: string
  /**
   * The author of the change. For an event this is usually a name; for a version, and for an event without a name, it
   * is an href.
   */
  by: string
  /** The event type, or `provisioned`. */
  what: string
  version?: number
  commit_message?: string
  parts: HistoryPart[]
}

/** Returns true if the href belongs to the target of the search or to something inside it. */
function isWithin(target: Target, href: string | undefined): boolean {
  if (href === undefined) return false
  const draft = draftHrefOf(href)
  if (target.hrefs.has(draft) || target.rules.has(draft)) return true
  const parent = parseHref(draft)?.parent
  return parent !== undefined && target.hrefs.has(toDraftHref(parent.href))
}

/**
 * Returns true if an object in an event is the target or belongs to it. Events must be passed newest first. If only the
 * name of a deleted target is known, the event of its deletion reveals its href, which is then added to the target, so
 * that older events, which contain only hrefs, are recognised too.
 */
function isAbout(target: Target, party: EventParty): boolean {
  const { gone, hrefs } = target
  if (isWithin(target, party.href)) return true
  const isNamed = gone !== undefined && gone.kind === party.kind && shownName(party) === gone.name
  if (isNamed && party.href !== undefined) hrefs.add(draftHrefOf(party.href))
  return isNamed
}

/** Returns true if an event concerns the target, because of what it changed or because of the path of its request. */
export const touches = (target: Target, event: PceEvent): boolean =>
  isWithin(target, endpointOf(event)) || changedParties(event).some(({ party }) => isAbout(target, party))

/** Returns true if an event mentions the target without changing it, for example because a VEN reported something. */
export const mentions = (target: Target, event: PceEvent): boolean =>
  mentionedParties(event).some((party) => isAbout(target, party))

/** Returns true if the request of an event failed, so that the event changed nothing. */
export const isFailed = ({ status }: PceEvent): boolean => status === 'failure'

/**
 * The fields with the time, author and type of a change. They are left out, because a history entry already states
 * these.
 */
const TOLD_BY_ENTRY: ReadonlySet<string> = new Set([...AUTHORSHIP, 'update_type'])

/**
 * Returns the history entry for an event. It contains only the parts of the event that concern the target of the
 * search.
 */
export function readEvent(target: Target, event: PceEvent): HistoryEntry {
  const parts = changedParties(event).flatMap(({ party, change }): HistoryPart[] => {
    if (!isAbout(target, party)) return []
    const name = shownName(party)
    return [
      {
        href: party.href ?? '',
        type: party.kind,
        ...(name !== undefined && { name }),
        change: change.change_type ?? 'unknown',
        fields: stepsOf(change.changes).filter(({ field }) => !TOLD_BY_ENTRY.has(field)),
      },
    ]
  })
  const { href, timestamp, event_type: type } = event
  return { href, at: timestamp ?? '', by: creatorOf(event), what: type ?? 'unknown', parts }
}

/**
 * Maximum number of objects that are read, each in the version that changed it and in the version before. This maximum
 * applies to all versions together.
 */
const MOST_READ = 100

/**
 * Returns a history entry for each version that changed the target, with the changes since the previous version.
 * Objects that cannot be read in one of the two versions, and objects beyond the maximum number, are listed without
 * fields.
 */
export async function readVersionSteps(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  target: Target,
  steps: readonly VersionStep[],
): Promise<HistoryEntry[]> {
  const read = createReader(pce, signal)
  const entries: HistoryEntry[] = []
  for (const { version, previous, modified } of steps) {
    const parts: HistoryPart[] = []
    for (const one of modified) {
      if (mayBelong(target, one)) parts.push(...(await readPart(target, one, [previous, version], read)))
    }
    if (parts.length > 0) entries.push(entryOf(version, parts))
  }
  return entries
}

const entryOf = (version: PolicyVersion, parts: HistoryPart[]): HistoryEntry => ({
  href: version.href,
  at: version.created_at ?? '',
  by: version.created_by?.href ?? '-',
  what: 'provisioned',
  version: version.version,
  ...(version.commit_message != null && { commit_message: version.commit_message }),
  parts,
})

function mayBelong(
  target: Target,
  { href, name, object_type: type, update_type: updateType }: ModifiedPolicyObject,
): boolean {
  const draft = draftHrefOf(href)
  const { gone, rules, application } = target
  if (target.hrefs.has(draft)) return true
  if ([...rules].some((rule) => rule.startsWith(`${draft}/`))) return true
  if (gone !== undefined && gone.kind !== 'label' && TARGET_KINDS[gone.kind] === type && name === gone.name) {
    target.hrefs.add(draft)
    return true
  }
  return application !== undefined && type === 'rule_sets' && updateType === 'delete'
}

type Read = (href: string, version: PolicyVersion | null) => Promise<PceObject | null | 'unread'>

async function readPart(
  target: Target,
  { href: given, object_type: type, name, update_type: updateType }: ModifiedPolicyObject,
  [before, after]: [PolicyVersion | null, PolicyVersion],
  read: Read,
): Promise<HistoryPart[]> {
  const href = draftHrefOf(given)
  const common = { href, type: wordOf(type), ...(name != null && { name }), change: updateType ?? 'update' }
  const [was, is] = [await read(href, before), await read(href, after)]
  if (was === 'unread' || is === 'unread') return [{ ...common, fields: [], note: 'What changed in it was not read.' }]
  const isWhole = target.hrefs.has(href) || isGoneOf(target, type, was)
  const own: HistoryPart = {
    ...common,
    change: was === null ? 'create' : is === null ? 'delete' : common.change,
    fields: diffFields(is, was).map(({ field, draft, active }) => ({ field, before: active, after: draft })),
  }
  const rules =
    type !== 'rule_sets'
      ? []
      : changedRules(is as RuleSet | null, was as RuleSet | null)
          .filter((rule) => isWhole || target.rules.has(rule.href))
          .map((rule): HistoryPart => ({
            href: rule.href,
            type: rule.href.includes('/deny_rules/') ? 'deny_rule' : 'sec_rule',
            change: RULE_CHANGES[rule.change],
            fields: rule.fields.map(({ field, draft, active }) => ({ field, before: active, after: draft })),
          }))
  return isWhole ? [own, ...rules] : rules
}

const WORDS = new Map<string, string>(Object.entries(TARGET_KINDS).map(([word, kind]) => [kind, word]))

/**
 * Converts a path segment such as `rule_sets` to the word that events and the argument `kind` use, such as `rule_set`.
 */
const wordOf = (type: string): string => WORDS.get(type) ?? type

const RULE_CHANGES = { added: 'create', changed: 'update', removed: 'delete' } as const

/** Returns true if a deleted object was a rule set whose scope was the application. */
function isGoneOf({ application }: Target, type: string, was: PceObject | null): boolean {
  if (application === undefined || type !== 'rule_sets' || was === null) return false
  return isOfApplication(was as unknown as RuleSet, application.labels, application.keyOf)
}

/**
 * Creates a function that reads an object in a policy version and converts its hrefs to draft hrefs. The function reads
 * each version of an object only once, and no more than twice MOST_READ versions of objects in total.
 */
function createReader(pce: PceClient, signal: AbortSignal): Read {
  const known = new Map<string, Promise<PceObject | null | 'unread'>>()
  return (href, version) => {
    if (version === null) return Promise.resolve(null)
    const own = href.replace('/sec_policy/draft/', `/sec_policy/${version.version}/`)
    const asked =
      known.get(own) ?? (known.size < 2 * MOST_READ ? readOne(pce, own, signal) : Promise.resolve('unread' as const))
    known.set(own, asked)
    return asked
  }
}

async function readOne(pce: PceClient, href: string, signal: AbortSignal): Promise<PceObject | null | 'unread'> {
  try {
    const object = (await pce.get(href, { includeOrg: false, signal })).json<PceObject | null>()
    if (object === null || typeof object !== 'object') return 'unread'
    if (parseHref(href)?.kind !== 'rule_sets') return inDraftForm(object) as PceObject
    const [complete] = await loadDenyRules(pce, [object as RuleSet], signal)
    return complete === undefined || complete.error !== undefined
      ? 'unread'
      : (inDraftForm(complete.ruleSet) as PceObject)
  } catch (error) {
    if (!(error instanceof PceApiError)) throw error
    return error.isGone || error.status === 404 ? null : 'unread'
  }
}

import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import {
  isNamedKind,
  writeByPrefix,
  type NamedKind,
  type NamedObject,
  type PolicyLookups,
} from '../inventory/find-object.js'
import {
  adviseOn,
  describeReference,
  isLabelReference,
  isUnresolved,
  looksLikeLabel,
  resolveLabel,
  type LabelReference,
  type UnresolvedLabel,
} from '../inventory/labels.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { withDetails } from '../inventory/pce-errors.js'
import { explainPending } from './pending-deletion.js'
import { quote, trimBlanks } from '../text/escape-text.js'

/** An actor on one side of a rule, as callers name it (T4). */
export type ActorReference =
  string | { key?: string; value?: string; href?: string; exclusion?: boolean; type?: string; name?: string }

/** The side and type of a rule. Together they determine which actors are allowed (P20, P21). */
interface ActorPlace {
  /** Index of the rule if the call has several rules; absent if there is only one. */
  ruleIndex?: number
  /** The side of the rule. In a search, `actor` stands for either side. */
  side: 'providers' | 'consumers' | 'actor' | 'provider' | 'consumer'
  deny: boolean
}

/** For each type of object that can be an actor, the name of the PCE's selector. Services cannot be actors. */
const SELECTORS: Partial<
  Record<NamedKind, 'ip_list' | 'label_group' | 'workload' | 'virtual_service' | 'virtual_server'>
> = {
  ip_lists: 'ip_list',
  label_groups: 'label_group',
  workloads: 'workload',
  virtual_services: 'virtual_service',
  virtual_servers: 'virtual_server',
}

const BY_NAME: Record<string, NamedKind> = { iplist: 'ip_lists', labelgroup: 'label_groups', workload: 'workloads' }

/**
 * Looks up the actors on one side of a rule. Each href gets a key, value or name for display, which `toWire` removes
 * again. Throws invalid_actor for a value that is not an actor or is not allowed on this side, and label_not_found,
 * not_found and ambiguous_name. All these errors contain {rule_index, side}.
 */
export async function resolveActors(
  lookups: PolicyLookups,
  references: readonly ActorReference[],
  place: ActorPlace,
): Promise<Actor[]> {
  const actors = []
  for (const reference of references) {
    try {
      actors.push(await resolveActor(lookups, reference, place))
    } catch (error) {
      throw error instanceof ToolError ? withDetails(error, { ...ruleIndexOf(place), side: place.side }) : error
    }
  }
  return actors
}

async function resolveActor(lookups: PolicyLookups, reference: ActorReference, place: ActorPlace): Promise<Actor> {
  const { named, name, exclusion } = splitExclusion(reference)
  if (named === null) throw invalid(reference, place, ACTOR_OBJECT)
  const actor = await identify(lookups, named, place)
  const actual = nameOf(actor)
  if (name !== undefined && name !== actual)
    throw invalid(reference, place, `This is ${quote(actual)}, not ${quote(name)}.`)
  if (exclusion && actor.label === undefined && actor.label_group === undefined) {
    throw invalid(reference, place, 'Only labels and label groups can be excluded.')
  }
  if (place.deny && (actor.virtual_service !== undefined || actor.virtual_server !== undefined)) {
    throw invalid(reference, place, 'A deny rule takes ams, labels, label groups, IP lists and workloads only.')
  }
  if (place.side === 'consumers' && actor.virtual_server !== undefined) {
    throw invalid(reference, place, 'A virtual server can be a provider only.')
  }
  return exclusion ? { ...actor, exclusion: true } : actor
}

async function identify(lookups: PolicyLookups, reference: LabelReference, place: ActorPlace): Promise<Actor> {
  const href = typeof reference === 'string' ? reference : reference.href
  if (typeof reference === 'string') {
    const text = trimBlanks(reference)
    if (text === 'ams') return { actors: 'ams' }
    const named = /^([a-z]+):(.+)$/su.exec(text)
    const kind = named === null ? undefined : BY_NAME[named[1] as string]
    if (kind !== undefined)
      return refer(kind, await lookups.byName(kind, trimBlanks((named as RegExpExecArray)[2] ?? '')), reference, place)
  }
  if (href !== undefined && href.startsWith('/') && !looksLikeLabel(href)) {
    const kind = parseHref(href)?.kind
    if (kind === undefined || !isNamedKind(kind) || SELECTORS[kind] === undefined) {
      const isPod = kind === 'kubernetes_workloads'
      const why = isPod
        ? 'Rules name a Kubernetes workload by its labels alone.'
        : 'This href cannot be an end of a rule.'
      throw invalid(reference, place, why)
    }
    return refer(kind, await lookups.byHref(kind, href), reference, place)
  }
  if (typeof reference === 'string' && !looksLikeLabel(reference))
    throw invalid(reference, place, await adviseOnForm(lookups, reference))
  return { label: findLabel(lookups, reference) }
}

const FORMS =
  'Use "ams", "key=value", "!key=value" (all but these), "iplist:<name>", "labelgroup:<name>", "workload:<name>" or an href.'

/**
 * Returns advice on a string that is not a valid reference. If it is exactly the value of a label or the name of an
 * object, the advice is to refer to that label or object in the valid form.
 */
async function adviseOnForm(lookups: PolicyLookups, text: string): Promise<string> {
  const byKey = adviseKey(lookups, text)
  if (byKey !== undefined) return byKey
  const prefixed = text.startsWith('/') ? [] : await writeByPrefix(lookups, trimBlanks(text))
  return prefixed.length === 0 ? FORMS : `Write ${prefixed.map(quote).join(' or ')}.`
}

function findLabel(lookups: PolicyLookups, reference: LabelReference): Label {
  const found = resolveLabel(lookups.labels, reference)
  if (!isUnresolved(found)) return found
  throw noSuchLabel(found)
}

function noSuchLabel(unresolved: UnresolvedLabel): ToolError {
  const text = `No label matches ${quote(unresolved.ref)} exactly. ${adviseOn(unresolved)}`.trimEnd()
  return new ToolError('label_not_found', text, { label: unresolved.ref, valid_values: unresolved.valid })
}

/**
 * Returns advice when the caller wrote only a label's value (`prod`) instead of `key=value`; undefined if no label has
 * this value.
 */
function adviseKey(lookups: PolicyLookups, text: string): string | undefined {
  const keys = lookups.labels.keysOf(trimBlanks(text))
  const found = keys.length === 0 ? undefined : resolveLabel(lookups.labels, text)
  return found !== undefined && isUnresolved(found) ? adviseOn(found) : undefined
}

/**
 * The sentence that lists the allowed forms of an object reference. It is part of the messages about references that
 * `splitExclusion` rejects.
 */
export const ACTOR_OBJECT = 'An object is {key, value} or {href}, optionally with exclusion: true or false.'

/**
 * Splits a reference into the object that it names, its `exclusion` (`!` at the start of a string), and the name that
 * answers show next to an href (D101). It also checks the form, because the input schemas do not: `named` is null if
 * the form is wrong. The caller must check that the name belongs to the href.
 */
export function splitExclusion(reference: ActorReference): {
  named: LabelReference | null
  name?: string
  exclusion: boolean
} {
  if (typeof reference === 'string') {
    const text = trimBlanks(reference)
    return text.startsWith('!') ? { named: text.slice(1), exclusion: true } : { named: reference, exclusion: false }
  }
  const { exclusion = false, type, name, ...rest } = reference
  const isAllWorkloads = type === 'ams' && name === undefined && Object.keys(rest).length === 0
  const named = isAllWorkloads ? 'ams' : isLabelReference(rest) ? rest : null
  const isWell =
    typeof exclusion === 'boolean' &&
    [type, name].every((text) => text === undefined || (typeof text === 'string' && (isAllWorkloads || 'href' in rest)))
  return { named: isWell ? named : null, ...(name !== undefined && { name }), exclusion }
}

/** Returns the name that `toActor` stored next to the href of an actor. */
function nameOf(actor: Actor): string {
  const named: { href: string; name?: string | null } | undefined =
    actor.ip_list ?? actor.label_group ?? actor.workload ?? actor.virtual_service ?? actor.virtual_server
  return named?.name ?? ''
}

/**
 * Returns the actor for an object. Throws invalid_actor if the actor is to be written into a rule and the object is
 * pending deletion.
 */
function refer(kind: NamedKind, found: NamedObject, reference: ActorReference, place: ActorPlace): Actor {
  const isWritten = place.side === 'providers' || place.side === 'consumers'
  const pending = isWritten ? explainPending(kind, found) : undefined
  if (pending !== undefined) throw invalid(reference, place, pending.why, pending.details)
  return toActor(kind, found)
}

function toActor(kind: NamedKind, { href, name, hostname }: NamedObject): Actor {
  const selector = SELECTORS[kind] as keyof Actor
  return { [selector]: { href: toDraftHref(href), name: name ?? hostname ?? undefined } }
}

function invalid(reference: ActorReference, place: ActorPlace, why: string, more: ErrorDetails = {}): ToolError {
  const shown = typeof reference === 'string' ? reference : describeReference(reference)
  return new ToolError('invalid_actor', `${quote(shown)} cannot be used in ${place.side}${ofRule(place)}. ${why}`, {
    actor: reference,
    ...more,
  })
}

/**
 * Converts actors to the form in which they are sent: one selector with an href and no display fields, because the PCE
 * accepts no additional fields.
 */
export function toWire(actors: readonly Actor[]): Actor[] {
  return actors.map(({ exclusion, ...actor }) => {
    if (actor.actors !== undefined) return { actors: actor.actors }
    const [selector, target] = Object.entries(actor)[0] as [string, { href: string }]
    return { [selector]: { href: target.href }, ...(exclusion === true ? { exclusion: true } : {}) }
  })
}

function ofRule({ ruleIndex }: ActorPlace): string {
  return ruleIndex === undefined ? '' : ` of rule ${ruleIndex}`
}

/** Returns the `rule_index` for error details, if the rule has an index. */
export function ruleIndexOf({ ruleIndex }: { ruleIndex?: number }): { rule_index?: number } {
  return ruleIndex === undefined ? {} : { rule_index: ruleIndex }
}

/**
 * Looks up the scopes of a rule set. Entries of an inner list are ANDed, inner lists are ORed. No scopes at all mean
 * one empty scope, which covers everything. Throws invalid_scope_label {received} for anything other than a label or
 * label group, and for two entries with the same key in one scope. Throws label_not_found or not_found if a label or
 * label group does not exist.
 */
export async function resolveScopes(
  lookups: PolicyLookups,
  scopes: readonly (readonly ActorReference[])[],
): Promise<ScopeEntry[][]> {
  if (scopes.length === 0) return [[]]
  const resolved = []
  for (const scope of scopes) {
    const entries = []
    for (const reference of scope) entries.push(await resolveEntry(lookups, reference))
    requireOneConditionPerKey(scope, entries)
    resolved.push(entries)
  }
  return resolved
}

async function resolveEntry(lookups: PolicyLookups, reference: ActorReference): Promise<ScopeEntry> {
  const { named, name, exclusion: excluded } = splitExclusion(reference)
  if (named === null) throw cannotScope(reference, ACTOR_OBJECT)
  const exclusion = excluded ? { exclusion: true } : {}
  const text = typeof named === 'string' ? trimBlanks(named) : (named.href ?? '')
  if (text.startsWith('labelgroup:')) {
    return {
      label_group: toGroup(
        await lookups.byName('label_groups', trimBlanks(text.slice('labelgroup:'.length))),
        reference,
      ),
      ...exclusion,
    }
  }
  if (parseHref(text)?.kind === 'label_groups') {
    const group = toGroup(await lookups.byHref('label_groups', text), reference)
    if (name !== undefined && name !== group.name)
      throw cannotScope(reference, `This is ${quote(group.name ?? '')}, not ${quote(name)}.`)
    return { label_group: group, ...exclusion }
  }
  const isLabel = (typeof named === 'object' && named.href === undefined) || looksLikeLabel(text)
  if (!isLabel) {
    throw cannotScope(reference, adviseKey(lookups, text) ?? 'A scope takes labels and label groups only.')
  }
  const label = resolveLabel(lookups.labels, named)
  if (!isUnresolved(label)) return { label, ...exclusion }
  throw noSuchLabel(label)
}

/** Throws invalid_scope_label if the deletion of the label group is pending. */
function toGroup(group: NamedObject & { key?: string }, reference: ActorReference) {
  const pending = explainPending('label_groups', group)
  if (pending !== undefined) throw cannotScope(reference, pending.why, pending.details)
  return { href: toDraftHref(group.href), key: group.key, name: group.name ?? undefined }
}

/**
 * Throws if a scope has two entries with the same key. A workload has only one label per key, so such a scope would
 * match nothing, and the PCE would refuse it (P19).
 */
function requireOneConditionPerKey(references: readonly ActorReference[], entries: readonly ScopeEntry[]): void {
  const keys = entries.map(({ label, label_group: group }) => label?.key ?? group?.key)
  const at = keys.findIndex((key, index) => key !== undefined && keys.indexOf(key) !== index)
  if (at !== -1) {
    throw cannotScope(
      references[at] as ActorReference,
      `This scope names the key ${quote(keys[at] ?? '')} twice; use one scope per value.`,
    )
  }
}

function cannotScope(received: ActorReference, why: string, more: ErrorDetails = {}): ToolError {
  const shown = typeof received === 'string' ? received : describeReference(received)
  return new ToolError('invalid_scope_label', `${quote(shown)} cannot be used in a scope. ${why}`, {
    received,
    ...more,
  })
}

/** Converts scopes to the form in which they are sent, with hrefs only. */
export function toWireScopes(scopes: readonly (readonly ScopeEntry[])[]): ScopeEntry[][] {
  return scopes.map((scope) =>
    scope.map(({ label, label_group: group, exclusion }) => ({
      ...(label !== undefined
        ? { label: { href: label.href } }
        : { label_group: { href: (group as { href: string }).href } }),
      ...(exclusion === true && { exclusion }),
    })),
  )
}

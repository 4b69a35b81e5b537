import { isDeepStrictEqual } from 'node:util'
import { Type } from '@sinclair/typebox'
import { CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { Answer, Call } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { HELD_KINDS, rulesOf } from '../kinds/rule-kind.js'
import { kindOf } from '../kinds/index.js'
import { invalidInput } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { updateStamp, type ProvisionedVersion, type World } from '../world.js'
import { nameOf } from './provision.js'

const RESTORE = new Shape('sec_policy_restore_post', Type.Object({}, CLOSED))

/**
 * Handles POST /sec_policy/{n}/restore: creates draft changes that lead back to a past version. Provisioning them is a
 * separate step (P59).
 */
export function restore({ world, params, body }: Call): Answer {
  RESTORE.read(body)
  const version = world.versions.find(({ version }) => String(version.version) === params.pversion)
  if (!version) throw invalidInput(`There is no policy version ${params.pversion} to restore`)
  if (world.policy.pending().length > 0) throw invalidInput('A policy cannot be restored while changes are pending')
  const changes = CHANGE_SUBSET_TYPES.flatMap((type) => {
    const wanted = version.snapshot.get(type) ?? new Map<string, VersionedObject>()
    const entries = world.policy.entries(type)
    const known = new Set(entries.map(({ draft }) => draft.href))
    return [
      ...entries.flatMap((entry) => bringBack(world, entry, wanted.get(entry.draft.href))),
      ...[...wanted.values()].filter(({ href }) => !known.has(href)).map((past) => revive(world, type, past)),
    ]
  })
  return { status: UNCERTAIN.restoreStatus, changes }
}

function bringBack(world: World, entry: Entry, past: VersionedObject | undefined): Change[] {
  const resource = { [kindOf(entry.type).noun]: { href: entry.draft.href, name: nameOf(entry.draft.name) } }
  if (past === undefined) {
    const stamp = { deleted_at: world.now(), deleted_by: { href: world.user.href }, ...updateStamp(world) }
    world.policy.remove(entry, stamp)
    return [{ resource, type: 'delete' }]
  }
  if (isSame(past, entry.draft)) return []
  const rules = entry.type === 'rule_sets' ? markRules(world, entry.draft, past) : {}
  world.policy.change(entry, { ...past, ...rules, ...updateStamp(world) })
  return [{ resource, type: 'update' }]
}

/**
 * Recreates, with its old href, an object of the past version that no longer exists. The object becomes a new draft.
 */
function revive(
  world: World,
  type: ProvisionedVersion['modified'][number]['object_type'],
  past: VersionedObject,
): Change {
  const rules = type === 'rule_sets' ? markRules(world, {}, past) : {}
  world.policy.create(type, { ...past, ...rules, ...updateStamp(world) })
  return { resource: { [kindOf(type).noun]: { href: past.href, name: nameOf(past.name) } }, type: 'create' }
}

/**
 * Returns the rules of the past rule set, each marked with its difference from the current rules. Rules that are not in
 * the past rule set are included and marked as deleted (P4).
 */
function markRules(world: World, current: Json, past: VersionedObject): Json {
  const lists = HELD_KINDS.map((kind) => {
    const now = new Map(rulesOf(current as VersionedObject, kind).map((rule) => [rule.href, rule]))
    const restored = rulesOf(past, kind).map((rule) => {
      const known = now.get(rule.href)
      now.delete(rule.href)
      if (known && isSame(known, rule)) return known
      return { ...rule, ...updateStamp(world), update_type: known ? 'update' : 'create' }
    })
    const dropped = [...now.values()].map((rule) => ({
      ...rule,
      ...updateStamp(world),
      deleted_at: world.now(),
      deleted_by: { href: world.user.href },
      update_type: 'delete',
    }))
    return [kind.list, [...restored, ...dropped]]
  })
  return Object.fromEntries(lists) as Json
}

/** Returns true if two versions of an object are equal, apart from the time and author of the last write. */
function isSame(one: VersionedObject, other: VersionedObject): boolean {
  const content = ({ updated_at: _at, updated_by: _by, ...fields }: VersionedObject) => fields
  return one === other || isDeepStrictEqual(content(one), content(other))
}

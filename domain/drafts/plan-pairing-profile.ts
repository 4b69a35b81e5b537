import { ToolError } from '../../schemas/errors.js'
import type { EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { PairingProfile } from '../../schemas/pce/ven.js'
import type { ToolContext } from '../call.js'
import { describeObject } from '../inventory/find-object.js'
import type { LabelReference } from '../inventory/labels.js'
import { capital } from '../text/capital.js'
import { quote } from '../text/escape-text.js'
import { countOf } from '../text/describe-numbers.js'
import type { Joining } from './judge-joining.js'
import { findMembers } from './plan-label-group.js'
import { refuseTwoOfAKey } from './plan-virtual-service.js'

type Ctx = Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>

/** The default lifetime of keys of a new profile: a day, in seconds. */
export const USUAL_LIFESPAN = 86_400
const LARGEST_LIMIT = 2_147_483_647

/** The properties of a pairing profile that a caller gives. Absent properties are not changed. */
export interface PairingProfileArguments {
  enforcement_mode?: EnforcementMode
  enforcement_mode_lock?: boolean
  labels?: readonly LabelReference[]
  key_lifespan?: number | string
  allowed_uses_per_key?: number | string
  enabled?: boolean
}

/**
 * Checks the properties that a caller gives for a pairing profile, and returns the fields to send. Properties that were
 * not given are absent.
 *
 * @throws {ToolError} invalid_argument with the name of the argument; label_not_found.
 */
export async function planPairingProfile(ctx: Ctx, given: PairingProfileArguments): Promise<Record<string, unknown>> {
  const { labels, key_lifespan: lifespan, allowed_uses_per_key: uses, ...plain } = given
  const limits = {
    ...(lifespan !== undefined && { key_lifespan: planLimit(lifespan, 'key_lifespan') }),
    ...(uses !== undefined && { allowed_uses_per_key: planLimit(uses, 'allowed_uses_per_key') }),
  }
  if (labels === undefined) return { ...plain, ...limits }
  const { labels: found = [] } = await findMembers(ctx, { labels })
  refuseTwoOfAKey(found)
  return { ...plain, ...limits, labels: found.map(({ href }) => ({ href })) }
}

function planLimit(limit: number | string, argument: string): number | 'unlimited' {
  if (limit === 'unlimited') return limit
  const number = typeof limit === 'string' && /^\d{1,10}$/u.test(limit) ? Number(limit) : limit
  if (typeof number === 'number' && Number.isInteger(number) && number >= 1 && number <= LARGEST_LIMIT) return number
  const text = `${argument}: ${quote(String(limit))} is neither a whole number from 1 to ${LARGEST_LIMIT} nor "unlimited".`
  throw new ToolError('invalid_argument', text, { argument })
}

/** Warns of the effects of a profile on machines that pair with it, and of keys that never expire. */
export function warnOfProfile({ enforcement_mode: mode, key_lifespan: lifespan }: Record<string, unknown>): string[] {
  const modes: Record<string, string> = {
    full: 'Machines that pair with it enforce policy from the start: traffic that no rule allows is blocked.',
    selective: 'Machines that pair with it enforce deny rules from the start.',
  }
  return [
    ...(typeof mode === 'string' && modes[mode] !== undefined ? [modes[mode]] : []),
    ...(lifespan === 'unlimited'
      ? ['Its keys never expire: whoever has one can pair machines. create-pairing-key refuses such a profile.']
      : []),
  ]
}

/** The keys of the labels that place a machine in an application and give it a role there. */
const IDENTITY_KEYS = ['app', 'env', 'role']

/** Warns of labels that a profile does not assign, and of a policy that does not cover machines with its labels. */
export function warnOfJoining(
  keys: readonly (string | undefined)[],
  joining: Joining | string,
  mode: unknown,
): string[] {
  const missing = IDENTITY_KEYS.filter((key) => !keys.includes(key))
  const them = missing.length === 1 ? 'it' : 'them'
  const text = `It gives no label of ${missing.join(', ')}: a machine that pairs with it is without ${them} until somebody adds ${them}.`
  const without = missing.length === 0 ? [] : [text]
  if (typeof joining === 'string') return [...without, joining]
  const { scoped, undecided, rules, undecidedRules, unread } = joining
  const blocked = mode === 'full' ? ': its traffic would be blocked' : ''
  return [
    ...without,
    ...(scoped.length === 0 && undecided === 0 ? ['No rule set in force has a scope with these labels.'] : []),
    ...(Object.keys(rules).length === 0 && undecidedRules === 0 && unread === 0
      ? [`No rule in force applies to a machine with these labels${blocked}.`]
      : []),
    ...(unread > 0 ? [`The deny rules of ${countOf(unread, 'rule set')} could not be read, and are not counted.`] : []),
  ]
}

/** Warns if a new profile sets no limit to how many machines may pair with a key. */
export function warnOfUses({ allowed_uses_per_key: uses }: Record<string, unknown>): string[] {
  if (uses === 'unlimited') return ['Each of its keys pairs any number of machines.']
  return uses === undefined
    ? ['allowed_uses_per_key is not given, so the PCE chooses it: a key may pair any number of machines.']
    : []
}

/** A profile from which a pairing key can be created, with the lifetime of the key in seconds. */
export interface KeyPlan {
  profile: PairingProfile
  seconds: number
}

/**
 * Checks that a key created from this profile would work and would expire.
 *
 * @throws {ToolError} invalid_argument for a disabled profile, and for one whose keys never expire.
 */
export function planKey(profile: PairingProfile): KeyPlan {
  const { href, enabled, key_lifespan: lifespan } = profile
  const what = capital(describeObject('pairing_profiles', profile))
  if (enabled !== true) {
    const text = `${what} is disabled, so no key of it works.`
    throw new ToolError('invalid_argument', text, { reason: 'disabled', href }, { hint: 'Enable it first.' })
  }
  const seconds = typeof lifespan === 'string' && /^\d{1,10}$/u.test(lifespan) ? Number(lifespan) : lifespan
  if (typeof seconds === 'number' && seconds >= 1) return { profile, seconds }
  const text = `Keys of ${describeObject('pairing_profiles', profile)} never expire, so none is made.`
  const hint = `update-pairing-profile sets key_lifespan, in seconds; ${USUAL_LIFESPAN} is a day.`
  throw new ToolError('invalid_argument', text, { reason: 'never_expires', href, key_lifespan: lifespan }, { hint })
}

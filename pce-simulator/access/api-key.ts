import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { describeChanges } from '../kinds/describe-changes.js'
import { orgSettings } from '../kinds/generic-kinds.js'
import { singleOf } from '../kinds/single-kind.js'
import { invalidInput } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { birthStamp, type World } from '../world.js'
import { digest } from './digest.js'

/** The value of `expires_in_seconds` for a key that never expires. */
const NEVER = -1

export interface KeyFields {
  name?: string | null
  description?: string
  expires_in_seconds?: number | 'default'
}

/** The user name and secret of an API key that the simulator's user has chosen; all other keys get random values. */
export interface GivenKey {
  username: string
  secret: string
}

/** Lists all API keys, both of users and of service accounts. If `owner` is given, only the owner's keys are listed. */
export function keysOf(world: World, owner?: string): PceObject[] {
  const keys = world.store('api_keys').live()
  return keys.filter(({ href }) => owner === undefined || href.startsWith(`${owner}/api_keys/`))
}

/**
 * Creates an API key for an owner and returns it with its secret. The PCE shows the secret only once, in the answer to
 * the request that creates the key (P40).
 */
export function issueKey(
  world: World,
  owner: string,
  { name = null, description = '', expires_in_seconds = 'default' }: KeyFields,
  given?: GivenKey,
): { key: PceObject; secret: string; change: Change } {
  const username = given?.username ?? `api_${world.ids.hex('api_keys', 16)}`
  const secret = given?.secret ?? world.ids.hex('api-key-secret', 64)
  const key_id = username.replace(/^api_/, '')
  const fields = {
    key_id,
    auth_username: username,
    name,
    description,
    expires_in_seconds: lifetimeOf(world, expires_in_seconds),
    account: { href: owner },
  }
  const key: PceObject = {
    href: `${owner}/api_keys/${encodeURIComponent(key_id)}`,
    ...fields,
    last_login_on: null,
    secret_digest: digest(secret),
    ...birthStamp(world),
  }
  world.store('api_keys').set(key)
  const resource = { api_key: { href: key.href, name } }
  return { key, secret, change: { resource, type: 'create', changes: describeChanges({}, fields) } }
}

/** Renders the answer to the POST that created the key. No other answer contains the secret. */
export function renderIssued(key: PceObject, secret: string): Json {
  const { href, key_id, auth_username, name, description, expires_in_seconds, created_at } = key
  return { href, key_id, auth_username, name, description, expires_in_seconds, created_at, secret }
}

export function revokeKey(world: World, { href, name }: PceObject): Change {
  world.store('api_keys').remove(href)
  return { resource: { api_key: { href, name } }, type: 'delete' }
}

export function revokeKeysOf(world: World, owner: string): void {
  for (const key of keysOf(world, owner)) revokeKey(world, key)
}

export function stateOf(world: World, { expires_in_seconds, created_at }: PceObject): 'active' | 'expired' {
  const lifetime = expires_in_seconds as number
  const ends = lifetime === NEVER ? Infinity : Date.parse(created_at!) + lifetime * 1000
  return world.clock() < ends ? 'active' : 'expired'
}

/** Renders a key as it appears in the lists of keys of an account or an organisation. */
export function renderKey(world: World, key: PceObject): Json {
  const { href, key_id, auth_username, name, description, expires_in_seconds, created_at, created_by } = key
  return {
    ...{ href, key_id, auth_username, name, description, state: stateOf(world, key) },
    ...{ expires_in_seconds, created_at, created_by, last_login_on: key.last_login_on },
  }
}

export function ownerOf({ account }: PceObject): string {
  return (account as Reference).href
}

/** Determines how long a key lives, in seconds. Throws 406 if the requested lifetime is too long. */
export function lifetimeOf(world: World, asked: number | 'default'): number {
  const longest = singleOf(world, orgSettings).max_api_key_expiration_in_seconds as number
  if (asked === 'default') return longest
  const isLonger = longest !== NEVER && (asked === NEVER || asked > longest)
  if (isLonger && !UNCERTAIN.keyMayOutliveMaximum) throw invalidInput(`An API key can live ${longest} seconds at most`)
  return asked
}

import { BlockList, isIPv6 } from 'node:net'
import { Type } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, invalidUri } from '../refusal.js'
import { requireAddress } from '../validate/require-address.js'
import { CLOSED, Name, Nullable, OneOf, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'

const MAX_ADDRESSES = 8
const MAX_PER_ORG = 50

const Addresses = Type.Array(Type.String(), { maxItems: MAX_ADDRESSES })
const FIELDS = {
  description: Type.Optional(Text),
  enforcement_exclusions: Type.Optional(Nullable(Type.Array(OneOf('user_sessions', 'api_keys')))),
}
const CREATE = new Shape('access_restrictions_post', Type.Object({ name: Name, ips: Addresses, ...FIELDS }, CLOSED))
const UPDATE = new Shape(
  'access_restrictions_put',
  Type.Object({ name: Type.Optional(Name), ips: Type.Optional(Addresses), ...FIELDS }, CLOSED),
)

/** Addresses that keys and users may connect from (P12, P49). */
export const accessRestriction: PlainKind = {
  segment: 'access_restrictions',
  noun: 'access_restriction',
  ids: 'int',
  store: (world) => world.store('access_restrictions'),
  filters: {},

  build(world, body) {
    const fields = CREATE.read(body)
    fields.ips.forEach(requireAddress)
    if (world.store('access_restrictions').live().length >= MAX_PER_ORG) {
      throw invalidInput(`An organisation can have at most ${MAX_PER_ORG} access restrictions`)
    }
    return { description: null, enforcement_exclusions: [], ...fields }
  },

  change(_world, _current, body) {
    const fields = UPDATE.read(body)
    fields.ips?.forEach(requireAddress)
    return fields
  },

  remove(world, { href }) {
    const bearers = ['service_accounts', 'auth_security_principals'].flatMap((segment) => world.store(segment).live())
    if (bearers.some((bearer) => restrictionOf(bearer) === href)) {
      throw invalidInput('The access restriction is still in use')
    }
    return null
  },

  render: (_world, object) => object,
}

/** What a body says about the restriction of an account or principal; 406 invalid_uri when there is no such one. */
export function requireRestriction(world: World, reference: Reference | null | undefined): void {
  if (reference && !world.store('access_restrictions').get(reference.href)) throw invalidUri(reference.href)
}

function restrictionOf(bearer: PceObject): string | undefined {
  return (bearer.access_restriction as Reference | null | undefined)?.href
}

/** May this bearer of a restriction come from the address, with a session or with an API key? */
export function admits(world: World, bearer: PceObject, means: 'user_sessions' | 'api_keys', address: string): boolean {
  const restriction = world.store('access_restrictions').get(restrictionOf(bearer) ?? '')
  if (!restriction) return true
  if (((restriction.enforcement_exclusions ?? []) as string[]).includes(means)) return true
  const allowed = new BlockList()
  for (const text of restriction.ips as string[]) {
    const [network, bits] = text.split('/') as [string, string?]
    if (bits === undefined) allowed.addAddress(network, familyOf(network))
    else allowed.addSubnet(network, Number(bits), familyOf(network))
  }
  return allowed.check(address, familyOf(address))
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4'
}

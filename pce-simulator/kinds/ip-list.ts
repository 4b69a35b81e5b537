import { isIP } from 'node:net'
import { Type } from '@sinclair/typebox'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAME } from '../../schemas/pce/words.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { invalidInput, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, byAddress, partial } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Name, Nullable, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { findPolicyUsage, isInUse } from './find-usage.js'
import { requireFreeName } from './policy-version.js'
import type { VersionedKind } from './versioned-kind.js'

const Range = Type.Object({
  from_ip: Type.String(),
  to_ip: Type.Optional(Type.String()),
  description: Type.Optional(Text),
  exclusion: Type.Optional(Type.Boolean()),
})
const Fqdn = Type.Object({ fqdn: Type.String(), description: Type.Optional(Text) }, CLOSED)
const OPTIONAL = {
  description: Type.Optional(Text),
  ip_ranges: Type.Optional(Type.Array(Range)),
  fqdns: Type.Optional(Type.Array(Fqdn)),
  ip_list_attribute_id: Type.Optional(Nullable(Type.String())),
  ...EXTERNAL_DATA,
}
const CREATE = new Shape('sec_policy_ip_lists_post', Type.Object({ name: Name, ...OPTIONAL }, CLOSED))
const UPDATE = new Shape('sec_policy_ip_lists_put', Type.Object({ name: Type.Optional(Name), ...OPTIONAL }, CLOSED))

const TAKEN = ['ip_list_name_not_unique', 'IP List name must be unique'] as const

/** The object kind for IP lists (P17). */
export const ipList: VersionedKind = {
  type: 'ip_lists',
  noun: 'ip_list',
  ids: 'int',
  filters: {
    name: partial('name'),
    description: partial('description'),
    ip_address: byAddress(addressesOf),
    fqdn: (value) => (object) => ((object as IpList).fqdns ?? []).some(({ fqdn }) => fqdn.includes(value)),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body) {
    const fields = CREATE.read(body)
    check(world, fields, null)
    requireFreeExternalData(drafts(world), fields)
    return {
      name: fields.name,
      description: fields.description ?? null,
      external_data_set: fields.external_data_set ?? null,
      external_data_reference: fields.external_data_reference ?? null,
      ip_ranges: (fields.ip_ranges ?? []).map(describeRange),
      fqdns: fields.fqdns ?? [],
    }
  },

  change(world, entry, body) {
    const { ip_list_attribute_id: _unused, ...fields } = UPDATE.read(body)
    refuseBuiltIn(entry.draft)
    check(world, fields, entry.draft.href)
    const others = drafts(world).filter((other) => other.href !== entry.draft.href)
    requireFreeExternalData(others, { ...entry.draft, ...fields })
    return fields.ip_ranges ? { ...fields, ip_ranges: fields.ip_ranges.map(describeRange) } : fields
  },

  refuseRemoval(world, entry) {
    refuseBuiltIn(entry.draft)
    if (isInUse(findPolicyUsage(world, entry.draft.href))) {
      throw notAcceptable('ip_list_referenced', 'IP List is referenced by a rule')
    }
  },
}

function drafts(world: World): PceObject[] {
  return world.policy.entries('ip_lists').map(({ draft }) => draft)
}

function refuseBuiltIn(object: PceObject): void {
  if (UNCERTAIN.builtInObjectsAreFixed && object.name === ANY_IP_LIST_NAME)
    throw invalidInput('The built-in IP List cannot be changed')
}

interface Fields {
  name?: string
  ip_ranges?: { from_ip: string; to_ip?: string }[]
  fqdns?: { fqdn: string }[]
}

function check(world: World, { name, ip_ranges = [], fqdns = [] }: Fields, own: string | null): void {
  if (name !== undefined) requireFreeName(world, 'ip_lists', name, own, TAKEN)
  for (const { from_ip, to_ip } of ip_ranges) {
    const [address, bits] = from_ip.split('/', 2) as [string, string?]
    const family = isIP(address)
    const plain = bits === undefined
    const goodBits = plain || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
    const goodEnd = to_ip === undefined || (plain && isIP(to_ip) === family)
    if (family === 0 || !goodBits || !goodEnd || from_ip.split('/').length > 2) {
      throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
    }
  }
  for (const { fqdn } of fqdns) {
    if (!/^(\*\.?)?([a-z0-9_*-]+\.)*[a-z0-9_*-]+$/i.test(fqdn)) throw invalidInput(`${fqdn} is not a domain name`)
  }
}

function describeRange(range: { from_ip: string; to_ip?: string; description?: string; exclusion?: boolean }) {
  return { ...range, exclusion: range.exclusion ?? false }
}

function addressesOf(object: PceObject): string[] {
  return ((object as IpList).ip_ranges ?? []).flatMap(({ from_ip, to_ip }) => (to_ip ? [from_ip, to_ip] : [from_ip]))
}

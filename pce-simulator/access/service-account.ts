import { Type, type Static } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { createPlain, plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, invalidUri } from '../refusal.js'
import { exact } from '../validate/query-filters.js'
import { CLOSED, Href, Name, Nullable, Shape, Text } from '../validate/shape.js'
import { orgPath, type World } from '../world.js'
import { issueKey, keysOf, lifetimeOf, renderIssued, renderKey, revokeKeysOf } from './api-key.js'
import { principalOfAccount, removePermissions } from './principals.js'
import { permissionsOf } from './permission.js'
import { PermissionScope, readScope } from './permission-scope.js'
import { hasRole, requireRole } from './role.js'

export const Lifetime = Type.Union([Type.Literal('default'), Type.Integer({ minimum: -1, maximum: 2_147_483_647 })])
const Grants = Type.Array(Type.Object({ href: Type.Optional(Type.String()), role: Href, scope: PermissionScope }))
const FIELDS = { description: Type.Optional(Text), access_restriction: Type.Optional(Nullable(Href)) }
const CREATE = new Shape(
  'service_accounts_post',
  Type.Object(
    {
      name: Name,
      ...FIELDS,
      uuid: Type.Optional(Type.String({ minLength: 1 })),
      permissions: Grants,
      api_key: Type.Object({ expires_in_seconds: Lifetime }, CLOSED),
    },
    CLOSED,
  ),
)
const UPDATE = new Shape(
  'service_accounts_put',
  Type.Object({ name: Type.Optional(Name), ...FIELDS, permissions: Type.Optional(Grants) }, CLOSED),
)

const SEGMENT = 'service_accounts'

/**
 * The object kind for service accounts. The permissions of an account belong to a principal that has the same id as the
 * account (P28).
 */
export const serviceAccount: PlainKind = {
  segment: SEGMENT,
  noun: 'service_account',
  ids: (world, body) => (body as { uuid?: string }).uuid ?? world.ids.uuid(SEGMENT),
  store: (world) => world.store(SEGMENT),
  filters: {
    name: exact('name'),
    role: (value, world) => (account) => hasRole(grantsOf(world, account.href), value),
  },

  change(world, current, body) {
    const { permissions, ...fields } = UPDATE.read(body)
    if (permissions) grant(world, current.href, permissions)
    if (fields.name !== undefined) nameOf(world, current.href, fields.name)
    return fields
  },

  remove(world, { href }) {
    const principal = principalOfAccount(world, href)
    removePermissions(world, principal)
    world.store('auth_security_principals').remove(principal)
    revokeKeysOf(world, href)
    return null
  },

  render(world, object) {
    const keys = keysOf(world, object.href).map((key) => renderKey(world, key))
    return { ...object, permissions: grantsOf(world, object.href), api_keys: keys }
  },
}

const [collection, item] = plainRoutes(serviceAccount)

export const serviceAccountRoutes: Route[] = [
  { ...collection!, verbs: { ...collection!.verbs, POST: { event: 'service_account.create', handle: create } } },
  item!,
]

/** Creates the account with its first key. Only this answer contains the key's secret (P40). */
function create(call: Call) {
  const { world, path } = call
  const { permissions, api_key, uuid, ...fields } = CREATE.read(call.body)
  if (uuid !== undefined && world.store(SEGMENT).get(orgPath(world, `/${SEGMENT}/${encodeURIComponent(uuid)}`))) {
    throw invalidInput(`The service account ${uuid} exists`)
  }
  // All fields of the request are checked before the first object is created.
  const expires_in_seconds = lifetimeOf(world, api_key.expires_in_seconds)
  const grants = permissions.map((one) => readGrant(world, one))
  const complete = { description: null, access_restriction: null, ...fields }
  const made = createPlain(serviceAccount, complete, world, { path }, call.body)
  const { href } = made.json as unknown as PceObject
  nameOf(world, href, fields.name)
  for (const fields of grants) addPermission(world, href, fields)
  const { key, secret, change } = issueKey(world, href, { expires_in_seconds })
  const account = serviceAccount.render(world, world.store(SEGMENT).get(href)!, call.query) as Json
  const changes = [...made.changes, change]
  return { status: 201, json: { ...account, api_key: renderIssued(key, secret) }, changes }
}

function grantsOf(world: World, account: string): PceObject[] {
  return permissionsOf(world, principalOfAccount(world, account)).map(({ href, role, scope }) => ({
    href,
    role,
    scope,
  }))
}

function readGrant(world: World, { role, scope }: Static<typeof Grants>[number]): Json {
  return { role: requireRole(world, role), scope: readScope(world, scope) }
}

/**
 * Replaces the permissions of the account. An entry of `permissions` that contains the href of an existing permission
 * keeps that href.
 */
function grant(world: World, account: string, permissions: Static<typeof Grants>): void {
  const principal = principalOfAccount(world, account)
  const known = new Set(permissionsOf(world, principal).map(({ href }) => href))
  const strange = permissions.find(({ href }) => href !== undefined && !known.has(href))
  if (strange) throw invalidUri(strange.href)
  const grants = permissions.map((one) => ({ href: one.href, fields: readGrant(world, one) }))
  removePermissions(world, principal)
  for (const { href, fields } of grants) addPermission(world, account, fields, href)
}

function addPermission(
  world: World,
  account: string,
  fields: Json,
  href = orgPath(world, `/permissions/${world.ids.uuid('permissions')}`),
): void {
  const principal = { href: principalOfAccount(world, account) }
  world.store('permissions').set({ href, ...fields, auth_security_principal: principal })
}

/** Keeps the name of the account's principal equal to the name of the account. */
function nameOf(world: World, account: string, name: string): void {
  const href = principalOfAccount(world, account)
  const store = world.store('auth_security_principals')
  store.set({ display_name: null, access_restriction: null, ...store.get(href), href, type: 'service_account', name })
}

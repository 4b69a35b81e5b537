import type { PceObject } from '../../schemas/pce/reference.js'
import { birthOf } from '../built-in-objects.js'
import { orgPath, type World } from '../world.js'
import { permissionsOf } from './permission.js'

/**
 * The path segment of principals, the objects that hold permissions. The principal of a user is identified by the user
 * name (P12, P28).
 */
const SEGMENT = 'auth_security_principals'

/** Removes all permissions of a principal that is being deleted. */
export function removePermissions(world: World, principal: string): void {
  for (const { href } of permissionsOf(world, principal)) world.store('permissions').remove(href)
}

/** Finds the principal of a user. It does not exist if that user name has never been given a permission. */
export function principalOfUser(world: World, { username }: PceObject): PceObject | undefined {
  return world
    .store(SEGMENT)
    .live()
    .find(({ type, name }) => type === 'user' && name === username)
}

/**
 * Returns the href of the principal that holds the permissions of a service account. The principal has the same id as
 * the account.
 */
export function principalOfAccount(world: World, account: string): string {
  return account.replace(/^.*\/service_accounts\//, orgPath(world, `/${SEGMENT}/`))
}

/** Creates the principal of a user or group that the PCE has from the start. */
export function seedPrincipal(world: World, type: string, name: string, displayName: string): PceObject {
  const principal: PceObject = {
    href: orgPath(world, `/${SEGMENT}/${world.ids.uuid(SEGMENT)}`),
    type,
    name,
    display_name: displayName,
    access_restriction: null,
    ...birthOf(world),
  }
  world.store(SEGMENT).set(principal)
  return principal
}

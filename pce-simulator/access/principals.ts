import type { PceObject } from '../../schemas/pce/reference.js'
import { birthOf } from '../built-in-objects.js'
import { orgPath, type World } from '../world.js'
import { permissionsOf } from './permission.js'

/** The store of those who hold permissions; a user is identified by the user name (P12, P28). */
const SEGMENT = 'auth_security_principals'

/** Removes the permissions of a principal that is about to go. */
export function removePermissions(world: World, principal: string): void {
  for (const { href } of permissionsOf(world, principal)) world.store('permissions').remove(href)
}

/** The principal of a user, if permissions were ever given to that name. */
export function principalOfUser(world: World, { username }: PceObject): PceObject | undefined {
  return world
    .store(SEGMENT)
    .live()
    .find(({ type, name }) => type === 'user' && name === username)
}

/** The href of the principal that bears the permissions of a service account; its id is that of the account. */
export function principalOfAccount(world: World, account: string): string {
  return account.replace(/^.*\/service_accounts\//, orgPath(world, `/${SEGMENT}/`))
}

/** Makes the principal of a user or group that exists from the start. */
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

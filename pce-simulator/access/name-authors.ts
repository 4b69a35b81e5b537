import type { PceObject } from '../../schemas/pce/reference.js'
import type { World } from '../world.js'

/** Ways to log in name their authors by user name, not by href (P49). */
export function nameAuthors(world: World, object: PceObject): object {
  const nameOf = (by: PceObject['created_by']) => {
    const href = by?.href ?? ''
    const account = world.store('users').get(href)?.username ?? world.store('service_accounts').get(href)?.name
    return { username: account ?? null }
  }
  return { ...object, created_by: nameOf(object.created_by), updated_by: nameOf(object.updated_by) }
}

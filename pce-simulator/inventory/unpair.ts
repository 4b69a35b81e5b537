import type { PceObject } from '../../schemas/pce/reference.js'
import type { Change } from '../store/event-log.js'
import { endBindingsOf } from '../kinds/service-binding.js'
import type { PceErrorItem } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { updateStamp, type World } from '../world.js'
import { ownVen } from './ven.js'

/** The VENs for which an action was refused, grouped by reason. The action as a whole succeeds nevertheless (P32). */
export class Refused {
  readonly #hrefs = new Map<PceErrorItem, string[]>()

  add(reason: PceErrorItem, href: string): void {
    this.#hrefs.set(reason, [...(this.#hrefs.get(reason) ?? []), href])
  }

  get errors(): (PceErrorItem & { hrefs: string[] })[] {
    return [...this.#hrefs].map(([reason, hrefs]) => ({ ...reason, hrefs }))
  }
}

/**
 * Unpairs VENs and deletes their workloads. `find` returns the paired workload for an href. If an href occurs twice,
 * the second occurrence is refused, because the workload is no longer paired.
 */
export function unpair(
  world: World,
  hrefs: readonly string[],
  find: (href: string) => PceObject | undefined,
): { errors: Refused['errors']; changes: Change[] } {
  const refused = new Refused()
  const changes: Change[] = []
  for (const href of hrefs) {
    const workload = find(href)
    if (workload) changes.push(remove(world, workload))
    else refused.add(UNCERTAIN.unknownVen, href)
  }
  return { errors: refused.errors, changes }
}

function remove(world: World, workload: PceObject): Change {
  const { href, name } = ownVen(workload)!
  world.store('vens').remove(href)
  endBindingsOf(world, workload)
  if (UNCERTAIN.unpairedWorkloadIsKept) {
    const by = { href: world.user.href }
    const { ven: _gone, ...rest } = workload
    const mark = { managed: false, online: false, deleted: true, deleted_at: world.now(), deleted_by: by }
    world.workloads.set({ ...rest, ...mark, ...updateStamp(world) })
  } else world.workloads.remove(workload.href)
  return { resource: { ven: { href, name: name ?? null, hostname: workload.hostname } }, type: 'delete' }
}

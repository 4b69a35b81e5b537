import type { PceClient } from '../../pce-client/index.js'
import { ToolError, type ErrorCode, type ErrorDetails } from '../../schemas/errors.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import { firstOutside, nounOf, placeCreated, placeLabels, placeUnscoped, type PlacedObject } from './place-object.js'
import { placePending, placeSubset } from './place-pending.js'
import { placeSharedWrite } from './place-shared.js'
import { placeRuleSetWrite } from './place-rule-sets.js'
import { placeBindings, placeKnownProfile, placeProfile, placeVirtualServices } from './place-services.js'
import { placeVens } from './place-vens.js'
import { placeInterface, placeWorkloads } from './place-workloads.js'
import { createReader, IN_FLIGHT, type Reader } from './read-around.js'
import { fieldsOf, hrefOf, hrefsIn, nameOf, readTarget, type Write } from './read-write.js'
import { sayScopes } from './say-scopes.js'
import { surveyTerritory, type Territory } from './territory.js'

/** Judges the writes of one call by its caller's scopes. */
export interface ScopeJudge {
  /**
   * Returns the first object outside of the scopes that the write would change; null if all are inside. `earlier` has
   * the preceding requests of the same call, because they may create the object to which the write belongs.
   */
  readonly findOutside: (write: Write, earlier?: readonly Write[]) => Promise<PlacedObject | null>
  /** Returns for each pending change whether it is inside the scopes, in the same order. */
  readonly placeChanges: (hrefs: readonly string[]) => Promise<PlacedObject[]>
}

const RULES: ReadonlySet<string> = new Set(['sec_rules', 'deny_rules'])

/**
 * Creates the judge of one call. It reads what it needs with `pce`, and the labels of the scopes only once it is used.
 * Objects of a type for which there is no rule here, and objects that cannot be read, count as not inside.
 */
export function createScopeJudge(pce: PceClient, scopes: CallerScopes, signal: AbortSignal): ScopeJudge {
  let surveying: Promise<Territory> | undefined
  const survey = () => (surveying ??= surveyTerritory(pce, scopes, { signal }))
  return {
    async findOutside(write, earlier = []) {
      if (scopes.everything) return null
      const reader = createReader(pce, await survey(), signal)
      const placed = await placeWrite(reader, write, earlier)
      return placed.find(({ place }) => place.is !== 'inside') ?? null
    },
    async placeChanges(hrefs) {
      const reader = createReader(pce, await survey(), signal)
      return mapBounded(hrefs, IN_FLIGHT, (href) => placePending(reader, href))
    },
  }
}

/**
 * Returns the error that refuses a write to an object outside of the caller's scopes. `details` has the object, the
 * condition that it does not meet, and the scopes.
 */
export const refuseOutside = (placed: PlacedObject, scopes: CallerScopes): ToolError =>
  refusePlaced('out_of_scope', placed, { scopes: sayScopes(scopes) })

/**
 * Returns the error that refuses a call because of one object. It names the object and the condition that it does not
 * meet.
 */
export function refusePlaced(
  code: ErrorCode,
  { href, kind, name, place }: PlacedObject,
  more: ErrorDetails,
): ToolError {
  const what = name === undefined ? (href ?? nounOf(kind)) : quote(name)
  const why = place.is === 'inside' ? '' : place.why
  const object = { kind, ...(href !== undefined && { href }), ...(name !== undefined && { name }) }
  return new ToolError(code, `${what} ${why}.`, {
    object,
    ...(place.is !== 'inside' && { rule: place.rule }),
    ...more,
  })
}

/**
 * Determines for every object that the request would change whether it is inside the scopes. `earlier` has the
 * preceding requests of the same call.
 */
export async function placeWrite(reader: Reader, write: Write, earlier: readonly Write[]): Promise<PlacedObject[]> {
  const { territory, pce } = reader
  const target = readTarget(write.path, pce.orgId)
  const isCreation = write.method === 'POST' && target.id === undefined && !target.isPlanned
  const fallback = [{ kind: target.kind, ...hrefOf(target), place: placeUnscoped(territory, target.kind) }]
  if (target.rest.length > 0) return fallback
  switch (target.kind) {
    case 'workloads':
      return target.inner === undefined ? placeWorkloads(reader, write, target) : placeInterface(reader, write, target)
    case 'vens':
    case 'support_report_requests':
      return target.inner === undefined ? placeVens(reader, write, target) : fallback
    case 'rule_sets':
      return target.inner === undefined || RULES.has(target.inner.kind)
        ? placeRuleSetWrite(reader, write, target, earlier)
        : fallback
    case 'sec_policy':
      return placeSubset(reader, write, target) ?? fallback
    case 'virtual_services':
      return target.inner === undefined ? placeVirtualServices(reader, write, target) : fallback
    case 'service_bindings':
      return placeBindings(reader, write, target)
    case 'container_clusters':
      return target.inner?.kind === 'container_workload_profiles' ? placeProfile(reader, write, target) : fallback
    case 'pairing_profiles':
      if (territory.shield !== undefined) return placeKnownProfile(reader, write, target)
      return isCreation
        ? [
            {
              kind: target.kind,
              ...nameOf(write.body),
              place: firstOutside([
                placeCreated(territory, target.kind),
                placeLabels(hrefsIn(fieldsOf(write.body)['labels']), territory, 'profile_labels'),
              ]),
            },
          ]
        : fallback
    case 'labels':
    case 'label_groups':
    case 'ip_lists':
    case 'services':
      if (territory.shield !== undefined) return placeSharedWrite(reader, write, target)
      return isCreation
        ? [{ kind: target.kind, ...nameOf(write.body), place: placeCreated(territory, target.kind) }]
        : fallback
    default:
      return fallback
  }
}

import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { fetchEvery } from './fetch-every.js'
import { toDraftHref } from './parse-href.js'
import { pointsAt } from './points-at.js'
import { warnOfBuiltIn } from './warn-of-built-in.js'

/** Users an error names at most. */
const MAX_LISTED = 20

/** Kinds whose objects point at IP lists and services. */
const USERS = ['ruleSets', 'enforcementBoundaries', 'virtualServices'] as const

/**
 * Rule sets, enforcement boundaries and virtual services that point at a policy object, in the draft or in the active policy: both
 * keep it from being deleted (P31). For an error's `used_by`; `used_by_unread` names what this account may not list, or the PCE has
 * not. What is built in stays for another reason, and taking it out of every rule would not help.
 */
export async function findPolicyUsers(
  pce: PceClient,
  object: { href: string; name: string },
  signal: AbortSignal,
): Promise<{ details: ErrorDetails; hint?: string }> {
  const [hint] = warnOfBuiltIn(object)
  if (hint !== undefined) return { details: {}, hint }
  const wanted = toDraftHref(object.href)
  const users = new Map<string, { href: string; name: string; versions: string[] }>()
  const unread = new Set<string>()
  for (const version of ['draft', 'active'] as const) {
    for (const kind of USERS) {
      try {
        const { items } = await fetchEvery<PceObject>({ api: pce[kind], policyVersion: version, params: {}, signal })
        for (const item of items.filter((candidate) => pointsAt(candidate, wanted))) {
          const user = toDraftHref(item.href)
          const known = users.get(user) ?? { href: user, name: nameOf(item), versions: [] }
          users.set(user, { ...known, versions: [...known.versions, version] })
        }
      } catch (error) {
        if (!(error instanceof PceApiError)) throw error
        unread.add(kind)
      }
    }
  }
  return {
    details: {
      used_by: [...users.values()].slice(0, MAX_LISTED),
      used_by_total: users.size,
      ...(unread.size > 0 && { used_by_unread: [...unread] }),
    },
    ...(users.size > 0 && {
      hint: 'Take it out of what used_by names first; where versions say active, provision that change.',
    }),
  }
}

function nameOf({ name }: PceObject): string {
  return typeof name === 'string' ? name : ''
}

import { PceError, type PceClient } from '../../pce-client/index.js'
import type { PolicyChange } from '../../schemas/policy-changes.js'
import { mapBounded } from '../text/map-bounded.js'

/** Users and service accounts; nothing else that an answer may point at is asked for. */
const AUTHOR = /^\/(?:users\/\d+|orgs\/\d+\/service_accounts\/[\w-]+)$/
/** Distinct authors asked for; the rest stay hrefs. */
const MOST = 20
const IN_FLIGHT = 4

/** The changes with the names of their authors. A name is an aid: an author who may not be read stays an href. */
export async function nameAuthors(
  pce: PceClient,
  changes: readonly PolicyChange[],
  signal: AbortSignal,
): Promise<PolicyChange[]> {
  const all = changes.flatMap((change) =>
    [change, ...(change.rules ?? [])].flatMap((one) => one.updated_by?.href ?? []),
  )
  const names = new Map<string, string>()
  const asked = [...new Set(all)].filter((href) => AUTHOR.test(href)).slice(0, MOST)
  await mapBounded(asked, IN_FLIGHT, async (href) => {
    try {
      const { username, name } = (await pce.get(href, { includeOrg: false, signal })).json<Record<string, unknown>>()
      if (typeof (username ?? name) === 'string') names.set(href, (username ?? name) as string)
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
    }
  })
  const named = <T extends Pick<PolicyChange, 'updated_by'>>(one: T): T => {
    const name = one.updated_by && names.get(one.updated_by.href)
    return name === undefined ? one : { ...one, updated_by: { ...one.updated_by, name } }
  }
  return changes.map((change) => ({
    ...named(change),
    ...(change.rules !== undefined && { rules: change.rules.map(named) }),
  }))
}

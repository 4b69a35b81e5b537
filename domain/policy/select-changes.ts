import { PceApiError, type ObjectApi, type PceClient, type TypedPendingChange } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { ToolContext } from '../call.js'
import { pickEvery } from '../inventory/fetch-every.js'
import type { NamedObject, Version } from '../inventory/find-object.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { canBeName, nearNames } from '../text/compare-texts.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import { toProvisionable, updateTypeOf } from './choose-changes.js'
import { readVersions, type ReadVersions } from './describe-changes.js'
import { authorsOfObject, selectByAuthor } from './select-by-author.js'

type Reading = Pick<ToolContext<true>, 'pce' | 'signal'>

/** The criteria by which a comparison selects the changes to show. A change must meet all given criteria. */
export interface ChangeFilter {
  type?: ChangeSubsetType
  /** The href of an object in any version. The href of a rule selects its rule set. */
  href?: string
  /** The exact name of the object in either of the two compared versions. */
  name?: string
}

/** The types of versioned objects that have names and that the PCE client can list. */
const LISTED = {
  rule_sets: 'ruleSets',
  ip_lists: 'ipLists',
  services: 'services',
  label_groups: 'labelGroups',
  enforcement_boundaries: 'enforcementBoundaries',
  virtual_services: 'virtualServices',
  virtual_servers: 'virtualServers',
} as const satisfies Partial<Record<ChangeSubsetType, keyof PceClient>>
type ListedType = keyof typeof LISTED
const LISTED_TYPES = Object.keys(LISTED) as ListedType[]

const IN_FLIGHT = 4

/**
 * Returns the pending changes that match a filter. If the object exists but has no pending change, the list is empty.
 * @throws {ToolError} not_found, with similar names, if no object in the draft or active policy has the href or name;
 * invalid_argument if the href is not of a versioned object.
 */
export async function selectPending(
  ctx: Reading,
  pending: readonly TypedPendingChange[],
  { type, href, name }: ChangeFilter,
): Promise<TypedPendingChange[]> {
  let found = pending.filter((change) => type === undefined || change.type === type)
  if (href !== undefined) {
    const [target = ''] = toProvisionable([href], ctx.pce.orgId, { argument: 'href', deed: 'discarded' })
    found = found.filter((change) => toDraftHref(change.href) === target)
    if (found.length === 0) await requireObject(ctx, target)
  }
  return name === undefined ? found : selectNamed(ctx, found, name, type)
}

async function requireObject({ pce, signal }: Reading, href: string): Promise<void> {
  for (const version of [href, toActiveHref(href)]) {
    try {
      await pce.get(version, { includeOrg: false, signal })
      return
    } catch (error) {
      if (!(error instanceof PceApiError) || !error.isGone) throw error
    }
  }
  throw new ToolError('not_found', `Neither the draft nor the active policy has an object ${quote(href)}.`, { href })
}

async function selectNamed(
  ctx: Reading,
  changes: readonly TypedPendingChange[],
  name: string,
  type: ChangeSubsetType | undefined,
): Promise<TypedPendingChange[]> {
  const types = LISTED_TYPES.filter((one) => type === undefined || one === type)
  // The list of pending changes contains an object's name in the draft, or no name at all. In the active version, the
  // object may have another name.
  const unsure = changes.filter((change) => updateTypeOf(change) !== 'create' || typeof change.name !== 'string')
  const unsureTypes = types.filter((one) => unsure.some((change) => change.type === one))
  const named = new Set([
    ...(await hrefsNamed(ctx, unsureTypes, name, 'active')).hrefs,
    ...(await hrefsNamed(ctx, unsureTypes, name, 'draft')).hrefs,
  ])
  const found = changes.filter((change) => change.name === name || named.has(toDraftHref(change.href)))
  if (found.length > 0 || named.size > 0) return found
  const draft = await hrefsNamed(ctx, types, name, 'draft')
  const active = draft.hrefs.length > 0 ? draft : await hrefsNamed(ctx, types, name, 'active')
  if (active.hrefs.length > 0) return []
  throw noneNamed(name, type, [...changes.flatMap((change) => change.name ?? []), ...draft.others, ...active.others])
}

/** Returns the error for a name that no object has in either of the two compared versions. */
export function noneNamed(name: string, type: ChangeSubsetType | undefined, candidates: Iterable<string>): ToolError {
  const what = type === undefined ? 'Nothing' : `Nothing of type ${type}`
  const details = { argument: 'name', name, near_names: nearNames(name, new Set(candidates)) }
  return new ToolError(
    'not_found',
    `${what} is named exactly ${quote(name)} in either policy that is compared.`,
    details,
  )
}

/** Returns the draft hrefs of objects with exactly this name, and the other names that the PCE's search found. */
async function hrefsNamed({ pce, signal }: Reading, types: readonly ListedType[], name: string, version: Version) {
  const hrefs: string[] = []
  const others: string[] = []
  if (!canBeName(name)) return { hrefs, others }
  await mapBounded(types, IN_FLIGHT, async (type) => {
    const api = pce[LISTED[type]] as unknown as ObjectApi<NamedObject>
    try {
      const query = { api, policyVersion: version, params: { name }, signal }
      for (const one of await pickEvery(query, ({ href, name: own }) => ({ href, own })))
        if (one.own === name) hrefs.push(toDraftHref(one.href))
        else if (typeof one.own === 'string') others.push(one.own)
    } catch (error) {
      // A PCE release that does not know this type has no objects of this type.
      if (!(error instanceof PceApiError) || !error.isGone) throw error
    }
  })
  return { hrefs, others }
}

/** Maximum number of changes whose objects are read to find their authors. Each of them takes up to two requests. */
const MOST_READ = 250

/**
 * Selects the changes that an author made. The list of pending changes says who edited an object, but not who edited
 * its rules. So if somebody else edited a rule set last, its rules are read, and if the list names no author, the
 * object is read. `read` in the result has the draft and active versions of these objects.
 */
export async function selectPendingBy(ctx: Reading, changes: readonly TypedPendingChange[], author: string) {
  const read = new Map<TypedPendingChange, ReadVersions>()
  let [left, failed] = [0, 0]
  const { wanted, notes } = await selectByAuthor(ctx, changes, author, {
    what: countOf(changes.length, 'change'),
    authorsOf: ({ updated_by: by }) => (by == null ? [] : [by.href]),
    async readMore(others) {
      const open = others.filter(({ type, updated_by: by }) => type === 'rule_sets' || by == null)
      left = Math.max(0, open.length - MOST_READ)
      const more = new Map<TypedPendingChange, readonly string[]>()
      await mapBounded(open.slice(0, MOST_READ), IN_FLIGHT, async (change) => {
        const versions = await readVersions(ctx.pce, change, ctx.signal)
        if (versions.error !== undefined) failed++
        read.set(change, versions)
        more.set(change, authorsOfObject({ change, versions }))
      })
      return more
    },
  })
  if (left > 0) notes.push(`${countOf(left, 'change')} of other authors, or of nobody known, were not read for author.`)
  if (failed > 0) notes.push(`${countOf(failed, 'change')} could not be read for author.`)
  return { wanted, read, notes }
}

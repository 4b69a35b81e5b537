import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import { fetchEvery, type ListQuery } from '../inventory/fetch-every.js'
import { apiOf, nounOf, type NamedKind, type NamedObject, type ObjectOf } from '../inventory/find-object.js'
import { hidesCharacters } from '../text/escape-text.js'

/** Kinds whose names a PCE user expects to be unique: what the error calls the existing one, and the PCE's own token. */
const UNIQUE = {
  ip_lists: { detail: 'existing_iplist', token: 'ip_list_name_not_unique' },
  rule_sets: { detail: 'existing_ruleset', token: 'rule_set_name_in_use' },
  // The PCE accepts a second service of a name, which makes every later lookup by that name ambiguous (P18).
  services: { detail: 'existing_service', token: '' },
} as const satisfies Partial<Record<NamedKind, { detail: string; token: string }>>
type UniqueKind = keyof typeof UNIQUE

/**
 * Throws already_exists with the draft object that has exactly this name. Partial names do not match. `own` is the object to be
 * renamed; if it keeps its name nothing is looked up.
 */
export async function refuseTakenName(
  pce: PceClient,
  kind: UniqueKind,
  name: string,
  signal: AbortSignal,
  own?: Pick<NamedObject, 'href' | 'name'>,
): Promise<void> {
  if (own?.name === name) return
  const { items } = await fetchEvery<NamedObject>({ api: apiOf(pce, kind), params: { name }, signal })
  const existing = items.find((object) => object.name === name && object.href !== own?.href)
  if (existing === undefined) return
  // A name stays taken until its deletion is provisioned (P4).
  const state = existing.update_type === 'delete' ? ' Its deletion is pending; provision it to free the name.' : ''
  const what = { href: existing.href, name }
  const text = `The name "${name}" already belongs to another ${nounOf(kind)}.${state}`
  throw new ToolError('already_exists', text, { [UNIQUE[kind].detail]: what })
}

/**
 * The object that a POST has made whose answer cannot be read: the one that has exactly the name it was given. It exists (D72), so
 * that to fail would be wrong; but no other may be taken for it. Throws `error` where there is none or several of that name, or
 * where they cannot be read, and for any error that is not about such an answer.
 */
export async function findCreated<K extends NamedKind>(
  error: unknown,
  pce: PceClient,
  kind: K,
  name: string,
  signal: AbortSignal,
): Promise<ObjectOf<K>> {
  if (!(error instanceof PceError) || !error.isAccepted) throw error
  const query = { api: apiOf(pce, kind), params: { name }, signal } as unknown as ListQuery<NamedObject>
  const { items } = await fetchEvery(query).catch(() => ({ items: [] }))
  const [created, ...others] = items.filter((object) => object.name === name)
  if (created === undefined || others.length > 0) throw error
  return created as ObjectOf<K>
}

/**
 * Creates a draft object; a name that someone else took after our lookup is already_exists with its href, or the PCE's refusal
 * where that object cannot be looked up. One that was created, though the PCE's answer does not show it, is found by its name.
 */
export async function createNamed<K extends UniqueKind>(
  pce: PceClient,
  kind: K,
  body: { name: string },
  signal: AbortSignal,
): Promise<ObjectOf<K>> {
  signal.throwIfAborted()
  try {
    return await apiOf(pce, kind).create(body)
  } catch (error) {
    if (error instanceof PceApiError && error.errors.some(({ token }) => token === UNIQUE[kind].token)) {
      await refuseTakenName(pce, kind, body.name, signal).catch((found: unknown) => {
        throw found instanceof ToolError ? found : error
      })
    }
    return findCreated(error, pce, kind, body.name, signal)
  }
}

/**
 * Throws invalid_argument for a new name, by argument, that contains hidden characters: in other user interfaces it would pass
 * for another name.
 */
export function refuseHidden(names: Readonly<Record<string, string>>): void {
  for (const [argument, name] of Object.entries(names)) {
    if (!hidesCharacters(name)) continue
    throw new ToolError('invalid_argument', `${argument} "${name}" contains hidden characters.`, {
      argument,
    })
  }
}

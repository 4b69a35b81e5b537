import { PceApiError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import { fetchEvery } from '../inventory/fetch-every.js'
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
 * Creates a draft object; a name that someone else took after our lookup is already_exists with its href, or the PCE's refusal
 * where that object cannot be looked up.
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
    throw error
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

import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { orderOf } from './order-of.js'
import { fetchEvery, type ListQuery } from '../inventory/fetch-every.js'
import { apiOf, nounOf, type NamedKind, type NamedObject, type ObjectOf } from '../inventory/find-object.js'
import { hidesCharacters, quote } from '../text/escape-text.js'

/**
 * The types of objects whose names users expect to be unique. `detail` is the error detail that holds the existing
 * object; `token` is the PCE's own error token.
 */
const UNIQUE = {
  ip_lists: { detail: 'existing_iplist', token: 'ip_list_name_not_unique' },
  rule_sets: { detail: 'existing_ruleset', token: 'rule_set_name_in_use' },
  // The PCE accepts a second service of the same name, which makes every later lookup by that name ambiguous (P18).
  services: { detail: 'existing_service', token: '' },
  label_groups: { detail: 'existing_label_group', token: 'name_must_be_unique' },
  // Whether the PCE refuses a second virtual service or pairing profile of the same name is not documented (P121).
  virtual_services: { detail: 'existing_virtual_service', token: 'name_must_be_unique' },
  pairing_profiles: { detail: 'existing_pairing_profile', token: 'name_must_be_unique' },
} as const satisfies Partial<Record<NamedKind, { detail: string; token: string }>>
export type UniqueKind = keyof typeof UNIQUE

/**
 * Throws already_exists if a draft object has exactly this name. When an object is renamed, `own` is that object; if
 * its name stays the same, nothing is looked up.
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
  // A name stays in use until the deletion of its object is provisioned (P4).
  const state = existing.update_type === 'delete' ? ' Its deletion is pending; provision it to free the name.' : ''
  const what = { href: existing.href, name }
  const text = `The name ${quote(name)} already belongs to another ${nounOf(kind)}.${state}`
  throw new ToolError('already_exists', text, { [UNIQUE[kind].detail]: what })
}

/**
 * Finds an object that a POST created, by its exact name, because the answer to the POST cannot be read. The call must
 * not fail, since the object exists (D72), but no other object must be mistaken for it. Throws `error` if no object or
 * more than one has the name, if objects cannot be read, or if `error` does not say that the PCE accepted the request.
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
 * Creates a draft object. If somebody else took the name after it was looked up, throws already_exists with the href of
 * that object, or the PCE's refusal if that object cannot be found. If the PCE created the object but its answer does
 * not contain it, the object is found by name.
 */
export function createNamed<K extends UniqueKind>(
  { pce, signal, inOrder }: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  kind: K,
  body: { name: string },
): Promise<ObjectOf<K>> {
  return inOrder(orderOf(kind, body.name), async (turn) => {
    // The PCE accepts a second service with the same name, so this call must itself check whether another call of this
    // process has just created one.
    if (turn.others.size > 0) await refuseTakenName(pce, kind, body.name, signal)
    const created = await create(pce, kind, body, signal)
    turn.note((created as NamedObject).href)
    return created
  })
}

async function create<K extends UniqueKind>(
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
 * Throws invalid_argument if a new name contains hidden characters, because user interfaces would show it like another
 * name. `names` maps each argument to its new name.
 */
export function refuseHidden(names: Readonly<Record<string, string>>): void {
  for (const [argument, name] of Object.entries(names)) {
    if (!hidesCharacters(name)) continue
    throw new ToolError('invalid_argument', `${argument} ${quote(name)} contains hidden characters.`, {
      argument,
    })
  }
}

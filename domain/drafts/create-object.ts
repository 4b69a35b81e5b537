import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ToolContext } from '../call.js'
import { nounOf, type NamedObject, type ObjectOf } from '../inventory/find-object.js'
import { findDifferences, listDifferences, type Difference } from '../policy/compare-stored.js'
import { quote } from '../text/escape-text.js'
import { readBack } from './change-object.js'
import { createNamed, refuseTakenName, type UniqueKind } from './create-named.js'

/** The creation of an object whose references have all been looked up. */
interface CreatePlan<K extends UniqueKind> {
  kind: K
  body: { name: string }
  /** Reads the object again after the write. */
  read: (href: string) => Promise<ObjectOf<K>>
  /** A sentence that says what can be done with the new object. */
  next: string
  warnings: readonly string[]
}

interface CreateAnswer<T> {
  message: string
  differences?: Difference[]
  warnings?: string[]
  dry_run?: boolean
  requests?: PlannedRequest[]
  /** The object as it was read back; absent in a dry run. Each tool shows it in its own form. */
  stored?: T
}

/** The types of objects that have no draft, so that a creation takes effect at once. */
const WITHOUT_DRAFT: ReadonlySet<string> = new Set<UniqueKind>(['pairing_profiles'])

/**
 * Creates an object with a name that no other object has, and reads it back. With `dryRun`, returns the request
 * instead.
 *
 * @throws {ToolError} already_exists for a taken name.
 */
export async function createObject<K extends UniqueKind>(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  { kind, body, read, next, warnings: given }: CreatePlan<K>,
  dryRun: boolean | undefined,
): Promise<CreateAnswer<ObjectOf<K>>> {
  const { pce, signal } = ctx
  await refuseTakenName(pce, kind, body.name, signal)
  const isDraft = !WITHOUT_DRAFT.has(kind)
  const what = `the ${nounOf(kind)} ${quote(body.name)}${isDraft ? ' in draft' : ''}.`
  if (dryRun === true) {
    const path = `/orgs/${pce.orgId}/${isDraft ? 'sec_policy/draft/' : ''}${kind}`
    return {
      dry_run: true,
      message: `Would create ${what}`,
      requests: [{ method: 'POST', path, body }],
      ...(given.length > 0 && { warnings: [...given] }),
    }
  }
  const created = (await createNamed(ctx, kind, body)) as NamedObject
  const { stored, warnings: unread } = await readBack(created, async () => (await read(created.href)) as NamedObject)
  const warnings = [...given, ...(unread.warnings ?? [])]
  return {
    message: `Created ${what} ${next}`,
    stored: stored as ObjectOf<K>,
    ...listDifferences(findDifferences(body, stored)),
    ...(warnings.length > 0 && { warnings }),
  }
}

import type { PceClient, TypedPendingChange } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { PolicyDependency } from '../../schemas/pce/policy.js'
import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import { countOf } from '../text/count-of.js'
import { toDraftHref } from '../inventory/parse-href.js'

/** A pending object that had to come along, and what needs it. */
export interface Dependency {
  href: string
  type: string
  required_by: string[]
}

/** Rounds of asking what the added objects need in turn; one PCE names them all at once, another may not. */
const MOST_ROUNDS = 20

/**
 * The chosen changes, complete: with `include` the pending objects that they need come along, and so does what those need. Without
 * it, or where asking finds no end, throws dependencies_required {required}: the PCE would refuse the half policy (P35).
 */
export async function completeChanges(
  pce: PceClient,
  chosen: readonly TypedPendingChange[],
  pending: readonly TypedPendingChange[],
  include: boolean,
  signal: AbortSignal,
): Promise<{ complete: TypedPendingChange[]; included: Dependency[] }> {
  const known = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const complete = [...chosen]
  const included: Dependency[] = []
  for (let round = 1; ; round++) {
    const hrefs = complete.map(({ href }) => toDraftHref(href))
    const dependencies = await pce.getPolicyDependencies(hrefs, 'draft', { signal })
    const required = toRequired(dependencies).filter(({ href }) => !hrefs.includes(href))
    if (required.length === 0) return { complete, included }
    if (!include || round > MOST_ROUNDS) throw incomplete(required)
    included.push(...required)
    for (const { href, type } of required) complete.push(known.get(href) ?? { href, type: type as ChangeSubsetType })
  }
}

function incomplete(required: Dependency[]): ToolError {
  return new ToolError(
    'dependencies_required',
    `These changes need ${countOf(required.length, 'more pending object')}. Nothing was provisioned.`,
    { required },
    {
      hint: 'Repeat with include_dependencies: true, add the required hrefs, or leave hrefs out to provision everything.',
    },
  )
}

/** Each required object once, with everything that needs it. */
function toRequired(dependencies: readonly PolicyDependency[]): Dependency[] {
  const required = new Map<string, Dependency>()
  for (const { dependency, required_by: requiredBy } of dependencies) {
    const needing = Object.values(requiredBy ?? {}).flatMap((references) => references.map(({ href }) => href))
    for (const [type, reference] of Object.entries(dependency)) {
      const href = toDraftHref(reference.href)
      const before = required.get(href)?.required_by ?? []
      required.set(href, { href, type, required_by: [...new Set([...before, ...needing])] })
    }
  }
  return [...required.values()]
}

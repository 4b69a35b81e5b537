import { Value } from '@sinclair/typebox/value'
import { ScopesFile } from '../../schemas/scopes.js'

/** Maximum number of faults that are named. */
const MOST_FAULTS = 20

/** Parses the content of MCP_SCOPES_FILE. Returns its faults in sentences if it has any, at most 20 of them. */
export function parseScopes(text: string): ScopesFile | { readonly faults: readonly string[] } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { faults: [`it is not JSON: ${(error as Error).message}`] }
  }
  const faults: string[] = []
  if (Value.Check(ScopesFile, value)) {
    const unnamed = findUnnamed(value)
    return unnamed.length === 0 ? value : { faults: unnamed.slice(0, MOST_FAULTS) }
  }
  for (const { path, message } of Value.Errors(ScopesFile, value)) {
    if (faults.length === MOST_FAULTS) break
    const said = path.endsWith('/scopes') ? 'Expected "*", or a list of scopes that each have a label or more' : message
    faults.push(path === '' ? said : `${path}: ${said}`)
  }
  return { faults }
}

/** Reports empty names. The schema cannot refuse them, because they are names of properties. */
function findUnnamed({ groups }: ScopesFile): string[] {
  return Object.entries(groups).flatMap(([group, { scopes }]) => [
    ...(group === '' ? ['/groups: a group needs a name'] : []),
    ...(scopes !== '*' && scopes.some((scope) => Object.hasOwn(scope, ''))
      ? [`/groups/${group}/scopes: a label needs a key`]
      : []),
  ])
}

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
  if (Value.Check(ScopesFile, value)) return value
  const faults: string[] = []
  for (const { path, message } of Value.Errors(ScopesFile, value)) {
    if (faults.length === MOST_FAULTS) break
    faults.push(path === '' ? message : `${path}: ${message}`)
  }
  return { faults }
}

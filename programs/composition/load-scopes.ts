import { readFile } from 'node:fs/promises'
import { createScopeJudge, refuseOutside } from '../../domain/scopes/judge-writes.js'
import { parseScopes } from '../../domain/scopes/parse-scopes.js'
import { sayScopes } from '../../domain/scopes/territory.js'
import { createWriteGuard } from '../../plugins/context/guard-writes.js'
import type { ScopesPort } from '../../plugins/context/open-context.js'
import type { ScopeJudgement } from '../../plugins/dispatcher/scope-gate.js'
import type { ServerLog } from '../../plugins/dispatcher/call.js'
import type { Identity } from '../../schemas/caller.js'
import { StartupError } from '../../schemas/config.js'
import type { ToolError } from '../../schemas/errors.js'
import type { CallerScopes, Creatable, ScopeGrant, ScopesFile } from '../../schemas/scopes.js'

/** The scopes of all callers, as the operator's file has them. */
export interface Scopes extends ScopesPort {
  /** What the gate must know. */
  readonly judgement: ScopeJudgement
  /** Reads the file again. If it is faulty, the scopes stay as they are, and the log names every fault. Never rejects. */
  reload(): Promise<void>
}

const REMEDY = 'docs/teams.md says what the file contains; docs/scopes.schema.json is its JSON Schema.'
/** Maximum size of the file, in bytes. */
const MOST_BYTES = 4 * 1024 * 1024

/** Reads the file of MCP_SCOPES_FILE. Rejects with StartupError, which names every fault of the file. */
export async function loadScopes(path: string, log: ServerLog): Promise<Scopes> {
  let current = await readScopes(path)
  return {
    of: (identity) => current.of(identity),
    guard: createWriteGuard((pce, scopes, write, signal) => refuseRequests(pce, scopes, [write], signal)),
    judgement: { say: sayScopes, refuse: refuseRequests },
    async reload() {
      try {
        current = await readScopes(path)
        log.info({ groups: current.groups }, 'the scopes were read again')
      } catch (error) {
        const faults = error instanceof StartupError ? error.faults.map(({ problem }) => problem) : [String(error)]
        log.error({ faults }, 'the scopes could not be read again; those read before stay in force')
      }
    },
  }
}

async function refuseRequests(
  ...[pce, scopes, requests, signal]: Parameters<ScopeJudgement['refuse']>
): Promise<ToolError | null> {
  const judge = createScopeJudge(pce, scopes, signal)
  for (const [at, request] of requests.entries()) {
    const found = await judge.findOutside(request, requests.slice(0, at))
    if (found !== null) return refuseOutside(found, scopes)
  }
  return null
}

interface Current {
  readonly groups: number
  readonly of: ScopesPort['of']
}

async function readScopes(path: string): Promise<Current> {
  const parsed = parseScopes(await readText(path))
  if ('faults' in parsed) {
    const faults = parsed.faults.map((fault) => ({ problem: `MCP_SCOPES_FILE: ${path}: ${fault}`, remedy: REMEDY }))
    throw new StartupError(...faults)
  }
  const { groups } = parsed
  const known = new WeakMap<Identity, CallerScopes>()
  return {
    groups: Object.keys(groups).length,
    of(identity) {
      let scopes = known.get(identity)
      if (scopes === undefined) known.set(identity, (scopes = scopesOf(identity, groups)))
      return scopes
    },
  }
}

async function readText(path: string): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException
    throw new StartupError({ problem: `MCP_SCOPES_FILE: ${path} cannot be read (${code})`, remedy: REMEDY })
  }
  if (bytes.length > MOST_BYTES)
    throw new StartupError({ problem: `MCP_SCOPES_FILE: ${path} has more than 4 MiB`, remedy: REMEDY })
  return bytes.toString('utf8')
}

/**
 * Returns the union of the scopes of the identity's groups. Names of groups are compared exactly. If the identity
 * provider left the groups out of the token, none is known, so the identity has no scope.
 */
function scopesOf({ groups }: Identity, entries: ScopesFile['groups']): CallerScopes {
  const grants: ScopeGrant[] = []
  const create = new Set<Creatable>()
  let everything = false
  for (const group of new Set(groups)) {
    if (!Object.hasOwn(entries, group)) continue
    const { scopes, extra = false, create: creatable = [] } = entries[group]!
    for (const kind of creatable) create.add(kind)
    if (scopes === '*') everything = true
    else for (const scope of scopes) grants.push({ labels: listsOf(scope), extra })
  }
  return { everything, grants, create: [...create] }
}

const listsOf = (scope: Record<string, string | string[]>): Record<string, string[]> =>
  Object.fromEntries(Object.entries(scope).map(([key, values]) => [key, Array.isArray(values) ? values : [values]]))

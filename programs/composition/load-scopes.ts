import { readFile } from 'node:fs/promises'
import { createScopeJudge, refuseOutside } from '../../domain/scopes/judge-writes.js'
import { parseScopes } from '../../domain/scopes/parse-scopes.js'
import { hideOutside, sayScopes } from '../../domain/scopes/say-scopes.js'
import { createWriteGuard } from '../../plugins/context/guard-writes.js'
import type { ScopesPort } from '../../plugins/context/open-context.js'
import type { ScopeJudgement } from '../../plugins/dispatcher/scope-gate.js'
import type { ServerLog } from '../../plugins/dispatcher/call.js'
import type { Identity } from '../../schemas/caller.js'
import { StartupError } from '../../schemas/config.js'
import type { ToolError } from '../../schemas/errors.js'
import type { CallerScopes, ScopesFile } from '../../schemas/scopes.js'

/** The scopes of all callers, as defined in the operator's file. */
export interface Scopes extends ScopesPort {
  /** The functions that the scope gate needs. */
  readonly judgement: ScopeJudgement
  /**
   * Reads the file again. If the file has faults, the previous scopes stay in force, and the log names every fault.
   * Never rejects.
   */
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
    guard: createWriteGuard(async (pce, scopes, write, signal) => {
      const refusal = await refuseRequests(pce, scopes, [write], signal)
      return refusal === null ? null : hideOutside(refusal, scopes)
    }),
    judgement: { say: sayScopes, refuse: refuseRequests, hide: hideOutside },
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
  const { groups, reads = 'all' } = parsed
  const known = new WeakMap<Identity, CallerScopes>()
  return {
    groups: Object.keys(groups).length,
    of(identity) {
      let scopes = known.get(identity)
      if (scopes === undefined) known.set(identity, (scopes = scopesOf(identity, groups, reads)))
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
 * provider left the groups out of the token, no group is known, so the identity has no scope. If the file limits the
 * reading of any group, such an identity can read only objects that belong to no scope.
 */
function scopesOf(
  { groups, hasGroupsOverage }: Identity,
  entries: ScopesFile['groups'],
  otherwise: Reads,
): CallerScopes {
  const own = [...new Set(groups)].filter((group) => Object.hasOwn(entries, group)).map((group) => entries[group]!)
  const everything = own.some(({ scopes }) => scopes === '*')
  const readings: readonly Reads[] =
    own.length > 0
      ? own.map(({ reads = otherwise }) => reads)
      : hasGroupsOverage && Object.values(entries).some(({ reads }) => reads === 'scoped')
        ? ['scoped']
        : [otherwise]
  const grants = own.flatMap(({ scopes, extra = false }) =>
    scopes === '*' ? [] : scopes.map((scope) => ({ labels: listsOf(scope), extra })),
  )
  const scopes = { everything, grants, create: [...new Set(own.flatMap(({ create = [] }) => create))] }
  return everything || readings.includes('all') ? scopes : { ...scopes, readsOnly: sayScopes(scopes) }
}

type Reads = NonNullable<ScopesFile['reads']>

const listsOf = (scope: Record<string, string | string[]>): Record<string, string[]> =>
  Object.fromEntries(Object.entries(scope).map(([key, values]) => [key, Array.isArray(values) ? values : [values]]))

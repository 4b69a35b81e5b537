import type { PceClient } from '../../pce-client/index.js'
import { ROLES, type Caller, type Identity, type Mode, type Role } from '../../schemas/caller.js'
import type { RoleMapping } from '../../schemas/config.js'
import type { CredentialsPort } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import type { SealedCredentials } from '../../schemas/state.js'

/** The PCE of one caller, with the client for it. */
export interface CallerPce {
  /** The client for the PCE; null if the caller has no usable PCE. */
  pce: PceClient | null
  /** The reason why `pce` is null; absent if the caller simply has no PCE credentials. */
  pceProblem?: ToolError
  /**
   * Must be called before a tool call uses the registered address. Resolves if a PCE has answered this caller at that
   * address, earlier or now; otherwise, rejects with ToolError.
   */
  provePce?: (signal: AbortSignal) => Promise<void>
  credentials: CredentialsPort
}

/**
 * Finds the PCE of a caller. The result is not a promise if all callers share one PCE. The function neither throws nor
 * rejects: a problem with the caller's PCE is part of the result, because the caller must be told about it. `record` is
 * the caller's keystore record, if it was read when the request was admitted.
 */
export type FindPce = (
  identity: Identity,
  role: Role | null,
  record?: SealedCredentials | null,
) => CallerPce | Promise<CallerPce>

/** The interface that limits the writes of callers to parts of the estate. */
export interface ScopesPort {
  /**
   * Returns the scopes inside which the identity may write. Until the next reload, the same identity object always
   * gives the same result.
   */
  readonly of: (identity: Identity) => CallerScopes
  /** Wraps a PCE client, so that only writes inside these scopes are sent. */
  readonly guard: (pce: PceClient, scopes: CallerScopes) => PceClient
}

/** The context of one caller over HTTP: identity, role and PCE. */
export interface OpenedContext extends CallerPce, Origin {
  caller: Caller
  /** The reason why the caller has no role; absent if the caller's groups simply give no role. */
  roleProblem?: ToolError
  transport: 'http'
  /** The names of the person and of the client in the access token, which are only displayed. */
  tokenSays?: Pick<Identity, 'name' | 'clientId'>
}

/** The facts that a request reveals about the program that sent it. */
export interface Origin {
  /** The name of the program in the User-Agent header. */
  client?: string
  /** The client's address; absent on a Unix socket whose peer is not trusted. */
  clientAddress?: string
}

/**
 * Creates the function that opens the context of an authenticated caller. The function runs for every request, so that
 * a change of the caller's groups or key takes effect at once.
 */
export function createContextOpener(
  mode: Mode,
  roles: RoleMapping,
  findPce: FindPce,
  scopes: ScopesPort | null = null,
): (identity: Identity, origin?: Origin, record?: SealedCredentials | null) => OpenedContext | Promise<OpenedContext> {
  // The role is cached for each identity object. The same object always comes from the same access token, whose groups
  // never change.
  const roleOf = rememberRoles(roles)
  return (identity, origin = {}, record) => {
    const role = roleOf(identity)
    const { iss, sub, name, clientId } = identity
    const own = scopes?.of(identity)
    // For speed, no objects are spread here, because this code runs for every request.
    const open = ({ pce, pceProblem, provePce, credentials }: CallerPce): OpenedContext => ({
      caller: own === undefined ? { mode, role, iss, sub } : { mode, role, iss, sub, scopes: own },
      transport: 'http',
      tokenSays: name === undefined && clientId === undefined ? undefined : { name, clientId },
      client: origin.client,
      clientAddress: origin.clientAddress,
      roleProblem: role === null ? explainNoRole(identity) : undefined,
      pce: own === undefined || pce === null ? pce : scopes!.guard(pce, own),
      pceProblem,
      provePce,
      credentials,
    })
    const found = findPce(identity, role, record)
    return found instanceof Promise ? found.then(open) : open(found)
  }
}

function rememberRoles(mapping: RoleMapping): (identity: Identity) => Role | null {
  const known = new WeakMap<Identity, Role | null>()
  return (identity) => {
    let role = known.get(identity)
    if (role === undefined) known.set(identity, (role = mapRole(identity, mapping)))
    return role
  }
}

/**
 * Returns the highest role to which the identity's groups or app roles are mapped. Names are compared exactly and
 * case-sensitively; empty entries never match (S13). An identity without a match gets the default role, unless the
 * provider left its groups out (Entra ID, above 200 groups). In this case, it is not known whether one of the groups
 * would have matched, so only the app roles count (D45).
 */
export function mapRole(identity: Identity, mapping: RoleMapping): Role | null {
  const groups = new Set(identity.groups.filter((group) => group !== ''))
  const role = ROLES.findLast((candidate) => mapping.groups[candidate].some((group) => groups.has(group)))
  return role ?? (identity.hasGroupsOverage ? null : mapping.otherwise)
}

/** Explains why an identity has no role; returns undefined if the reason is simply that its groups give none. */
export function explainNoRole(identity: Identity): ToolError | undefined {
  if (!identity.hasGroupsOverage) return undefined
  return new ToolError(
    'forbidden_no_role',
    'Your access token omits your groups because there are too many of them, so they give you no role here.',
    { reason: 'groups_overage' },
    {
      hint: 'Ask the operator to assign you an app role, which stays in the token, or to limit the groups in tokens to those assigned to this application.',
    },
  )
}

import type { PceClient } from '../../pce-client/index.js'
import { ROLES, type Caller, type Identity, type Mode, type Role } from '../../schemas/caller.js'
import type { RoleMapping } from '../../schemas/config.js'
import type { CredentialsPort } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { SealedCredentials } from '../../schemas/state.js'

/** The PCE of one caller. */
export interface CallerPce {
  /** Null where there are no PCE credentials. */
  pce: PceClient | null
  /** Why `pce` is null, where the reason is not simply missing credentials. */
  pceProblem?: ToolError
  /** Asked before a call goes to the PCE: rejects with ToolError where that has never answered this caller and does not now. */
  provePce?: (signal: AbortSignal) => Promise<void>
  credentials: CredentialsPort
}

/**
 * Where the PCEs of the callers come from; at once where all have the same. Neither throws nor rejects: what is wrong with one caller's PCE
 * is for that caller to hear. `record` is what the keystore has of the caller, where that was read when the request was admitted.
 */
export type FindPce = (
  identity: Identity,
  role: Role | null,
  record?: SealedCredentials | null,
) => CallerPce | Promise<CallerPce>

/** The context of one caller over HTTP: who calls, with which role, on which PCE. */
export interface OpenedContext extends CallerPce, Origin {
  caller: Caller
  /** Why the caller has no role, where there is more to say than that the groups give none. */
  roleProblem?: ToolError
  transport: 'http'
  /** Names of the token's, to be shown. */
  tokenSays?: Pick<Identity, 'name' | 'clientId'>
}

/** What a request says of the program that sent it. */
export interface Origin {
  /** As the User-Agent names it. */
  client?: string
  /** Where it is; absent on a Unix socket whose peer is not trusted. */
  clientAddress?: string
}

/** The contexts of authenticated callers, created for every request: a changed group or key counts at once. */
export function createContextOpener(
  mode: Mode,
  roles: RoleMapping,
  findPce: FindPce,
): (identity: Identity, origin?: Origin, record?: SealedCredentials | null) => OpenedContext | Promise<OpenedContext> {
  // The same object is the same token, whose groups do not change.
  const roleOf = rememberRoles(roles)
  return (identity, origin = {}, record) => {
    const role = roleOf(identity)
    const { iss, sub, name, clientId } = identity
    // Written out, without spreads: it is made for every request.
    const open = ({ pce, pceProblem, provePce, credentials }: CallerPce): OpenedContext => ({
      caller: { mode, role, iss, sub },
      transport: 'http',
      tokenSays: name === undefined && clientId === undefined ? undefined : { name, clientId },
      client: origin.client,
      clientAddress: origin.clientAddress,
      roleProblem: role === null ? explainNoRole(identity) : undefined,
      pce,
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
 * The highest role that one of the identity's groups or app roles is mapped to: compared exactly and case-sensitively, empty
 * entries never match (S13). An identity on no list has the default role, unless the provider left the groups out (Entra ID, more than
 * 200 of them): nobody can tell then that it is on no list, so it has the role that its app roles give, or none (D45).
 */
export function mapRole(identity: Identity, mapping: RoleMapping): Role | null {
  const groups = new Set(identity.groups.filter((group) => group !== ''))
  const role = ROLES.findLast((candidate) => mapping.groups[candidate].some((group) => groups.has(group)))
  return role ?? (identity.hasGroupsOverage ? null : mapping.otherwise)
}

/** Why an identity has no role, where there is more to say than that its groups give none. */
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

/** The access tokens of the identity providers that most users have, by their public documentation. */

/** Whom the provider knows, by login name (or client id for a service). */
export interface Person {
  /** The `sub` of the tokens; the login name where it is not given. */
  sub?: string
  groups?: readonly string[]
  /** App roles (Entra ID), realm roles (Keycloak), plain `roles` elsewhere. */
  roles?: readonly string[]
  /** More groups than fit the token: Entra ID then names a place to ask instead. */
  overage?: 'claim_names' | 'hasgroups'
  /** Laid over the payload at last. */
  claims?: Record<string, unknown>
}

export interface TokenParts {
  header?: Record<string, unknown>
  payload: Record<string, unknown>
}

export interface Vendor {
  /** Path of the issuer. */
  path: string
  /** Which claims an operator would name as groups. */
  groupsClaims: readonly string[]
  /** Scopes are asked for with the identifier of their API before them (`api://x/read`), and refused without. */
  qualifiesScopes?: boolean
  /** Its metadata is below the path of the issuer alone, and not where RFC 8414 has it. */
  isFoundBelowPath?: boolean
  /** `iss` of its access tokens, where that is not the issuer. */
  tokenIssuer?: string
  /** Its access tokens are nothing that anyone else can read. */
  isOpaque?: boolean
  /** Turns the library's own token into one as this vendor issues it. */
  shape(parts: TokenParts, person: Person, facts: { origin: string; login: string }): void
}

export const TENANT = '7c1f9d52-64a6-4f0e-8e0b-0d6f2d1a9b11'
export const AUTH0_GROUPS = 'https://svc-mcp.example/groups'

/** What AD FS calls itself in access tokens: its federation service identifier. */
export const ADFS_TRUST = 'http://adfs.example.test/adfs/services/trust'

/** As those write a list who have no lists of one. */
const alone = (values: readonly string[]) => (values.length === 1 ? values[0] : values)

const list = (values: readonly string[] | undefined, name: string) => (values ? { [name]: values } : {})

export const VENDORS = {
  /** RFC 9068 and nothing else. */
  plain: {
    path: '',
    groupsClaims: ['groups', 'roles'],
    shape({ payload }, person) {
      Object.assign(payload, list(person.groups, 'groups'), list(person.roles, 'roles'))
    },
  },
  /** Microsoft Entra ID, v2.0: groups are object ids, `scp` is one string in short form, app roles stand in `roles`. */
  entra: {
    path: `/${TENANT}/v2.0`,
    groupsClaims: ['groups', 'roles'],
    qualifiesScopes: true,
    isFoundBelowPath: true,
    shape(parts, person, { origin, login }) {
      const { payload } = parts
      const { scope, client_id: azp } = payload
      delete payload.scope
      delete payload.client_id
      parts.header = { ...parts.header, typ: 'JWT' }
      const scp = String(scope).replaceAll(/[^ ]*\//g, '')
      Object.assign(payload, { scp, azp, azpacr: '0', tid: TENANT, ver: '2.0', uti: 'rRtJc0iBT0u9', oid: login })
      Object.assign(payload, list(person.roles, 'roles'))
      if (person.overage === 'claim_names') {
        payload._claim_names = { groups: 'src1' }
        payload._claim_sources = { src1: { endpoint: `${origin}/graph/v1.0/users/${login}/getMemberObjects` } }
      } else if (person.overage === 'hasgroups') payload.hasgroups = true
      else Object.assign(payload, list(person.groups, 'groups'))
    },
  },
  /** Okta, a custom authorization server: `scp` is an array and groups are names. */
  okta: {
    path: '/oauth2/default',
    groupsClaims: ['groups', 'roles'],
    shape(parts, person, { login }) {
      const { payload } = parts
      const { scope, client_id: cid } = payload
      delete payload.scope
      delete payload.client_id
      parts.header = { ...parts.header, typ: undefined }
      Object.assign(payload, { ver: 1, cid, uid: `00u${login}`, scp: String(scope).split(' ') })
      Object.assign(payload, list(person.groups, 'groups'))
    },
  },
  /** Auth0: the issuer ends in a slash, `aud` is an array with the user-info endpoint, own claims need a namespace. */
  auth0: {
    path: '/',
    groupsClaims: ['groups', 'roles', AUTH0_GROUPS],
    shape(parts, person, { origin }) {
      const { payload } = parts
      const { aud, scope, client_id: azp } = payload
      delete payload.client_id
      parts.header = { ...parts.header, typ: 'JWT' }
      Object.assign(payload, {
        aud: [aud, `${origin}/userinfo`],
        scope: `openid ${String(scope)}`,
        azp,
        permissions: [],
      })
      Object.assign(payload, list(person.groups, AUTH0_GROUPS))
    },
  },
  /** Keycloak: groups are paths with a leading slash, realm roles stand in an object of their own. */
  keycloak: {
    path: '/realms/demo',
    groupsClaims: ['groups', 'roles', 'realm_access.roles'],
    shape(parts, person) {
      const { payload } = parts
      const { scope, client_id: azp } = payload
      delete payload.client_id
      parts.header = { ...parts.header, typ: 'JWT' }
      Object.assign(payload, { typ: 'Bearer', azp, acr: '1', scope: `openid ${String(scope)}`, sid: 'f2a1' })
      Object.assign(
        payload,
        list(
          person.groups?.map((group) => `/${group}`),
          'groups',
        ),
      )
      if (person.roles) payload.realm_access = { roles: person.roles }
    },
  },
  /** PingOne: `aud` is an array, attributes of the resource stand beside the claims of the environment. */
  pingone: {
    path: '/7e1f0c0b-5a3e-4c55-9e9f-0a4d2f6f1c55/as',
    groupsClaims: ['groups', 'roles'],
    shape(parts, person) {
      const { payload } = parts
      parts.header = { ...parts.header, typ: undefined }
      Object.assign(payload, { aud: [payload.aud], env: '7e1f0c0b-5a3e-4c55-9e9f-0a4d2f6f1c55', sid: 'f2a1' })
      Object.assign(payload, list(person.groups, 'groups'))
    },
  },
  /** PingFederate, JSON tokens: `scope` is an array unless it is told otherwise, and a list of one is a string. */
  pingfederate: {
    path: '',
    groupsClaims: ['groups', 'roles'],
    shape(parts, person) {
      const { payload } = parts
      parts.header = { ...parts.header, typ: undefined }
      payload.scope = String(payload.scope).split(' ')
      if (person.groups) payload.groups = alone(person.groups)
    },
  },
  /** AD FS: another issuer, `scp`, and a group that is alone is a string. `sub` is there because a claim rule issues it. */
  adfs: {
    path: '/adfs',
    groupsClaims: ['groups', 'roles', 'group'],
    isFoundBelowPath: true,
    tokenIssuer: ADFS_TRUST,
    shape(parts, person, { login }) {
      const { payload } = parts
      const { scope, client_id: appid } = payload
      delete payload.scope
      delete payload.client_id
      parts.header = { ...parts.header, typ: 'JWT' }
      Object.assign(payload, { iss: ADFS_TRUST, scp: scope, appid, apptype: 'Public', ver: '1.0' })
      Object.assign(payload, { auth_time: '2026-11-26T07:30:55.566Z', unique_name: [`CORP\\${login}`, login] })
      if (person.groups) payload.group = alone(person.groups)
    },
  },
  /** Google: what it issues for its own APIs. */
  google: { path: '', groupsClaims: ['groups', 'roles'], isOpaque: true, shape() {} },
} satisfies Record<string, Vendor>

export type VendorName = keyof typeof VENDORS

const OIDC_SCOPES = new Set(['openid', 'profile', 'email', 'offline_access'])

/**
 * Why Entra ID does not take an authorization request, null where it does: a bare scope is looked for at another API (AADSTS650053),
 * and a `resource` must be the one that the scopes are of (AADSTS9010010).
 */
export function refuseScopes(query: URLSearchParams): 'invalid_scope' | 'invalid_target' | null {
  const scopes = (query.get('scope') ?? '').split(' ').filter((scope) => !OIDC_SCOPES.has(scope))
  if (scopes.some((scope) => !scope.includes('/'))) return 'invalid_scope'
  const resource = query.get('resource')
  return resource === null || scopes.every((scope) => apiOf(scope) === resource) ? null : 'invalid_target'
}

/** The API that a qualified scope is of; undefined for any other. */
export const apiOf = (scopes: string): string | undefined => /(?:^| )([^ ]+)\/[^ /]+(?: |$)/.exec(scopes)?.[1]

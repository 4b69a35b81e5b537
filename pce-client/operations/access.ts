import type { CreatedApiKey, LoginSession, OrgApiKey, UserApiKey } from '../../schemas/pce/access.js'
import { getAll, getPage } from '../objects.js'
import { PceError } from '../errors.js'
import { KINDS } from '../kinds.js'
import { basicAuthorization, integerIn } from '../settings.js'
import { bodyOf } from '../transport.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { segment, madeBy, type Calls, saidBy } from './create-calls.js'

/** The types of API keys. One request to the PCE lists the keys of only one type (P56). */
const KEY_TYPES = ['user', 'service_account']
/** The default name of a new API key, since the PCE requires a name. `options.json` can set another name. */
const DEFAULT_KEY_NAME = 'pce-client'
/** Number of API keys that the PCE returns by default. A list with this many keys or more may be truncated. */
const DEFAULT_PAGE = 500

/**
 * Operations on API keys (S9, P40, P56). The secret of a key is returned only once, by the operation that creates the
 * key.
 */
export interface ApiKeyOperations {
  /**
   * Creates an API key of a service account and returns it with its secret. The key expires according to the
   * organisation's settings, unless `options.json` has `expires_in_seconds` (-1 means never).
   */
  createServiceAccountApiKey(saHref: ReferenceLike, options?: RequestOptions): Promise<CreatedApiKey>
  /** Deletes an API key of a service account. */
  deleteServiceAccountApiKey(saHref: ReferenceLike, keyId: string, options?: RequestOptions): Promise<void>
  /**
   * Lists the API keys of a user, without secrets. @throws {PceIntegerError} unless `userId` is a whole number above 0.
   */
  getUserApiKeys(userId: number | string, options?: RequestOptions): Promise<UserApiKey[]>
  /**
   * Creates an API key of a user and returns it with its secret. `options.json` may have `name` (default `pce-client`)
   * and `description`.
   *
   * @throws {PceIntegerError} unless `userId` is a whole number above 0.
   */
  createUserApiKey(userId: number | string, options?: RequestOptions): Promise<CreatedApiKey>
  /** Deletes an API key of a user. @throws {PceIntegerError} unless `userId` is a whole number above 0. */
  deleteUserApiKey(userId: number | string, keyId: string, options?: RequestOptions): Promise<void>
  /**
   * Lists the API keys of the organisation, without secrets: first those of users, then those of service accounts. This
   * takes two requests, because the PCE lists only one type of keys at a time; `type` in `options.params` restricts the
   * list to one type.
   */
  getOrgApiKeys(options?: RequestOptions): Promise<OrgApiKey[]>
  /** Deletes an API key of the organisation, whether it belongs to a user or to a service account. */
  deleteOrgApiKey(keyId: string, options?: RequestOptions): Promise<void>
}

export function createApiKeyOperations(calls: Calls): ApiKeyOperations {
  const keysOfAccount = (saHref: ReferenceLike) => `${calls.href(KINDS.serviceAccounts, saHref)}/api_keys`

  /**
   * Lists the keys of one type: as many as the caller's max_results allows, or all of them if it is not set. In a single
   * request without max_results, the PCE would truncate the list silently (P8).
   */
  async function everyKey(options: RequestOptions): Promise<OrgApiKey[]> {
    const path = `${calls.org}/api_keys`
    const { items, totalCount } = await getPage<OrgApiKey>(calls.http, path, options)
    const isWhole = items.length < DEFAULT_PAGE || items.length === totalCount
    if (isWhole || options.params?.max_results !== undefined) return items
    return getAll<OrgApiKey>(calls.http, calls.settings, path, options)
  }

  return {
    async createServiceAccountApiKey(saHref, options) {
      const answer = await calls.post(keysOfAccount(saHref), { expires_in_seconds: 'default' }, options)
      return madeBy<CreatedApiKey>(answer, 'the API key', 'key_id')
    },
    async deleteServiceAccountApiKey(saHref, keyId, options) {
      await calls.delete(`${keysOfAccount(saHref)}/${segment('key_id', keyId)}`, options)
    },
    async getUserApiKeys(userId, options) {
      return calls.list<UserApiKey>(keysOfUser(userId), options)
    },
    async createUserApiKey(userId, options) {
      const answer = await calls.post(keysOfUser(userId), { name: DEFAULT_KEY_NAME }, options)
      return madeBy<CreatedApiKey>(answer, 'the API key', 'key_id')
    },
    async deleteUserApiKey(userId, keyId, options) {
      await calls.delete(`${keysOfUser(userId)}/${segment('key_id', keyId)}`, options)
    },
    async getOrgApiKeys(options = {}) {
      const keys: OrgApiKey[] = []
      for (const type of options.params?.type === undefined ? KEY_TYPES : [options.params.type]) {
        keys.push(...(await everyKey({ ...options, params: { ...options.params, type } })))
      }
      return keys
    },
    async deleteOrgApiKey(keyId, options) {
      await calls.delete(`${calls.org}/api_keys/${segment('key_id', keyId)}`, options)
    },
  }
}

function keysOfUser(userId: number | string): string {
  const number = typeof userId === 'string' && /^\d{1,16}$/.test(userId) ? Number(userId) : userId
  return `/users/${integerIn('user_id', number, 1)}/api_keys`
}

/** Operations that log users in (S9, P2) or test an LDAP configuration. */
export interface LoginOperations {
  /**
   * Logs a user in and returns the session, whose `auth_username` and `session_token` can be passed to
   * `setCredentials`. The client's own credentials do not change. Two requests are sent: the first has name and
   * password in its Authorization header, the second has the token from the first answer. The client does not keep the
   * password or the token. `pce_fqdn` in `options.params` defaults to the host of this client's address; a one-time
   * password goes into `options.json` as `one_time_password`.
   */
  loginUser(username: string, password: string, options?: RequestOptions): Promise<LoginSession>
  /**
   * Asks the PCE to test the connection of an LDAP configuration. Returns the PCE's answer, or `{}` if the answer is
   * empty.
   */
  verifyLdapConnection(ldapHref: ReferenceLike, options?: RequestOptions): Promise<Record<string, unknown>>
}

export function createLoginOperations(calls: Calls): LoginOperations {
  const pceFqdn = new URL(calls.settings.address.origin).hostname
  return {
    async loginUser(username, password, options = {}) {
      const authenticated = await calls.post(
        '/login_users/authenticate',
        {},
        {
          ...options,
          params: { pce_fqdn: pceFqdn, ...options.params },
          headers: { ...options.headers, authorization: basicAuthorization(username, password) },
        },
      )
      const token = bodyOf<{ auth_token?: unknown }>(authenticated, '/login_users/authenticate').auth_token
      if (typeof token !== 'string' || token === '') {
        throw new PceError('invalid_response', 'the PCE accepted the login without a session token')
      }
      const headers = { ...options.headers, authorization: `Token token=${token}` }
      const session = await calls.get<LoginSession>('/users/login', { ...options, params: undefined, headers })
      if (typeof session.session_token === 'string' && session.session_token !== '') return session
      throw new PceError('invalid_response', 'the PCE answered the login without a session')
    },
    async verifyLdapConnection(ldapHref, options) {
      const path = `${calls.href(KINDS.ldapConfigs, ldapHref)}/verify_connection`
      return saidBy(await calls.post(path, {}, options), 'the check')
    },
  }
}

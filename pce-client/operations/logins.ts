import type { LoginSession } from '../../schemas/pce/access.js'
import { basicAuthorization } from '../settings.js'
import { PceError } from '../errors.js'
import { KINDS } from '../kinds.js'
import { bodyOf } from '../transport.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { saidBy, type Calls } from './create-calls.js'

/** Logins of people (S9, P2). */
export interface LoginOperations {
  /**
   * Logs a user in and gives the session: `auth_username` and `session_token` are what `setCredentials` takes; the client's own
   * credentials stay as they are. The name and password travel in the Authorization header of one request, the token it answers
   * in that of a second one, and neither is kept. `pce_fqdn` is the host of this client's address unless `options.params` has
   * it, a one-time password goes into `options.json` as `one_time_password`.
   */
  loginUser(username: string, password: string, options?: RequestOptions): Promise<LoginSession>
  /** Asks the PCE to try the connection of an LDAP configuration, and gives what it says; `{}` where it says nothing. */
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
      const token = bodyOf<{ auth_token?: unknown }>(authenticated).auth_token
      if (typeof token !== 'string' || token === '') {
        throw new PceError('invalid_response', 'the PCE accepted the login without the token of a session')
      }
      const headers = { ...options.headers, authorization: `Token token=${token}` }
      return calls.get<LoginSession>('/users/login', { ...options, params: undefined, headers })
    },
    async verifyLdapConnection(ldapHref, options) {
      const path = `${calls.href(KINDS.ldapConfigs, ldapHref)}/verify_connection`
      return saidBy(await calls.post(path, {}, options), 'the check')
    },
  }
}

import { type ClientAuth, ClientSecretPost, None, type ServerMetadata } from 'openid-client'

/**
 * Returns the ways in which this server proves to the provider that it is the registered client, in the order in which
 * they are tried. A public client has only its id. A client with a secret sends it in the body
 * (`client_secret_post`) if the provider names that method, and otherwise in the header Authorization
 * (`client_secret_basic`), which is also the method of a provider that names none (RFC 8414, 2). If the provider names
 * both methods, the second is tried if the first is refused, because a provider may allow each client only one (D246).
 */
export function waysToAuthenticate(
  { token_endpoint_auth_methods_supported: methods }: Pick<ServerMetadata, 'token_endpoint_auth_methods_supported'>,
  secret?: string,
): ClientAuth[] {
  if (secret === undefined) return [None()]
  const [post, basic] = [ClientSecretPost(secret), sendBasic(secret)]
  if (methods?.includes('client_secret_post') !== true) return [basic]
  return methods.includes('client_secret_basic') ? [post, basic] : [post]
}

/**
 * Sends the id and the secret in the header Authorization (RFC 6749, 2.3.1). Unlike the library, this function leaves
 * `-`, `_`, `.` and `*` unencoded, as browsers do in forms: many providers compare the two without decoding them.
 */
const sendBasic =
  (secret: string): ClientAuth =>
  (_server, { client_id: id }, _body, headers) => {
    const credentials = Buffer.from(`${encodeForForm(id)}:${encodeForForm(secret)}`).toString('base64')
    headers.set('authorization', `Basic ${credentials}`)
  }

/** Encodes a value as application/x-www-form-urlencoded. */
const encodeForForm = (value: string) => new URLSearchParams({ '': value }).toString().slice(1)

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const ISSUER = 'http://127.0.0.1/bench'
const AUDIENCE = 'bench'

/** Starts an identity provider that serves its keys and issues access tokens (RS256, as most providers do). */
export async function startProvider(group: string) {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'RS256', use: 'sig' }
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [jwk] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    /** The variables with which a server trusts this provider. */
    environment: {
      MCP_OAUTH_ISSUER: ISSUER,
      MCP_OAUTH_JWKS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
      MCP_OAUTH_AUDIENCE: AUDIENCE,
    },
    tokenFor: (sub: string) =>
      new SignJWT({ scope: 'svc-mcp.use', groups: [group] })
        .setProtectedHeader({ alg: 'RS256', kid: 'bench', typ: 'at+jwt' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(sub)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(privateKey),
    close: () => server.close(),
  }
}

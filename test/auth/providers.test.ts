/**
 * Tokens of a real OpenID provider in the shapes of the common vendors (D13, D14, D45, S10).
 */
import t, { type Test } from 'tap'
import { decodeJwt } from 'jose'
import { startIdentityProvider, type IdentityProviderOptions } from '../identity/identity-provider.js'
import { TENANT } from '../identity/vendors.js'
import { partial } from '../partial.js'
import { authApp, Clock } from './auth-app.js'

const ALICE = { sub: 'u-1', groups: ['7c1f9d52-0000', 'pce-admins'], roles: ['PolicyAdmin'] }

async function door(t: Test, options: IdentityProviderOptions, more: Parameters<typeof authApp>[2] = {}) {
  const idp = await startIdentityProvider(t, { people: { alice: ALICE, robot: { groups: ['robots'] } }, ...options })
  return { idp, ...(await authApp(t, idp.oauth(), more)) }
}

const SHAPES = {
  plain: { issuer: '', groups: ['7c1f9d52-0000', 'pce-admins', 'PolicyAdmin'] },
  entra: { issuer: `/${TENANT}/v2.0`, groups: ['7c1f9d52-0000', 'pce-admins', 'PolicyAdmin'] },
  okta: { issuer: '/oauth2/default', groups: ['7c1f9d52-0000', 'pce-admins'] },
  auth0: { issuer: '/', groups: ['7c1f9d52-0000', 'pce-admins'] },
  keycloak: { issuer: '/realms/demo', groups: ['/7c1f9d52-0000', '/pce-admins', 'PolicyAdmin'] },
  pingone: { issuer: '/7e1f0c0b-5a3e-4c55-9e9f-0a4d2f6f1c55/as', groups: ['7c1f9d52-0000', 'pce-admins'] },
  pingfederate: { issuer: '', groups: ['7c1f9d52-0000', 'pce-admins'] },
  adfs: { issuer: '/adfs', groups: ['7c1f9d52-0000', 'pce-admins'] },
} as const

for (const [vendor, shape] of Object.entries(SHAPES)) {
  t.test(`${vendor}: tokens of people, of services, and for other purposes`, async (t) => {
    const { idp, bearer, refusals } = await door(t, { vendor: vendor as keyof typeof SHAPES })
    const why = async (token: string) => {
      t.equal((await bearer(token)).statusCode, 401)
      return refusals().at(-1)?.reason
    }

    const { accessToken, idToken } = await idp.tokensFor('alice', { nonce: 'n-1' })
    t.same((await bearer(accessToken)).json(), {
      iss: `${idp.origin}${shape.issuer}`,
      sub: 'u-1',
      groups: shape.groups,
      hasGroupsOverage: false,
      clientId: 'cli',
    })
    partial(t, (await bearer((await idp.serviceTokens()).accessToken)).json(), { sub: 'robot' }, 'client credentials')
    const nobody = (await bearer((await idp.tokensFor('nobody')).accessToken)).json()
    t.same([nobody.sub, nobody.groups], ['nobody', []], 'somebody without groups')

    const notOurs = vendor === 'adfs' ? 'iss mismatch' : 'aud mismatch'
    t.equal(await why(idToken!), notOurs, 'an ID token of the same person')
    const other = await idp.tokensFor('alice', { resource: 'https://other.example/api' })
    t.equal(await why(other.accessToken), 'aud mismatch', 'a token for another API of the same provider')
    const unscoped = await idp.tokensFor('alice', { scope: 'openid' })
    t.equal(await why(unscoped.accessToken), 'missing required scope')
  })
}

t.test('refuses an ID token with our audience', async (t) => {
  const idp = await startIdentityProvider(t, { vendor: 'entra' })
  const { bearer, refusals } = await authApp(t, idp.oauth({ audience: 'cli' }))
  const { idToken } = await idp.tokensFor('alice', { nonce: 'n-1' })
  t.equal(decodeJwt(idToken!).aud, 'cli')
  t.equal((await bearer(idToken!)).statusCode, 401)
  t.equal(refusals().at(-1)?.reason, 'not an access token')
})

t.test('accepts every algorithm the provider signs with', async (t) => {
  for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA'] as const) {
    const { idp, bearer } = await door(t, { algorithm })
    t.equal((await bearer((await idp.tokensFor('alice')).accessToken)).statusCode, 200, algorithm)
  }
})

t.test('Entra ID with too many groups', async (t) => {
  for (const overage of ['claim_names', 'hasgroups'] as const) {
    const { idp, bearer } = await door(t, { vendor: 'entra', people: { alice: { ...ALICE, overage } } })
    const { accessToken } = await idp.tokensFor('alice')
    const { requests } = idp.seen
    const { groups, hasGroupsOverage } = (await bearer(accessToken)).json()
    t.same([groups, hasGroupsOverage], [['PolicyAdmin'], true], overage)
    t.equal(idp.seen.requests, requests, 'nobody asks where the token says')
  }
})

t.test('a list of one group, as those send it who have no such lists', async (t) => {
  for (const vendor of ['pingfederate', 'adfs'] as const) {
    const { idp, bearer } = await door(t, { vendor, people: { alice: { groups: ['pce-admins'] } } })
    t.same((await bearer((await idp.tokensFor('alice')).accessToken)).json().groups, ['pce-admins'], vendor)
  }
})

t.test('Google: neither its access token nor its ID token is one for us', async (t) => {
  const { idp, bearer, refusals } = await door(t, { vendor: 'google' })
  const { accessToken, idToken } = await idp.tokensFor('alice', { nonce: 'n-1' })
  for (const [token, reason] of [
    [accessToken, 'malformed token'],
    [idToken!, 'aud mismatch'],
  ] as const) {
    t.equal((await bearer(token)).statusCode, 401)
    t.equal(refusals().at(-1)?.reason, reason)
  }
})

t.test('the provider rotates its keys', async (t) => {
  const clock = new Clock()
  // They outlive the ten minutes, whatever second the test begins in.
  const { idp, bearer } = await door(t, { tokenSeconds: 3600 }, { clock })
  const old = (await idp.tokensFor('alice')).accessToken
  t.equal((await bearer(old)).statusCode, 200)
  t.equal(idp.seen.keyFetches, 1)

  idp.rotateKeys()
  clock.leap(30)
  const fresh = (await idp.tokensFor('alice')).accessToken
  const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => bearer(at % 2 ? old : fresh)))
  t.same(new Set(answers.map(({ statusCode }) => statusCode)), new Set([200]), 'under load, nobody fails')
  t.equal(idp.seen.keyFetches, 2, 'one download')

  idp.rotateKeys({ removeOld: true })
  clock.leap(600)
  t.equal((await bearer(fresh)).statusCode, 401, 'a key taken back is refused within ten minutes')
  t.equal((await bearer((await idp.tokensFor('alice')).accessToken)).statusCode, 200)
})

for (const away of ['refuses connections', 'answers 503'] as const) {
  t.test(`the provider ${away} for five minutes`, async (t) => {
    const clock = new Clock()
    const { idp, bearer, log } = await door(t, { tokenSeconds: 3600 }, { clock })
    const { accessToken } = await idp.tokensFor('alice')
    t.equal((await bearer(accessToken)).statusCode, 200)
    clock.pass(8 * 60)
    if (away === 'answers 503') idp.faults.status = 503
    else await idp.stop()

    let failures = 0
    for (let at = 0; at < 30; at++) {
      clock.pass(10)
      await clock.untilPlanned()
      if ((await bearer(accessToken)).statusCode !== 200) failures++
    }
    t.equal(failures, 0)
    t.ok(
      log.some(({ msg, level }) => level === 40 && String(msg).includes('cannot be loaded')),
      'but the operator is told',
    )
  })
}

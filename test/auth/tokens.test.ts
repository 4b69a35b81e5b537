/**
 * Which access tokens open the door (S10, D14, RFC 6750, 7519, 8725, 9068).
 */
import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import t, { type Test } from 'tap'
import fc from 'fast-check'
import { EncryptJWT, jwtVerify, type JWK } from 'jose'
import type { OAuthConfig } from '../../schemas/config.js'
import { assemble, claimsFor, forgeKey, part } from '../identity/forge.js'
import { startCanary, startKeyServer } from '../identity/key-server.js'
import { authApp, Clock, METADATA_URL, parseChallenge } from './auth-app.js'

const ISSUER = 'https://idp.example.test/tenant/v2.0'
const AUDIENCE = 'api://svc-mcp'

const rsa = forgeKey('RS256', { kid: 'rsa' })
const ec = forgeKey('ES256', { kid: 'ec' })
const pss = forgeKey('PS256', { kid: 'pss' })
const ed = forgeKey('EdDSA', { kid: 'ed' })

/** The app with four good keys, and its configuration. */
async function door(t: Test, more: Partial<OAuthConfig> = {}) {
  const keys = await startKeyServer(t, rsa, ec, pss, ed)
  const oauth: OAuthConfig = {
    issuer: ISSUER,
    jwksUrl: keys.url,
    audience: AUDIENCE,
    requiredScope: 'svc-mcp.use',
    groupsClaims: ['groups', 'roles'],
    ...more,
  }
  const clock = new Clock()
  const app = await authApp(t, oauth, { clock })
  const claims = (over: Record<string, unknown> = {}) => claimsFor(oauth, over, clock.now())
  return { ...app, keys, oauth, clock, claims }
}

type Door = Awaited<ReturnType<typeof door>>

/** Sends a token that must be refused for this reason, and checks everything a refusal promises. */
async function refused(t: Test, { send, refusals, written }: Door, authorization: string, reason: string, why: string) {
  const before = refusals().length
  const answer = await send(authorization)
  const id = answer.headers['x-request-id']
  const { error, reason: said, request_id } = answer.json()
  const token = authorization.split(' ').at(-1)!
  const parts = token.length > 20 ? token.split('.').filter((part) => part.length > 20) : []
  const isShown = (text: string) => parts.some((part) => text.includes(part.slice(0, 20)))
  t.same(
    {
      status: answer.statusCode,
      challenge: parseChallenge(String(answer.headers['www-authenticate'])),
      body: { error, reason: said, request_id },
      log: refusals().slice(before),
      isTokenShown: { answer: isShown(answer.body), log: isShown(written()) },
    },
    {
      status: 401,
      challenge: {
        scheme: 'Bearer',
        parameters: [
          ['resource_metadata', METADATA_URL],
          ['error', reason === 'missing required scope' ? 'insufficient_scope' : 'invalid_token'],
          ['error_description', reason],
          ['scope', 'svc-mcp.use'],
        ],
      },
      body: { error: 'unauthorized', reason, request_id: id },
      log: [{ reason, id }],
      isTokenShown: { answer: false, log: false },
    },
    why,
  )
}

t.test('accepts a token of every allowed algorithm', async (t) => {
  const { bearer, claims } = await door(t)
  for (const key of [rsa, ec, pss, ed]) {
    const answer = await bearer(await key.sign(claims({ groups: ['a', 'b'], roles: ['b', 'c'] })))
    t.same(
      [answer.statusCode, answer.json()],
      [200, { iss: ISSUER, sub: 'alice', groups: ['a', 'b', 'c'], hasGroupsOverage: false }],
      key.alg,
    )
  }
  t.test('again from the cache', async (t) => {
    const token = await rsa.sign(claims())
    for (let time = 0; time < 3; time++) t.equal((await bearer(token)).statusCode, 200)
  })
})

t.test('without a token the challenge has no error', async (t) => {
  const { send, refusals, handled } = await door(t)
  for (const [why, answer] of [
    ['no header', await send()],
    ['an empty header', await send('')],
    ['another scheme', await send('Basic YWxpY2U6c2VjcmV0')],
    ['a scheme that only begins alike', await send('Bearers abc')],
    ['a token in the query', await send(undefined, { url: '/secured?access_token=abc.def.ghi' })],
  ] as const) {
    t.equal(answer.statusCode, 401, why)
    t.same(
      parseChallenge(String(answer.headers['www-authenticate'])).parameters,
      [
        ['resource_metadata', METADATA_URL],
        ['scope', 'svc-mcp.use'],
      ],
      why,
    )
    t.equal(answer.headers['cache-control'], 'no-store', why)
  }
  t.same(new Set(refusals().map(({ reason }) => reason)), new Set(['no token']))
  t.equal(handled.count, 0)
})

t.test('refuses malformed Authorization headers', async (t) => {
  const app = await door(t)
  const good = await rsa.sign(app.claims())
  const broken: [string, string][] = [
    ['the scheme alone', 'Bearer'],
    ['the scheme and a blank', 'Bearer '],
    ['two blanks', `Bearer  ${good}`],
    ['a tab', `Bearer\t${good}`],
    ['a blank behind', `Bearer ${good} `],
    ['two tokens', `Bearer ${good} ${good}`],
    ['two tokens with a comma', `Bearer ${good},${good}`],
    ['a quoted token', `Bearer "${good}"`],
    ['a parameter', `Bearer token=${good}`],
    ['latin-1', 'Bearer caf\u00e9'],
    ['an equals sign within', `Bearer ab=cd`],
  ]
  for (const [why, value] of broken) await refused(t, app, value, 'malformed authorization header', why)
  for (const scheme of ['bearer', 'BEARER', 'bEaReR'])
    t.equal((await app.send(`${scheme} ${good}`)).statusCode, 200, scheme)
})

t.test('refuses tokens that are not JWTs', async (t) => {
  const app = await door(t)
  const good = await rsa.sign(app.claims())
  const [header, payload, signature] = good.split('.') as [string, string, string]
  const jwe = await new EncryptJWT(app.claims())
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .encrypt(Buffer.alloc(32, 1))
  const latin = (before: string, after: string) =>
    Buffer.concat([Buffer.from(before), Buffer.from([0xe9]), Buffer.from(after)])
  const malformed: [string, string][] = [
    ['one part', 'x'],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${good}.x`],
    ['six parts', `${good}.x.y.z`],
    ['empty parts', '..'],
    ['an empty payload', `${header}..${signature}`],
    ['a header that is no JSON', assemble('bm90anNvbg', payload, signature)],
    ['a header that is an array', assemble(['RS256'], payload, signature)],
    ['a header that is null', assemble(null, payload, signature)],
    ['a header in plain base64', assemble(`${header.slice(0, -1)}+`, payload, signature)],
    ['a header with something behind', assemble(`${header}~`, payload, signature)],
    ['a payload with something behind', assemble(header, `${payload}~`, signature)],
    [
      'a header that is no UTF-8',
      assemble(latin('{"alg":"RS256","kid":"rsa","x":"', '"}').toString('base64url'), payload, signature),
    ],
    ['a header that says alg twice', assemble(encode('{"alg":"none","kid":"rsa","alg":"RS256"}'), payload, signature)],
    [
      'a header that says alg twice, once escaped',
      assemble(encode('{"\\u0061lg":"none","alg":"RS256"}'), payload, signature),
    ],
    ['a kid that is a number', await rsa.sign(app.claims(), { kid: 5 })],
    ['an empty kid', await rsa.sign(app.claims(), { kid: '' })],
    ['a kid of 10 KB', assemble({ alg: 'RS256', kid: 'k'.repeat(6000) }, payload, signature)],
    ['a payload that is no JSON', await rsa.sign('not json')],
    ['a payload that is an array', await rsa.sign('[1]')],
    ['a payload that is a string', await rsa.sign('"alice"')],
    ['a payload that is null', await rsa.sign('null')],
    ['a payload that is a token', await rsa.sign(good)],
    [
      'a payload that is no UTF-8',
      await rsa.sign(latin(`${JSON.stringify(app.claims()).slice(0, -1)},"name":"`, '"}')),
    ],
  ]
  for (const [why, token] of malformed) await refused(t, app, `Bearer ${token}`, 'malformed token', why)
  await refused(t, app, `Bearer ${header}=.${payload}.${signature}`, 'malformed authorization header', 'padding')
  await refused(t, app, `Bearer ${jwe}`, 'encrypted token', 'a token in JWE')
  await refused(t, app, `Bearer ${'a'.repeat(12 * 1024 + 1)}`, 'token too large', '12 KiB and a byte')
  await refused(t, app, `Bearer ${good}${'A'.repeat(13_000)}`, 'token too large', 'a long tail')
  t.equal(app.handled.count, 0)
})

t.test('refuses duplicate claims', async (t) => {
  const app = await door(t)
  const json = JSON.stringify(app.claims())
  const twice = (members: string) => `${json.slice(0, -1)},${members}}`
  await refused(t, app, `Bearer ${await rsa.sign(twice('"sub":"mallory"'))}`, 'malformed token', 'sub twice')
  await refused(
    t,
    app,
    `Bearer ${await rsa.sign(twice('"s\\u0075b":"mallory"'))}`,
    'malformed token',
    'sub twice, escaped',
  )
  const quoted = await rsa.sign(twice('"x":"\\"","sub":"mallory"'))
  await refused(t, app, `Bearer ${quoted}`, 'malformed token', 'sub twice, behind a quotation mark in a string')
  const nested = twice('"a":{"sub":"x","b":[{"sub":"y"}]},"c":"\\"sub\\":","d":[1,"sub","exp"]')
  t.equal((await app.bearer(await rsa.sign(nested))).json().sub, 'alice', 'the same words deeper down are no claims')
})

t.test('algorithms', async (t) => {
  const app = await door(t)
  const payload = part(app.claims())
  const header = (alg: unknown, kid = 'rsa') => part({ alg, kid, typ: 'at+jwt' })
  const hmac = (secret: string | Buffer) => {
    const input = `${header('HS256')}.${payload}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const good = await rsa.sign(app.claims())
  const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
  const disallowed: [string, string][] = [
    ['none', assemble(header('none'), payload, '')],
    ['None', assemble(header('None'), payload, '')],
    ['nOnE with a signature', assemble(header('nOnE'), payload, 'AAAA')],
    ['HS256 with the public key as secret', hmac(pem)],
    ['HS256 with the key set as secret', hmac(JSON.stringify({ keys: [rsa.jwk] }))],
    ['HS256 with the JWK as secret', hmac(JSON.stringify(rsa.jwk))],
    ['RS1', assemble(header('RS1'), payload, 'AAAA')],
    [
      'RS512, properly signed',
      assemble(header('RS512'), payload, sign('sha512', Buffer.from(`${header('RS512')}.${payload}`), rsa.privateKey)),
    ],
    ['ES256K', assemble(header('ES256K', 'ec'), payload, 'AAAA')],
    ['no alg', assemble({ kid: 'rsa' }, payload, 'AAAA')],
    ['alg as an array', assemble({ alg: ['RS256'], kid: 'rsa' }, payload, 'AAAA')],
    ['alg in lower case', assemble(header('rs256'), payload, good.split('.')[2]!)],
    ['alg of a prototype', assemble(header('toString'), payload, 'AAAA')],
  ]
  for (const [why, token] of disallowed) await refused(t, app, `Bearer ${token}`, 'alg not allowed', why)

  const unfit: [string, string][] = [
    ['RS256 with the name of an EC key', assemble(header('RS256', 'ec'), payload, good.split('.')[2]!)],
    ['ES256 with the name of an RSA key', assemble(header('ES256', 'rsa'), payload, Buffer.alloc(64))],
    ['PS256 with a key that is for RS256', assemble(header('PS256', 'rsa'), payload, Buffer.alloc(256, 1))],
    ['EdDSA with the name of an EC key', assemble(header('EdDSA', 'ec'), payload, Buffer.alloc(64))],
  ]
  for (const [why, token] of unfit) await refused(t, app, `Bearer ${token}`, 'no key for this kid and alg', why)

  const [h, p, s] = good.split('.') as [string, string, string]
  const flipped = Buffer.from(s, 'base64url')
  flipped[100]! ^= 1
  const stranger = forgeKey('RS256', { kid: 'rsa' })
  const forged: [string, string][] = [
    ['an empty signature', assemble(header('RS256'), payload, '')],
    ['a flipped bit', assemble(h, p, flipped)],
    ['another payload under the signature', assemble(h, { ...app.claims(), sub: 'mallory' }, s)],
    ['another header over the signature', assemble({ alg: 'RS256', kid: 'rsa', typ: 'JWT' }, p, s)],
    ['half a signature', assemble(h, p, s.slice(0, 171))],
    ['all zeros', assemble(header('RS256'), payload, Buffer.alloc(256))],
    ['ES256 of zeros', assemble(header('ES256', 'ec'), payload, Buffer.alloc(64))],
    [
      'ES256 with a signature in DER',
      assemble(
        header('ES256', 'ec'),
        payload,
        sign('sha256', Buffer.from(`${header('ES256', 'ec')}.${payload}`), ec.privateKey),
      ),
    ],
    ['EdDSA of zeros', assemble(header('EdDSA', 'ed'), payload, Buffer.alloc(64))],
    ['a key of the same name that is not the provider’s', await stranger.sign(app.claims())],
    [
      'PS256 signed as RS256',
      assemble(
        header('PS256', 'pss'),
        payload,
        sign('sha256', Buffer.from(`${header('PS256', 'pss')}.${payload}`), pss.privateKey),
      ),
    ],
  ]
  for (const [why, token] of forged) await refused(t, app, `Bearer ${token}`, 'signature mismatch', why)
  t.equal(app.handled.count, 0)
})

t.test('ignores keys that a token carries or points to', async (t) => {
  const app = await door(t)
  const canary = await startCanary(t)
  const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = own.publicKey.export({ format: 'jwk' }) as JWK
  const mine = forgeKey('RS256', { kid: 'mine' })
  const headers = { jku: canary.url, x5u: canary.url, jwk, x5c: ['MIIB'], x5t: 'abc' }
  for (const [name, value] of Object.entries(headers)) {
    const unknown = await mine.sign(app.claims(), { [name]: value })
    await refused(t, app, `Bearer ${unknown}`, 'no key for this kid and alg', `${name}, own key`)
    t.equal(
      (await app.bearer(await rsa.sign(app.claims(), { [name]: value }))).statusCode,
      200,
      `${name} beside a known key is ignored`,
    )
  }
  const elsewhere = {
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint: canary.url, access_token: 'x' } },
  }
  t.equal((await app.bearer(await rsa.sign(app.claims(elsewhere)))).json().hasGroupsOverage, true)
  t.equal(canary.calls, 0, 'nobody was called')
})

t.test('refuses critical header members it does not understand', async (t) => {
  const app = await door(t)
  const payload = part(app.claims())
  const signed = (header: object) => {
    const input = `${part({ alg: 'RS256', kid: 'rsa', ...header })}.${payload}`
    return `${input}.${sign('sha256', Buffer.from(input), rsa.privateKey).toString('base64url')}`
  }
  const critical: [string, object][] = [
    ['an unknown extension', { crit: ['exp'], exp: 1 }],
    ['an empty crit', { crit: [] }],
    ['a crit that is null', { crit: null }],
    ['a crit that is false', { crit: false }],
    ['an unencoded payload', { crit: ['b64'], b64: false }],
    ['b64 alone', { b64: false }],
  ]
  for (const [why, header] of critical) await refused(t, app, `Bearer ${signed(header)}`, 'crit not supported', why)

  for (const typ of ['JWT', 'jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', undefined]) {
    t.equal((await app.bearer(await rsa.sign(app.claims(), { typ }))).statusCode, 200, `typ ${typ}`)
  }
  for (const typ of ['logout+jwt', 'id+jwt', 'dpop+jwt', 'secevent+jwt', 'JOSE', '', 5, null, ['JWT']]) {
    await refused(t, app, `Bearer ${signed({ typ })}`, 'typ not allowed', `typ ${JSON.stringify(typ)}`)
  }
})

t.test('claims', async (t) => {
  const app = await door(t)
  const now = Math.floor(app.clock.now() / 1000)
  const cases: Record<string, [string, Record<string, unknown>][]> = {
    'iss mismatch': [
      ['none', { iss: undefined }],
      ['a slash behind', { iss: `${ISSUER}/` }],
      ['another case', { iss: ISSUER.toUpperCase() }],
      ['an array', { iss: [ISSUER] }],
      ['another tenant', { iss: 'https://idp.example.test/other/v2.0' }],
      ['a prefix', { iss: ISSUER.slice(0, -5) }],
      ['null', { iss: null }],
    ],
    'aud mismatch': [
      ['none', { aud: undefined }],
      ['a prefix', { aud: AUDIENCE.slice(0, -1) }],
      ['a suffix', { aud: `${AUDIENCE}x` }],
      ['a slash behind', { aud: `${AUDIENCE}/` }],
      ['another case', { aud: AUDIENCE.toUpperCase() }],
      ['an object', { aud: {} }],
      ['an object with the audience', { aud: { 0: AUDIENCE, length: 1 } }],
      ['an empty array', { aud: [] }],
      ['an array of others', { aud: ['https://graph.microsoft.com', 'x'] }],
      ['an array within', { aud: [[AUDIENCE]] }],
      ['an API of the same provider', { aud: '00000003-0000-0000-c000-000000000000' }],
      ['true', { aud: true }],
    ],
    'exp missing': [
      ['none', { exp: undefined }],
      ['a string', { exp: String(now + 600) }],
      ['null', { exp: null }],
      ['an array', { exp: [now + 600] }],
      ['an object', { exp: {} }],
    ],
    'exp passed': [
      ['31 s ago', { exp: now - 31, iat: now - 600 }],
      ['30 s ago', { exp: now - 30, iat: now - 600 }],
      ['-1', { exp: -1, iat: -100 }],
      ['zero', { exp: 0, iat: undefined }],
    ],
    'lifetime too long': [
      ['a day and a second', { exp: now + 86_401 }],
      ['a day and a second without iat', { exp: now + 86_402, iat: undefined }],
      ['1e18', { exp: 1e18 }],
    ],
    'nbf not reached': [['in 32 s', { nbf: now + 32 }]],
    'iat in the future': [['in 32 s', { iat: now + 32 }]],
    'malformed token': [
      ['nbf as a string', { nbf: String(now) }],
      ['nbf as null', { nbf: null }],
      ['iat as a string', { iat: String(now) }],
      ['iat as an object', { iat: {} }],
    ],
    'sub missing or malformed': [
      ['none', { sub: undefined }],
      ['a number', { sub: 5 }],
      ['empty', { sub: '' }],
      ['null', { sub: null }],
      ['an object', { sub: {} }],
      ['an array', { sub: ['alice'] }],
      ['NUL', { sub: 'a\u0000b' }],
      ['a line break', { sub: 'a\nb' }],
      ['DEL', { sub: 'a\u007fb' }],
      ['a C1 control', { sub: 'a\u0085b' }],
      ['a line separator', { sub: 'a\u2028b' }],
      ['half a surrogate pair', { sub: 'a\ud800b' }],
      ['256 characters', { sub: 'x'.repeat(256) }],
      ['100 KB would be', { sub: 'x'.repeat(8000) }],
    ],
    'not an access token': [
      ['the nonce of an ID token', { nonce: 'n-0S6_WzA2Mj' }],
      ['at_hash', { at_hash: 'MTIzNDU2Nzg5MDEyMzQ1Ng' }],
      ['c_hash', { c_hash: 'LDktKdoQak3Pk0cnXxCltA' }],
      ['an event of a logout token', { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
      ['Keycloak’s ID token', { typ: 'ID' }],
      ['Keycloak’s refresh token', { typ: 'Refresh' }],
    ],
    'missing required scope': [
      ['none', { scope: undefined }],
      ['empty', { scope: '' }],
      ['a longer one', { scope: 'svc-mcp.useX' }],
      ['a shorter one', { scope: 'svc-mcp.us' }],
      ['another case', { scope: 'SVC-MCP.USE' }],
      ['separated by a tab', { scope: 'openid\tsvc-mcp.use' }],
      ['separated by commas', { scope: 'openid,svc-mcp.use' }],
      ['an object', { scope: {} }],
      ['an object of that name', { scope: { 'svc-mcp.use': true } }],
      ['a number', { scope: 5 }],
      ['the long form', { scope: undefined, scp: 'api://svc-mcp/svc-mcp.use' }],
      ['one element with two', { scope: undefined, scp: ['openid svc-mcp.use'] }],
      ['elements that are no strings', { scope: undefined, scp: [['svc-mcp.use'], null, 5] }],
      ['roles instead', { scope: undefined, roles: ['svc-mcp.use'] }],
    ],
  }
  for (const [reason, list] of Object.entries(cases)) {
    for (const [why, over] of list) {
      await refused(t, app, `Bearer ${await rsa.sign(app.claims(over))}`, reason, `${reason}: ${why}`)
    }
  }
  t.equal(app.handled.count, 0)

  const accepted: [string, Record<string, unknown>][] = [
    ['aud in an array', { aud: ['x', AUDIENCE] }],
    ['aud in an array with odd company', { aud: [null, {}, AUDIENCE] }],
    ['exp 29 s ago', { exp: now - 29, iat: now - 600 }],
    ['a life of a day', { exp: now + 86_400 }],
    ['a fraction of a second', { exp: now + 600.5, iat: now - 0.5 }],
    ['nbf in 29 s', { nbf: now + 29 }],
    ['iat in 29 s', { iat: now + 29 }],
    ['no iat', { iat: undefined }],
    ['scp as an array', { scope: undefined, scp: ['openid', 'svc-mcp.use'] }],
    ['scp as a string', { scope: undefined, scp: 'openid svc-mcp.use' }],
    ['scp beside a scope without it', { scope: 'openid', scp: ['svc-mcp.use'] }],
    ['scope beside an scp without it', { scope: 'a svc-mcp.use', scp: 'b' }],
    ['scope as an array', { scope: ['svc-mcp.use'] }],
    ['an access token of an older Keycloak', { typ: 'Bearer', nonce: 'n' }],
  ]
  for (const [why, over] of accepted) {
    t.equal((await app.bearer(await rsa.sign(app.claims(over)))).statusCode, 200, why)
  }
  for (const sub of ['__proto__', '<script>', 'x'.repeat(255), 'é', 'e\u0301', '👩‍💻', 'a|b', ' ']) {
    t.equal((await app.bearer(await rsa.sign(app.claims({ sub })))).json().sub, sub, `sub ${sub} stands as it is`)
  }
})

t.test('compares whole scopes', async (t) => {
  const app = await door(t, { requiredScope: 'a.*' })
  t.equal((await app.bearer(await rsa.sign(app.claims({ scope: 'a.b' })))).statusCode, 401)
  t.equal((await app.bearer(await rsa.sign(app.claims({ scope: 'b a.*' })))).statusCode, 200)
})

t.test('groups', async (t) => {
  const app = await door(t, {
    groupsClaims: ['groups', 'roles', 'https://svc-mcp.example/groups', 'realm_access.roles'],
  })
  const cases: [string, Record<string, unknown>, string[], boolean?][] = [
    ['none', {}, []],
    ['both claims together, each once', { groups: ['a', 'b'], roles: ['b', 'c'] }, ['a', 'b', 'c']],
    ['roles although groups are there', { groups: [], roles: ['c'] }, ['c']],
    ['an empty string', { groups: '' }, []],
    ['a lone string is one group', { groups: 'admin', roles: 'user' }, ['admin', 'user']],
    ['and is never taken apart', { groups: 'a,b admin;c' }, ['a,b admin;c']],
    ['a lone string in a claim within', { realm_access: { roles: 'r' } }, ['r']],
    ['a number is no group', { groups: 5, roles: true }, []],
    ['arrays within', { groups: [['admin']] }, []],
    ['null', { groups: [null] }, []],
    ['odd company', { groups: [5, {}, true, 'a', ''] }, ['a']],
    ['an object', { groups: { 0: 'admin' } }, []],
    ['exactly as they are', { groups: ['/admins', 'Admins', ' admins '] }, ['/admins', 'Admins', ' admins ']],
    ['a namespaced claim', { 'https://svc-mcp.example/groups': ['n'] }, ['n']],
    ['a path', { realm_access: { roles: ['r'] } }, ['r']],
    ['a path that ends early', { realm_access: 'roles' }, []],
    ['a path of null', { realm_access: null }, []],
    [
      'the claim of that very name before the path',
      { 'realm_access.roles': ['x'], realm_access: { roles: ['y'] } },
      ['x'],
    ],
    ['too many, named elsewhere', { _claim_names: { groups: 'src1' } }, [], true],
    ['too many, and a word where the groups would be', { groups: 'src1', _claim_names: { groups: 'src1' } }, [], true],
    ['too many, by a flag', { hasgroups: true, roles: ['r'] }, ['r'], true],
    ['too many, by a flag in words', { hasgroups: 'true' }, [], true],
    ['too many in another claim of groups', { roles: 'src1', _claim_names: { roles: 'src1' } }, [], true],
    ['other claims elsewhere', { _claim_names: { wids: 'src1' } }, [], false],
    ['groups all the same', { groups: ['a'], _claim_names: { groups: 'src1' }, hasgroups: true }, ['a'], false],
    ['a flag that says no', { hasgroups: false }, [], false],
    ['a list that names nothing', { _claim_names: null }, [], false],
  ]
  for (const [why, over, groups, hasGroupsOverage = false] of cases) {
    const identity = { iss: ISSUER, sub: 'alice', groups, hasGroupsOverage }
    t.same((await app.bearer(await rsa.sign(app.claims(over)))).json(), identity, why)
  }
})

t.test('a provider that calls itself otherwise in access tokens', async (t) => {
  const tokenIssuer = 'http://idp.example.test/services/trust'
  const app = await door(t, { tokenIssuer })
  t.equal((await app.bearer(await rsa.sign(app.claims({ iss: tokenIssuer })))).json().iss, ISSUER, 'is the provider')
  for (const iss of [ISSUER, `${tokenIssuer}/`])
    await refused(t, app, `Bearer ${await rsa.sign(app.claims({ iss }))}`, 'iss mismatch', iss)
})

t.test('an Entra ID token with 200 groups is accepted', async (t) => {
  const app = await door(t)
  const groups = Array.from({ length: 200 }, (_, at) => `7c1f9d52-64a6-4f0e-8e0b-${String(at).padStart(12, '0')}`)
  const token = await rsa.sign(app.claims({ groups }))
  t.ok(token.length > 10_000, `${token.length} bytes`)
  const address = await app.app.listen({ port: 0, host: '127.0.0.1' })
  const answer = await fetch(`${address}/secured`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  t.equal(((await answer.json()) as { groups: string[] }).groups.length, 200)
})

t.test('checks a cached token again on every request', async (t) => {
  const app = await door(t)
  const token = await rsa.sign(app.claims({ exp: Math.floor(app.clock.now() / 1000) + 60 }))
  t.equal((await app.bearer(token)).statusCode, 200)
  app.clock.leap(89)
  t.equal((await app.bearer(token)).statusCode, 200, 'within the skew')
  app.clock.leap(2)
  await refused(t, app, `Bearer ${token}`, 'exp passed', 'a remembered token whose time is over')
  app.clock.leap(-600)
  await refused(t, app, `Bearer ${token}`, 'iat in the future', 'the clock was set back by ten minutes')
  app.clock.leap(580)
  t.equal((await app.bearer(token)).statusCode, 200, 'and right again')
})

t.test('answers 401 unless jose accepts the token as well', async (t) => {
  const app = await door(t)
  const good = app.claims({ groups: ['a'] })
  const check = async (token: string, bearer = `Bearer ${token}`) => {
    const answer = await app.send(bearer)
    if (answer.statusCode === 401) return
    assert.equal(answer.statusCode, 200, bearer)
    const { payload } = await jwtVerify(token, ec.publicKey, {
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ['ES256'],
      clockTolerance: 30,
      requiredClaims: ['exp', 'sub'],
      currentDate: new Date(app.clock.now()),
    })
    assert.equal(answer.json().sub, payload.sub)
  }
  const oddly = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(
      ...Object.values(good),
      'JWT',
      'at+jwt',
      'ES256',
      'ec',
      'none',
      AUDIENCE.slice(1),
      [AUDIENCE],
      1e300,
      -1,
    ),
    fc.integer({ min: -100_000, max: 100_000 }).map((by) => Math.floor(app.clock.now() / 1000) + by),
  )
  const over = (names: string[]) =>
    fc.dictionary(fc.oneof(fc.constantFrom(...names, '__proto__', 'constructor'), fc.string()), oddly, { maxKeys: 3 })
  const runs = Number(process.env.FUZZ_RUNS ?? 150)

  await fc.assert(
    fc.asyncProperty(over(Object.keys(good)), async (claims) => check(await ec.sign({ ...good, ...claims }))),
    { numRuns: runs },
  )
  await fc.assert(
    fc.asyncProperty(over(['alg', 'kid', 'typ', 'crit', 'b64', 'jku']), async (members) => {
      const input = `${part({ alg: 'ES256', kid: 'ec', ...members })}.${part(good)}`
      const key = { key: ec.privateKey, dsaEncoding: 'ieee-p1363' } as const
      await check(`${input}.${sign('sha256', Buffer.from(input), key).toString('base64url')}`)
    }),
    { numRuns: runs },
  )
  const token = await ec.sign(good)
  await fc.assert(
    fc.asyncProperty(fc.nat(token.length), fc.nat(3), fc.base64String({ maxLength: 5 }), (at, length, put) =>
      check(token.slice(0, at) + put.replace(/=/g, '.') + token.slice(at + length)),
    ),
    { numRuns: runs },
  )
  const latin = fc.string({ unit: fc.integer({ min: 32, max: 255 }).map((code) => String.fromCharCode(code)) })
  await fc.assert(
    fc.asyncProperty(latin, fc.boolean(), (text, isBearer) => check('', isBearer ? `Bearer ${text}` : text)),
    { numRuns: runs },
  )
  t.ok(app.handled.count > runs / 20, `${app.handled.count} of ${runs * 4} were good all the same`)
})

const encode = (json: string) => Buffer.from(json).toString('base64url')

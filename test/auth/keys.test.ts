/**
 * Where the keys come from, and what happens when they do not (D13, RFC 7517).
 */
import { generateKeyPairSync } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { JWK } from 'jose'
import { assemble, claimsFor, forgeKey, type ForgedKey } from '../identity/forge.js'
import { KEY_FAULTS, startCanary, startKeyServer, type KeyFault } from '../identity/key-server.js'
import { partial } from '../partial.js'
import { authApp, Clock } from './auth-app.js'

const rsa = forgeKey('RS256', { kid: 'rsa' })
const next = forgeKey('RS256', { kid: 'next' })
const ec = forgeKey('ES256', { kid: 'ec' })
const MINUTE = 60
const HOUR = 3600

async function door(t: Test, published: (ForgedKey | JWK)[] = [rsa], fault: KeyFault | null = null) {
  const keys = await startKeyServer(t, ...published)
  keys.fault = fault
  const oauth = {
    issuer: 'https://idp.example.test/',
    jwksUrl: keys.url,
    audience: 'https://mcp.example.test',
    requiredScope: 'svc-mcp.use',
    groupsClaims: ['groups'],
  }
  const clock = new Clock()
  const app = await authApp(t, oauth, { clock })
  // A token that lives as long as the clock of the test stands.
  const token = (key: ForgedKey, header?: Record<string, unknown>) =>
    key.sign(claimsFor(oauth, {}, clock.now()), header)
  const status = async (key: ForgedKey, header?: Record<string, unknown>) =>
    (await app.bearer(await token(key, header))).statusCode
  return { ...app, keys, oauth, clock, token, status }
}

/** Waits for the download that is under way: when it has come to an end, the next one is planned. */
const settle = ({ clock }: { clock: Clock }) => clock.untilPlanned()

t.test('which keys of a set are used', async (t) => {
  const published = (key: ForgedKey, over: Record<string, unknown>): JWK => ({ ...key.jwk, ...over })
  const own = (alg: ForgedKey['alg'], kid: string) => forgeKey(alg, { kid })
  const weak = forgeKey('RS256', { kid: 'weak', bits: 1024 })
  const cases: [string, ForgedKey, JWK, boolean][] = []
  const add = (why: string, over: Record<string, unknown>, counts: boolean, alg: ForgedKey['alg'] = 'RS256') => {
    const key = own(alg, why)
    cases.push([why, key, published(key, over), counts])
  }
  add('as it should be', {}, true)
  add('without alg, as Entra ID', { alg: undefined }, true)
  add('without use', { use: undefined }, true)
  add('for encryption', { use: 'enc' }, false)
  add('for an unknown use', { use: ['sig'] }, false)
  add('key_ops verify', { use: undefined, key_ops: ['verify'] }, true)
  add('key_ops encrypt', { use: undefined, key_ops: ['encrypt'] }, false)
  add('key_ops empty', { key_ops: [] }, false)
  add('key_ops no array', { key_ops: 'verify' }, false)
  add('for another algorithm of its kind', { alg: 'PS256' }, false)
  add('for an algorithm that is not allowed', { alg: 'RS512' }, false)
  add('for RSA encryption', { alg: 'RSA-OAEP' }, false)
  add('with a certificate', { x5c: ['MIIB'], x5t: 'x' }, true)
  add('without its modulus', { n: undefined }, false)
  add('with an exponent of 1', { e: 'AQ' }, false)
  add('EC', {}, true, 'ES256')
  add('EC without alg', { alg: undefined }, true, 'ES256')
  add('EC that says another curve', { crv: 'P-384' }, false, 'ES256')
  add('EC off the curve', { x: 'AAAA' }, false, 'ES256')
  add('EdDSA', {}, true, 'EdDSA')
  add('EdDSA without alg', { alg: undefined }, true, 'EdDSA')
  cases.push(['RSA of 1024 bits', weak, weak.jwk, false])

  const junk = [
    null,
    'key',
    5,
    [],
    {},
    { kty: 'oct', k: 'c2VjcmV0', kid: 'oct' },
    { kty: '__proto__' },
  ] as unknown as JWK[]
  const { status } = await door(t, [...junk, ...cases.map(([, , jwk]) => jwk)])
  for (const [why, key, , counts] of cases) t.equal(await status(key), counts ? 200 : 401, why)

  const foreign = [
    generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
    generateKeyPairSync('ed448'),
  ].map(({ publicKey }, at) => ({ ...publicKey.export({ format: 'jwk' }), kid: `foreign-${at}` }))
  const other = await door(t, [rsa, ...foreign])
  for (const { kid, crv } of foreign) {
    const payload = claimsFor(other.oauth, {}, other.clock.now())
    for (const alg of ['ES256', 'EdDSA']) {
      const token = assemble({ alg, kid }, payload, Buffer.alloc(64, 1))
      t.equal((await other.bearer(token)).statusCode, 401, `${alg} with a key on ${crv}`)
    }
  }
})

t.test('keys without a kid', async (t) => {
  const nameless = { kid: undefined }
  await t.test('a token without a kid is checked with the only key of its algorithm', async (t) => {
    const { status } = await door(t, [rsa, ec])
    t.equal(await status(rsa, nameless), 200)
    t.equal(await status(ec, nameless), 200)
  })
  await t.test('not if there are two such keys, even from one owner', async (t) => {
    const { status } = await door(t, [rsa, next, ec])
    t.equal(await status(rsa, nameless), 401)
    t.equal(await status(next, nameless), 401)
    t.equal(await status(ec, nameless), 200, 'the other algorithm has only one')
  })
  await t.test('unusable keys are not counted', async (t) => {
    const weak = forgeKey('RS256', { bits: 1024 })
    const enc = forgeKey('RS256', { jwk: { use: 'enc' } })
    const slow = { ...rsa.jwk, kid: 'slow', n: Buffer.alloc(1100, 0xff).toString('base64url') } as JWK
    const trivial = [{ ...next.jwk, e: 'AQ' } as JWK, { ...next.jwk, e: 'AAEA' } as JWK]
    const { status } = await door(t, [weak, enc, slow, ...trivial, rsa])
    t.equal(await status(rsa, nameless), 200)
  })
  await t.test('a key without a kid', async (t) => {
    const { status } = await door(t, [{ ...rsa.jwk, kid: undefined }])
    t.equal(await status(rsa, nameless), 200)
    t.equal(await status(rsa), 401, 'is not the one that a token names')
    for (const kid of ['nameless', 'undefined', 'null', '../../etc/passwd', "' OR 1=1 --", 'constructor']) {
      t.equal(await status(rsa, { kid }), 401, kid)
    }
  })
  await t.test('a key without a kid next to one with a kid', async (t) => {
    const { status } = await door(t, [{ ...rsa.jwk, kid: undefined }, next])
    t.equal(await status(rsa, nameless), 401, 'either could be meant')
    t.equal(await status(next), 200)
  })
  await t.test('two keys with the same kid', async (t) => {
    const impostor = forgeKey('RS256', { kid: 'rsa', bits: 1024 })
    const enc = forgeKey('RS256', { kid: 'rsa', jwk: { use: 'enc' } })
    const other = forgeKey('ES256', { kid: 'rsa' })
    const { status } = await door(t, [impostor, enc, other, rsa, forgeKey('RS256', { kid: 'rsa' })])
    t.equal(await status(rsa), 200, 'the first that counts')
    t.equal(await status(other), 200, 'and the one of another algorithm')
  })
})

t.test('500 tokens with made-up kids cause one download', async (t) => {
  const app = await door(t)
  t.equal(await app.status(rsa), 200)
  t.equal(app.keys.fetches, 1)
  app.clock.leap(31)
  const tokens = await Promise.all(Array.from({ length: 500 }, (_, at) => app.token(rsa, { kid: `made-up-${at}` })))
  const answers = await Promise.all(tokens.map((token) => app.bearer(token)))
  t.same(new Set(answers.map(({ statusCode }) => statusCode)), new Set([401]))
  t.equal(app.keys.fetches, 2, 'one download for all of them')
  for (const token of tokens.slice(0, 20)) await app.bearer(token)
  app.clock.leap(29)
  await app.bearer(tokens[0]!)
  t.equal(app.keys.fetches, 2, 'and no other within 30 s')
  app.clock.leap(1)
  await app.bearer(tokens[0]!)
  t.equal(app.keys.fetches, 3)
  partial(t, app.refusals().at(-1), { reason: 'no key for this kid and alg' })

  app.clock.leap(31)
  const foreign = await rsa.sign(claimsFor({ ...app.oauth, issuer: 'https://other.example' }, {}, app.clock.now()), {
    kid: 'x',
  })
  t.equal((await app.bearer(foreign)).statusCode, 401)
  partial(t, app.refusals().at(-1), { reason: 'iss mismatch' })
  t.equal(app.keys.fetches, 3, 'a token of another provider is no reason to ask ours')
})

t.test('accepts a newly published key', async (t) => {
  const app = await door(t)
  t.equal(await app.status(rsa), 200)
  app.keys.keys = [rsa, next]
  t.equal(await app.status(next), 401, 'is unknown for 30 s at most')
  app.clock.leap(30)
  const answers = await Promise.all([app.status(next), app.status(rsa), app.status(next)])
  t.same(answers, [200, 200, 200])
  t.equal(app.keys.fetches, 2)
})

t.test('a withdrawn key', async (t) => {
  const app = await door(t, [rsa, next])
  const token = await app.token(next)
  t.equal((await app.bearer(token)).statusCode, 200)
  app.keys.keys = [rsa]

  await t.test('is refused after the next download', async (t) => {
    app.clock.pass(9 * MINUTE)
    await settle(app)
    t.equal((await app.bearer(token)).statusCode, 401, 'although it was remembered')
    t.equal(app.keys.fetches, 2)
  })
  await t.test('is refused a moment after its token was verified, once the keys have been downloaded', async (t) => {
    const other = await door(t, [rsa, next])
    await settle(other)
    other.clock.pass(9 * MINUTE - 10)
    const fresh = await other.token(next)
    t.equal((await other.bearer(fresh)).statusCode, 200)
    other.keys.keys = [rsa]
    other.clock.pass(10)
    await settle(other)
    t.equal((await other.bearer(fresh)).statusCode, 401)
  })
  await t.test('is refused after ten minutes even without a download', async (t) => {
    const other = await door(t, [rsa, next])
    t.equal(await other.status(next), 200)
    other.keys.keys = [rsa]
    other.clock.leap(10 * MINUTE)
    t.equal(await other.status(next), 401)
  })
})

t.test('forgets cached verifications together with their key', async (t) => {
  const app = await door(t)
  const token = await app.token(rsa)
  t.equal((await app.bearer(token)).statusCode, 200)
  const other = forgeKey('RS256', { kid: 'rsa' })
  app.keys.keys = [other]
  app.clock.pass(9 * MINUTE)
  await settle(app)
  t.equal((await app.bearer(token)).statusCode, 401, 'another key of that name')
  t.equal(await app.status(other), 200)
})

t.test('the provider goes down', async (t) => {
  const app = await door(t)
  t.equal(await app.status(rsa), 200)
  const loaded = app.clock.now()
  await app.keys.stop()

  let failures = 0
  const live = async (seconds: number, step: number) => {
    for (let at = 0; at < seconds; at += step) {
      app.clock.pass(step)
      await settle(app)
      if ((await app.status(rsa)) !== 200) failures++
    }
  }
  await live(5 * MINUTE, 1)
  t.equal(failures, 0, 'for five minutes: nobody notices')
  await live(54 * MINUTE, 20)
  t.equal(failures, 0, 'nor for 59')
  const warnings = app.log.filter(({ msg }) => String(msg).includes('cannot be loaded'))
  partial(t, warnings.at(-1), { level: 40, age_seconds: Number, err: { message: String } })
  const most = (59 * MINUTE - 9 * MINUTE) / 30 + 1
  t.ok(warnings.length > most / 2 && warnings.length <= most, `${warnings.length} tries, none within 30 s of another`)
  t.equal(app.app.areKeysLoaded(), true)

  const known = await app.token(rsa)
  t.equal((await app.bearer(known)).statusCode, 200)
  app.clock.pass(HOUR - (app.clock.now() - loaded) / 1000)
  await settle(app)
  t.equal((await app.bearer(known)).statusCode, 503, 'also with a token that was verified before')
  const answer = await app.bearer(await app.token(rsa))
  t.equal(answer.statusCode, 503, 'after an hour the keys are too old')
  partial(t, answer.json(), { error: 'keys_unavailable', retry_after: Number })
  t.equal(answer.headers['retry-after'], String(answer.json().retry_after))
  t.notOk(answer.headers['www-authenticate'], 'which says nothing about the token')
  t.equal(app.app.areKeysLoaded(), false)

  await app.keys.start()
  app.clock.pass(30)
  await settle(app)
  t.equal(app.app.areKeysLoaded(), true, 'loaded within 30 s, without a request')
  t.equal(await app.status(rsa), 200)

  const { fetches } = app.keys
  app.clock.pass(5 * MINUTE)
  t.equal(await app.status(rsa), 200)
  t.equal(app.keys.fetches, fetches, 'then all is as it was: no more tries every 30 s')
  app.keys.keys = [next]
  app.clock.leap(5 * MINUTE)
  t.equal(await app.status(rsa), 401, 'and a key taken back is refused in time')
})

t.test('the provider is down at start-up', async (t) => {
  const keys = await startKeyServer(t, rsa)
  await keys.stop()
  const oauth = {
    issuer: 'https://idp.example.test/',
    jwksUrl: keys.url,
    audience: 'https://mcp.example.test',
    requiredScope: 'svc-mcp.use',
    groupsClaims: [],
  }
  const clock = new Clock()
  const app = await authApp(t, oauth, { clock })
  const token = await rsa.sign(claimsFor(oauth, {}, clock.now()))
  for (let time = 0; time < 3; time++) {
    const answer = await app.bearer(token)
    t.equal(answer.statusCode, 503)
    partial(t, answer.json(), { error: 'keys_unavailable', retry_after: 30 })
    t.equal(answer.headers['retry-after'], '30')
  }
  t.equal((await app.send()).statusCode, 401, 'no token is no token')
  t.equal((await app.bearer('x')).statusCode, 401, 'and what is no token needs no key')
  t.equal(app.app.areKeysLoaded(), false)
  t.equal(app.log.filter(({ msg }) => String(msg).includes('cannot be loaded')).length, 1, 'one try for all of these')

  await keys.start()
  clock.pass(30)
  await settle({ clock })
  t.equal(app.app.areKeysLoaded(), true, 'heals within 30 s, without a request')
  t.equal((await app.bearer(token)).statusCode, 200)
  t.equal(keys.fetches, 1)
})

t.test('requests before the keys are loaded', async (t) => {
  const app = await door(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => app.status(rsa)))
  t.same(new Set(answers), new Set([200]), 'the first requests wait for them')
  t.equal(app.keys.fetches, 1)
})

t.test('answers that are not a key set', async (t) => {
  const canary = await startCanary(t)
  const faults: KeyFault[] = [...(Object.keys(KEY_FAULTS) as (keyof typeof KEY_FAULTS)[]), { redirectTo: canary.url }]
  const SLOW = new Set<KeyFault>(['hang', 'stall'])

  const suffer = async (fault: KeyFault) => {
    const why = typeof fault === 'string' ? fault : 'redirect'
    const app = await door(t, [rsa], fault)
    t.equal(await app.status(rsa), 503, `${why}: never loaded`)
    t.equal(app.app.areKeysLoaded(), false, `${why}: not ready`)
    app.keys.fault = null
    app.clock.pass(30)
    await settle(app)
    t.equal(await app.status(rsa), 200, `${why}: heals`)

    app.keys.fault = fault
    const { fetches } = app.keys
    app.clock.pass(9 * MINUTE)
    while (app.keys.fetches === fetches) await turn()
    const givenUp = () => app.log.filter(({ msg }) => String(msg).includes('cannot be loaded')).length
    const before = givenUp()
    t.equal(await app.status(rsa), 200, `${why}: known keys go on`)
    if (SLOW.has(fault)) t.equal(givenUp(), before, `${why}: the request did not wait for the download`)
    await settle(app)
    app.clock.leap(20 * MINUTE)
    const down = givenUp()
    t.equal(await app.status(rsa), 200, `${why}: and on, while the provider is known to be down`)
    if (SLOW.has(fault)) t.equal(givenUp(), down, `${why}: nor for another download`)
    t.equal(app.app.areKeysLoaded(), true, `${why}: ready`)
  }
  await Promise.all(faults.map(suffer))
  t.equal(canary.calls, 0, 'no redirect was followed')
})

t.test('the clock is changed', async (t) => {
  const app = await door(t)
  t.equal(await app.status(rsa), 200)
  app.clock.leap(-10 * MINUTE)
  t.equal(await app.status(rsa), 200, 'back by ten minutes')
  app.keys.keys = [rsa, next]
  app.clock.leap(30)
  t.equal(await app.status(next), 200, 'and a new key is still found after 30 s')
  app.clock.leap(10 * MINUTE)
  t.equal(await app.status(rsa), 200, 'forth by ten minutes')
  app.clock.leap(3 * HOUR)
  t.equal(await app.status(rsa), 200, 'forth by three hours: the keys are loaded again')
})

t.test('refreshes keys without any requests', async (t) => {
  const app = await door(t)
  await settle(app)
  for (let hour = 0; hour < 20; hour++) {
    app.clock.pass(9 * MINUTE)
    await settle(app)
  }
  t.equal(app.keys.fetches, 21)
  t.equal(app.app.areKeysLoaded(), true)
  t.equal(app.log.filter(({ msg }) => String(msg).includes('loaded')).length, 1, 'unchanged keys are no news')
})

t.test('closing the app aborts a running download', async (t) => {
  const startDownload = async () => {
    const keys = await startKeyServer(t, rsa)
    keys.fault = 'hang'
    const clock = new Clock()
    const oauth = { issuer: 'x', jwksUrl: keys.url, audience: 'x', requiredScope: 'x', groupsClaims: [] }
    const { app, log } = await authApp(t, oauth, { clock })
    while (keys.fetches === 0) await turn()
    return { keys, clock, app, log }
  }
  // It began earlier, so its time is over earlier.
  const other = await startDownload()
  const { keys, clock, app, log } = await startDownload()
  await app.close()
  while (keys.open > 0 && other.keys.open > 0) await turn()
  t.equal(keys.open, 0, 'at once, not when its time is over')
  t.equal(clock.planned, 0, 'and plans no other')
  t.notOk(log.some(({ msg }) => String(msg).includes('cannot be loaded')))
})

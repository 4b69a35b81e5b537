/** params_hash and confirm tokens by themselves: the form that is hashed, and everything that is not quite a token. */
import assert from 'node:assert/strict'
import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import t from 'tap'
import fc from 'fast-check'
import { canonicalForm, paramsHash } from '../../plugins/confirm/params-hash.js'
import { ToolError } from '../../schemas/errors.js'
import type { ConfirmedCall } from '../../schemas/confirmations.js'
import { ANY_CHARACTER } from '../any-character.js'
import { found } from '../edge/support/within.js'
import { partial } from '../partial.js'
import { runsOf } from '../property-runs.js'
import { writeCanonically } from './independent-jcs.js'
import { confirmationsOf, memoryState } from './memory-state.js'

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex')
const NOW = Date.parse('2026-06-15T12:00:00Z')
const KEY = Buffer.alloc(32, 7)
const HASH = 'a'.repeat(64)
const CALL: ConfirmedCall = { owner: { iss: 'https://id', sub: 'ann' }, tool: 'provision-policy', paramsHash: HASH }

t.test('params_hash', async (t) => {
  t.test('is the SHA-256 of the canonical form, pinned', async (t) => {
    t.equal(paramsHash({}), '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a')
    // printf '{"hrefs":["/orgs/1/sec_policy/draft/rule_sets/9"]}' | sha256sum
    t.equal(
      paramsHash({ hrefs: ['/orgs/1/sec_policy/draft/rule_sets/9'] }),
      sha256('{"hrefs":["/orgs/1/sec_policy/draft/rule_sets/9"]}'),
    )
    t.equal(paramsHash({ b: 1, a: { d: [], c: 'é' } }), sha256('{"a":{"c":"é","d":[]},"b":1}'))
    t.not(paramsHash({ a: 'é' }), sha256('{"a":"\\u00e9"}'), 'text is UTF-8 and not escaped to ASCII')
  })

  t.test('the form is that of RFC 8785: its sample objects', async (t) => {
    const sample = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`
    const bytes =
      '7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72 75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73' +
      ' 22 3a 5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31 65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31' +
      ' 65 2d 32 37 5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30 30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c' +
      ' 22 2f 22 7d'
    t.equal(Buffer.from(canonicalForm(JSON.parse(sample))).toString('hex'), bytes.replaceAll(' ', ''))

    const names = String.raw`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`
    t.equal(canonicalForm(JSON.parse(names)), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  })

  t.test('and its table of numbers (appendix B)', async (t) => {
    const table: Record<string, string> = {
      '0000000000000000': '0',
      '8000000000000000': '0',
      '0000000000000001': '5e-324',
      '8000000000000001': '-5e-324',
      '7fefffffffffffff': '1.7976931348623157e+308',
      ffefffffffffffff: '-1.7976931348623157e+308',
      '4340000000000000': '9007199254740992',
      c340000000000000: '-9007199254740992',
      '4430000000000000': '295147905179352830000',
      '44b52d02c7e14af5': '9.999999999999997e+22',
      '44b52d02c7e14af6': '1e+23',
      '44b52d02c7e14af7': '1.0000000000000001e+23',
      '444b1ae4d6e2ef4e': '999999999999999700000',
      '444b1ae4d6e2ef4f': '999999999999999900000',
      '444b1ae4d6e2ef50': '1e+21',
      '3eb0c6f7a0b5ed8c': '9.999999999999997e-7',
      '3eb0c6f7a0b5ed8d': '0.000001',
      '41b3de4355555553': '333333333.3333332',
      '41b3de4355555554': '333333333.33333325',
      '41b3de4355555555': '333333333.3333333',
      '41b3de4355555556': '333333333.3333334',
      '41b3de4355555557': '333333333.33333343',
      becbf647612f3696: '-0.0000033333333333333333',
      '43143ff3c1cb0959': '1424953923781206.2',
    }
    const formOf = (bits: string) => canonicalForm(Buffer.from(bits, 'hex').readDoubleBE())
    t.same(Object.fromEntries(Object.keys(table).map((bits) => [bits, formOf(bits)])), table)
    for (const bits of ['7fffffffffffffff', '7ff0000000000000']) t.throws(() => formOf(bits), bits)
  })

  t.test('treats every name as a plain name', async (t) => {
    t.equal(canonicalForm(JSON.parse('{"9":1,"10":2,"":3}')), '{"":3,"10":2,"9":1}')
    const proto = JSON.parse('{"__proto__":{"a":1},"constructor":2,"toJSON":3}')
    t.equal(canonicalForm(proto), '{"__proto__":{"a":1},"constructor":2,"toJSON":3}')
    t.not(paramsHash(proto), paramsHash({ constructor: 2, toJSON: 3 }))
    t.not(paramsHash({ x: { _meta: 1 } }), paramsHash({ x: {} }), 'a _meta further down is an argument')
    for (const [a, b] of [
      ['{"a":1.0,"b":-0}', '{"b":0,"a":1}'],
      ['{"a":1e2}', '{"a":100}'],
      ['{"a":"\\u00e9\\/"}', '{ "a" : "é/" }'],
    ] as const)
      t.equal(paramsHash(JSON.parse(a)), paramsHash(JSON.parse(b)), `${a} is ${b}`)
    t.not(paramsHash({ a: 'é' }), paramsHash({ a: 'e\u0301' }), 'normal forms are different texts')
    t.not(paramsHash({ a: undefined, b: null }), paramsHash({}))
  })

  t.test('refuses ambiguous values and names their paths', async (t) => {
    const deep = (levels: number) => JSON.parse(`{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`)
    const refused: [string, Record<string, unknown>, string][] = [
      ['an integer beyond 2^53', JSON.parse('{"a":9007199254740993}'), '/a'],
      ['a negative one', JSON.parse('{"a":[1,-9007199254740992]}'), '/a/1'],
      ['a huge one', JSON.parse('{"a":1e30}'), '/a'],
      ['an overflow', JSON.parse('{"a":1e400}'), '/a'],
      ['no number', { a: NaN }, '/a'],
      ['half a pair', JSON.parse('{"a/b":"x\\ud800"}'), '/a~1b'],
      ['the other half', JSON.parse('{"a":{"b":"\\udc00\\ud800"}}'), '/a/b'],
      ['half a pair in a name', JSON.parse('{"\\ud83d":1}'), ''],
      ['too deep', deep(65), `/a${'/0'.repeat(63)}`],
      ['beyond all stacks', deep(200_000), `/a${'/0'.repeat(63)}`],
    ]
    for (const [why, args, path] of refused) {
      const error = caught(() => paramsHash(args))
      partial(t, error, { code: 'invalid_argument', details: { problems: [{ path, message: String }] } }, why)
      t.ok(error.message.length <= 1000)
    }
    const many = caught(() => paramsHash({ list: Array<number>(1000).fill(NaN) }))
    t.equal((many.details.problems as unknown[]).length, 50)
    for (const good of [deep(63), { a: 2 ** 53 - 1, b: 0.1, c: 5e-324, d: '😀' }])
      t.match(paramsHash(good), /^[0-9a-f]{64}$/)
  })

  t.test('holds for any JSON', async (t) => {
    const json = fc
      .jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 4 })
      .map((value) => JSON.parse(JSON.stringify(value)))
    const args = fc.dictionary(fc.string({ unit: ANY_CHARACTER }), json, { noNullPrototype: true })
    const isHashable = (value: Record<string, unknown>) => {
      try {
        return paramsHash(value) !== ''
      } catch {
        return false
      }
    }
    const runs = { numRuns: runsOf(300) }
    fc.assert(
      fc.property(args.filter(isHashable), (value) => {
        const form = canonicalForm(value)
        assert.equal(form, writeCanonically(value))
        assert.equal(paramsHash(value), sha256(form))
        assert.deepEqual(JSON.parse(form), value)
        assert.equal(paramsHash(shuffled(value)), paramsHash(value), 'the order of names does not count')
        assert.equal(paramsHash(JSON.parse(JSON.stringify(value, null, 2))), paramsHash(value))
        assert.notEqual(paramsHash({ ...value, 'added by the test': 1 }), paramsHash(value))
      }),
      runs,
    )
    fc.assert(
      fc.property(args.filter(isHashable), args.filter(isHashable), (a, b) => {
        assert.equal(paramsHash(a) === paramsHash(b), writeCanonically(a) === writeCanonically(b))
      }),
      runs,
    )
    t.pass('no counterexample was found')
  })
})

t.test('a token', async (t) => {
  const clock = { now: NOW }
  const state = memoryState(() => clock.now)
  const confirmations = confirmationsOf(state, clock, { hmacKey: KEY })
  const { token, jti, expiresIn } = await confirmations.mint(CALL)
  const [header = '', payload = '', signature = ''] = token.split('.')
  const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  const signedWith = (key: Uint8Array, claims: object, head: object = decode(header)) => {
    const text = [head, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  }
  const signing = Buffer.from(hkdfSync('sha256', KEY, '', 'svc-mcp confirm token', 32))

  t.test('contains only what it is for', async (t) => {
    t.same(decode(payload), {
      v: 1,
      jti,
      iss: 'https://id',
      sub: 'ann',
      aud: 'https://mcp.example.test',
      tool: 'provision-policy',
      params_hash: HASH,
      iat: NOW / 1000,
      exp: NOW / 1000 + 120,
    })
    t.same(Object.keys(decode(header)).sort(), ['alg', 'kid', 'typ'])
    partial(t, decode(header), { alg: 'HS256', typ: 'confirm+jwt', kid: /^[0-9a-f]{16}$/ })
    t.match(jti, /^[0-9a-f]{32}$/)
    t.equal(expiresIn, 120)
    const others = await Promise.all(Array.from({ length: 1000 }, () => confirmations.mint(CALL)))
    // 128 random bits: no half of them repeats.
    for (const half of [(id: string) => id.slice(0, 16), (id: string) => id.slice(16)])
      t.equal(new Set(others.map((one) => half(one.jti))).size, 1000)
    t.equal(signedWith(signing, decode(payload)), token, 'rebuilt by hand')
  })

  t.test('decodes to what was encoded', async (t) => {
    t.same(confirmations.read(token, CALL), { state: 'signed', token: { jti, expiresAt: NOW + 120_000 } })
    for (const nothing of [undefined, null]) t.same(confirmations.read(nothing, CALL), { state: 'missing' })
    const others: Partial<ConfirmedCall>[] = [
      { tool: 'ringfence-batch' },
      { paramsHash: 'b'.repeat(64) },
      { owner: { iss: 'https://id', sub: 'bob' } },
      { owner: { iss: 'https://other', sub: 'ann' } },
      { owner: { iss: 'https://idann', sub: '' } },
    ]
    for (const other of others) t.same(confirmations.read(token, { ...CALL, ...other }), { state: 'mismatch', jti })
    const elsewhere = confirmationsOf(state, clock, { hmacKey: KEY }, 'https://other.example.test')
    t.same(elsewhere.read(token, CALL), { state: 'mismatch', jti }, 'for another server with the same key')
  })

  t.test('is refused with any character changed', async (t) => {
    const replacements = ['A', '-', '_', '=', '+', '/', '.', ' ', '\n', '\0', 'é']
    const forged = [...token].flatMap((character, at) =>
      replacements
        .filter((replacement) => replacement !== character)
        .map((replacement) => token.slice(0, at) + replacement + token.slice(at + 1)),
    )
    t.ok(forged.length > 3000)
    const isAccepted = (text: string) => confirmations.read(text, CALL).state !== 'malformed'
    t.same(forged.filter(isAccepted), [])
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const respelled = [...alphabet].filter((last) => last !== token.at(-1)).map((last) => token.slice(0, -1) + last)
    t.same(respelled.filter(isAccepted), [], 'nor with another last character, whose spare bits mean nothing')
  })

  t.test('is refused if it is not exactly one', async (t) => {
    const claims = decode(payload)
    const none = Buffer.from('{"alg":"none","typ":"confirm+jwt"}').toString('base64url')
    const pad = (text: string) => text.padEnd(Math.ceil(text.length / 4) * 4, '=')
    const cases: Record<string, unknown> = {
      'an empty text': '',
      'a number': 5,
      'an object': { token },
      'a list': [token],
      'a list of one, which is the token as a text': Object.assign([token], {}),
      'a String object': Object(token),
      'a buffer': Buffer.from(token),
      'a megabyte': 'x'.repeat(1 << 20),
      'a megabyte of dots': '.'.repeat(1 << 20),
      'a token and a megabyte': token + 'A'.repeat(1 << 20),
      'no signature': `${header}.${payload}`,
      'an empty signature': `${header}.${payload}.`,
      'four parts': `${token}.${signature}`,
      'five parts': `${header}.${payload}..${signature}.`,
      'blanks around it': ` ${token} `,
      'a line end after it': `${token}\n`,
      'a Bearer before it': `Bearer ${token}`,
      padding: `${pad(header)}.${pad(payload)}.${pad(signature)}`,
      'the other alphabet': `${header}.${payload}.${Buffer.from(signature, 'base64url').toString('base64')}`,
      'half the signature': `${header}.${payload}.${Buffer.from(signature, 'base64url').subarray(0, 16).toString('base64url')}`,
      'no algorithm': `${none}.${payload}.`,
      'no algorithm with a signature': `${none}.${payload}.${signature}`,
      'the operator key itself': signedWith(KEY, claims),
      'another key': signedWith(randomBytes(32), claims),
      'an empty key': signedWith(new Uint8Array(), claims),
      'another type': signedWith(signing, claims, { ...decode(header), typ: 'JWT' }),
      'an access token type': signedWith(signing, claims, { ...decode(header), typ: 'at+jwt' }),
      'no type': signedWith(signing, claims, { alg: 'HS256', kid: decode(header).kid }),
      'another algorithm': signedWith(signing, claims, { ...decode(header), alg: 'HS384' }),
      'an unknown key id': signedWith(signing, claims, { ...decode(header), kid: '0'.repeat(16) }),
      'a key id that is a property': signedWith(signing, claims, { ...decode(header), kid: '__proto__' }),
      'no key id': signedWith(signing, claims, { alg: 'HS256', typ: 'confirm+jwt' }),
      'an extension that must be understood': signedWith(signing, claims, {
        ...decode(header),
        crit: ['b64'],
        b64: false,
      }),
      'another version': signedWith(signing, { ...claims, v: 2 }),
      'no version': signedWith(signing, { ...claims, v: undefined }),
      'no expiry': signedWith(signing, { ...claims, exp: undefined }),
      'an expiry in words': signedWith(signing, { ...claims, exp: String(claims.exp) }),
      'an endless expiry': signedWith(signing, { ...claims, exp: Infinity }),
      'a list of subjects': signedWith(signing, { ...claims, sub: ['ann'] }),
      'a list of audiences': signedWith(signing, { ...claims, aud: [claims.aud] }),
      'a hash in capitals': signedWith(signing, { ...claims, params_hash: HASH.toUpperCase() }),
      'a claim too many': signedWith(signing, { ...claims, admin: true }),
      'a set that is none': signedWith(signing, { ...claims, set: null }),
      'a list of claims': signedWith(signing, [claims]),
      'a token of many kilobytes': signedWith(signing, { ...claims, set: 'x'.repeat(9000) }),
    }
    for (const [what, value] of Object.entries(cases))
      t.same(confirmations.read(value, CALL), { state: 'malformed' }, what)
  })

  t.test('stays valid across a key change, while new ones use the new key at once', async (t) => {
    const next = Buffer.alloc(32, 9)
    const rotated = confirmationsOf(state, clock, { hmacKey: next, previousHmacKey: KEY })
    t.equal(rotated.read(token, CALL).state, 'signed')
    const fresh = await rotated.mint(CALL)
    t.not(decode(fresh.token.split('.')[0] ?? '').kid, decode(header).kid)
    t.equal(rotated.read(fresh.token, CALL).state, 'signed')
    t.equal(confirmations.read(fresh.token, CALL).state, 'malformed', 'a server that does not know it yet')
    t.equal(confirmationsOf(state, clock, { hmacKey: next }).read(token, CALL).state, 'malformed', 'once it is retired')
    const crossed = signedWith(Buffer.from(hkdfSync('sha256', next, '', 'svc-mcp confirm token', 32)), decode(payload))
    t.equal(rotated.read(crossed, CALL).state, 'malformed', 'each key under its own id only')
  })

  t.test('is spent once', async (t) => {
    const minted = { jti: 'f'.repeat(32), expiresAt: clock.now + 1000, boundTo: 'shown' }
    const spend = () => confirmations.spend(minted, async () => 'shown')
    t.same((await Promise.all(Array.from({ length: 100 }, spend))).toSorted(), [
      ...Array<string>(99).fill('replayed'),
      'spent',
    ])
    t.equal(await spend(), 'replayed')
  })

  t.test('is spent once by calls that overlap, whatever becomes of its record', async (t) => {
    const minted = { jti: 'd'.repeat(32), expiresAt: clock.now + 1000, boundTo: 'shown' }
    // Somebody deletes the record of each claim before the next one.
    const forgetful = { claim: async () => true, isUsed: async () => false }
    const overlapping = confirmationsOf({ ...state, usedTokens: forgetful }, clock)
    const spend = () => overlapping.spend(minted, async () => 'shown')
    t.same((await Promise.all([spend(), spend()])).toSorted(), ['replayed', 'spent'])
  })

  t.test('is spent by the call that the store knows first, also if that call hears of it last', async (t) => {
    const minted = { jti: 'c'.repeat(32), expiresAt: clock.now + 1000, boundTo: 'shown' }
    const answers: ((isFirst: boolean) => void)[] = []
    const slow = { claim: () => new Promise<boolean>((resolve) => answers.push(resolve)), isUsed: async () => false }
    const overlapping = confirmationsOf({ ...state, usedTokens: slow }, clock)
    const spend = () => overlapping.spend(minted, async () => 'shown')
    const [first, second] = [spend(), spend()]
    await found(() => answers.length === 2, 'both have claimed it')
    answers[1]!(false)
    t.equal(await second, 'replayed')
    answers[0]!(true)
    t.equal(await first, 'spent')
  })

  t.test('is valid until the end of its last second and no longer', async (t) => {
    for (const [after, outcome] of [
      [0, 'spent'],
      [119_000, 'spent'],
      [119_999, 'spent'],
      [120_000, 'expired'],
      [120_001, 'expired'],
      [3_600_000, 'expired'],
    ] as const) {
      clock.now = NOW
      const timed = { ...CALL, paramsHash: 'd'.repeat(64) }
      await confirmations.ask(timed, 'shown')
      const minted = confirmations.read((await confirmations.mint(timed)).token, timed)
      clock.now = NOW + after
      if (minted.state !== 'signed') return t.fail('not signed')
      t.equal(await confirmations.spend(minted.token, async () => 'shown'), outcome, `${after} ms later`)
    }
    clock.now = NOW + 999
    const late = confirmations.read((await confirmations.mint(CALL)).token, CALL)
    partial(t, late, { token: { expiresAt: NOW + 120_000 } }, 'a part of a second does not lengthen it')
    clock.now = NOW
  })

  t.test('is in time when it arrives, however long the check takes', async (t) => {
    const minted = { jti: 'e'.repeat(32), expiresAt: NOW + 1000, boundTo: 'shown' }
    const slowly = async () => {
      clock.now = NOW + 600_000
      return 'shown'
    }
    t.equal(await confirmations.spend(minted, slowly), 'spent')
    const late = { ...minted, jti: '9'.repeat(32) }
    t.equal(await confirmations.spend(late, slowly), 'expired', 'but not later')
    clock.now = NOW
  })

  t.test('is bound to what was shown, and worth nothing where nothing was', async (t) => {
    const asked = { ...CALL, paramsHash: 'c'.repeat(64) }
    partial(t, await confirmations.ask(asked, 'set one'), { expiresAt: NOW + 120_000, challenge: /^[0-9a-f]{64}$/ })
    const bound = await confirmations.mint(asked)
    t.equal(decode(bound.token.split('.')[1] ?? '').set, 'set one')
    const others: ConfirmedCall[] = [
      CALL,
      { ...asked, tool: 'ringfence-batch' },
      { ...asked, owner: { iss: 'https://id', sub: 'bob' } },
      { ...asked, owner: { iss: 'https://ida', sub: 'nn' } },
    ]
    for (const other of others)
      t.notOk('set' in decode((await confirmations.mint(other)).token.split('.')[1] ?? ''), 'nobody else')
    const reading = confirmations.read(bound.token, asked)
    if (reading.state !== 'signed') return t.fail('not signed')
    const spend = (digest: string) => confirmations.spend(reading.token, async () => digest)
    t.equal(await spend('set two'), 'stale')
    t.equal(await spend(''), 'stale')
    t.equal(await spend('set one'), 'spent')
    t.equal(await spend('set two'), 'replayed', 'used comes before stale')
    clock.now = NOW + 500_000
    t.equal(await spend('set one'), 'replayed', 'and before expired')
    clock.now = NOW + 120_000
    t.notOk(
      'set' in decode((await confirmations.mint(asked)).token.split('.')[1] ?? ''),
      'a challenge ends with its time',
    )
    clock.now = NOW

    const unbound = { jti: 'd'.repeat(32), expiresAt: NOW + 1000 }
    t.equal(await confirmations.spend(unbound, () => Promise.reject(new Error('no look is needed'))), 'stale')
  })

  t.test('of concurrent challenges is issued for the one named', async (t) => {
    const twice = { ...CALL, paramsHash: 'e'.repeat(64) }
    const refused = { code: 'confirm_required', details: { reason: 'stale', params_hash: twice.paramsHash } }
    const setOf = ({ token }: { token: string }) => decode(token.split('.')[1] ?? '').set
    const [one, two] = await Promise.all([confirmations.ask(twice, 'one'), confirmations.ask(twice, 'two')])
    await t.rejects(confirmations.mint(twice, one.challenge), refused, 'not the latest')
    await t.rejects(confirmations.mint(twice, two.challenge?.slice(1)), refused)
    t.equal(setOf(await confirmations.mint(twice, two.challenge)), 'two')
    t.equal(setOf(await confirmations.mint(twice)), 'two', 'the latest, where nobody says which')
  })

  t.test('survives a failed check, unless it was used in the meantime', async (t) => {
    const kept = { jti: '1'.repeat(32), expiresAt: NOW + 1000, boundTo: 'then' }
    const lost = new ToolError('pce_unreachable', 'away')
    await t.rejects(
      confirmations.spend(kept, () => Promise.reject(lost)),
      lost,
    )
    const usedMeanwhile = (digest: string | null) => async () => {
      await state.usedTokens.claim(kept.jti, kept.expiresAt)
      if (digest === null) throw lost
      return digest
    }
    t.equal(await confirmations.spend(kept, usedMeanwhile(null)), 'replayed')
    const other = { ...kept, jti: '2'.repeat(32), boundTo: 'then' }
    const claimOther = async () => {
      await state.usedTokens.claim(other.jti, other.expiresAt)
      return 'now'
    }
    t.equal(await confirmations.spend(other, claimOther), 'replayed')
  })

  t.test('that cannot be recorded is not spent', async (t) => {
    const minted = { jti: '3'.repeat(32), expiresAt: NOW + 1000, boundTo: 'shown' }
    const unavailable = { code: 'confirm_unavailable' }
    state.fail = 'claim'
    await t.rejects(
      confirmations.spend(minted, async () => 'shown'),
      unavailable,
    )
    state.fail = 'isUsed'
    const expired = { ...minted, expiresAt: NOW }
    await t.rejects(
      confirmations.spend(expired, async () => 'shown'),
      unavailable,
      'only the store tells a used token from one that is too old',
    )
    state.fail = 'get'
    await t.rejects(confirmations.mint(CALL), unavailable)
    state.fail = 'put'
    await t.rejects(confirmations.ask(CALL, 'x'), unavailable)
    state.fail = null
    t.equal(await confirmations.spend(minted, async () => 'shown'), 'spent')
  })
})

function shuffled<T>(value: T): T {
  if (Array.isArray(value)) return value.map(shuffled) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, shuffled(inner)]),
  ) as T
}

function caught(work: () => unknown): ToolError {
  try {
    work()
  } catch (error) {
    if (error instanceof ToolError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** The encrypted credentials: what binds them, what opens them, and how their key is changed. */
import assert from 'node:assert/strict'
import { createDecipheriv, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { rewrapKeystore } from '../../programs/composition/rewrap-keystore.js'
import type { Owner } from '../../schemas/caller.js'
import type { Keystore, PceCredentials, StoredCredentials } from '../../schemas/credentials.js'
import { StartupError } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { SealedCredentials, State } from '../../schemas/state.js'
import { ANY_CHARACTER } from '../any-character.js'
import { partial } from '../partial.js'
import { bytesOf, credentialsOf, directoryOf } from './support.js'

/** Writes whose nonces are compared: `SVC_MCP_WRITES=100000` for the full loop. */
const WRITES = Number(process.env.SVC_MCP_WRITES ?? 500)
/** Random histories of a keystore. */
const RUNS = Number(process.env.SVC_MCP_RUNS ?? 25)
const KEK = randomBytes(32)
const NEXT = randomBytes(32)
const ALICE = { iss: 'https://idp.example', sub: 'alice' }
const BOB = { iss: 'https://idp.example', sub: 'bob' }

async function open(t: Test, path: string, kek = KEK, previousKek?: Buffer) {
  const file = await openKeystoreState({ path, kek, previousKek }, { now: () => Date.now() })
  t.teardown(() => file.state.close())
  return { ...file, records: file.state.credentials }
}

/** The secret of each owner, in their order; undefined for those who have none. */
async function secretsOf({ find }: Keystore, owners: readonly Owner[]): Promise<(string | undefined)[]> {
  const secrets: (string | undefined)[] = []
  for (const owner of owners) secrets.push((await find(owner))?.open().apiSecret)
  return secrets
}

const newPath = (t: Test) => join(directoryOf(t), 'keystore.db')
const unreadable = { name: 'ToolError', code: 'credentials_unreadable' }
const isUnreadable = ({ open }: StoredCredentials) => {
  try {
    open()
    return false
  } catch (error) {
    return error instanceof ToolError && error.code === 'credentials_unreadable'
  }
}
const unavailable = { name: 'ToolError', code: 'keystore_unavailable' }
const unfinished = (path: string, left: number) => ({
  name: 'StartupError',
  faults: [
    {
      problem:
        `The last change of MCP_KEK is incomplete in the keystore '${path}': ` +
        (left > 0
          ? `${left} of its records need a key that is neither MCP_KEK nor MCP_KEK_PREVIOUS`
          : 'no record needs the old key any more, but a server that still has it may write one'),
      remedy: 'Set both keys of that change, run svc-mcp-http rewrap-keystore, and only then change the key again.',
    },
  ],
})

t.test('stored credentials come back intact, each time under a new version', async (t) => {
  const { keystore, state } = await open(t, newPath(t))
  t.equal(await keystore.find(ALICE), null)
  const { label: _label, ...unlabelled } = credentialsOf('a "secret" with ünïcode 😀')
  const first = await keystore.write(ALICE, unlabelled)
  const second = await keystore.write(BOB, credentialsOf('two'))
  const third = await keystore.write(BOB, { ...credentialsOf('two'), tlsVerify: false })
  t.equal(new Set([first, second, third]).size, 3)
  const found = await keystore.find(ALICE)
  t.equal(found?.version, first)
  t.strictSame(found?.open(), unlabelled)
  t.equal((await keystore.find(BOB))?.version, third)
  t.strictSame((await keystore.find(BOB))?.open(), { ...credentialsOf('two'), tlsVerify: false })
  t.equal(await keystore.remove(BOB), true)
  t.equal(await keystore.remove(BOB), false)
  t.equal(await keystore.find(BOB), null)
  state.close()
})

t.test('the files never contain readable credentials, even after removal', async (t) => {
  const directory = directoryOf(t)
  const { keystore, state } = await open(t, join(directory, 'keystore.db'))
  const credentials = credentialsOf('SECRET-CANARY')
  await keystore.write(ALICE, credentials)
  const expectNothing = () => {
    const bytes = bytesOf(directory)
    t.ok(bytes.includes('alice'), 'whose they are can be seen')
    for (const value of Object.values(credentials)) {
      if (String(value).length < 6) continue
      t.notOk(bytes.includes(String(value)), `no ${value} as text`)
      t.notOk(bytes.includes(Buffer.from(String(value)).toString('base64').slice(0, -2)), 'nor as base64')
    }
    for (const key of [KEK, Buffer.from(KEK.toString('hex')), Buffer.from(KEK.toString('base64'))]) {
      t.notOk(bytes.includes(key), 'nor the key')
    }
  }
  expectNothing()
  const sealed = Buffer.from((await state.credentials.get(ALICE))!.sealed)
  await keystore.write(BOB, credentials)
  await keystore.remove(ALICE)
  state.close()
  t.notOk(readFileSync(join(directory, 'keystore.db')).includes(sealed), 'what is removed is overwritten')
})

t.test('no nonce or wrapped key repeats, even for equal credentials', async (t) => {
  const { keystore, records } = await open(t, newPath(t))
  const seen = { wrappedKey: new Set<string>(), sealed: new Set<string>(), both: new Set<string>() }
  for (let number = 0; number < WRITES; number++) {
    await keystore.write(ALICE, credentialsOf('same'))
    const record = (await records.get(ALICE))!
    for (const part of ['wrappedKey', 'sealed'] as const) {
      seen[part].add(Buffer.from(record[part]).subarray(1, 13).toString('hex'))
      seen.both.add(Buffer.from(record[part]).subarray(13, 29).toString('hex'))
    }
    if (number === 0)
      t.strictSame([record.wrappedKey.length, record.wrappedKey[0], record.sealed[0]], [1 + 12 + 32 + 16, 1, 1])
  }
  t.strictSame(
    Object.values(seen).map(({ size }) => size),
    [WRITES, WRITES, 2 * WRITES],
  )
})

t.test('every registration has its own data key, in the layout of D39', async (t) => {
  const { keystore, records } = await open(t, newPath(t))
  /** Read by other means than it was written: layout, nonce, ciphertext, tag; bound to parts with their lengths. */
  const decrypt = (key: Uint8Array, blob: Uint8Array, ...parts: string[]) => {
    const lengths = parts.map((part) => [0, 0, 0, Buffer.byteLength(part)])
    const boundTo = Buffer.concat([
      Buffer.of(1),
      ...parts.flatMap((part, at) => [Buffer.from(lengths[at]!), Buffer.from(part)]),
    ])
    const decipher = createDecipheriv('aes-256-gcm', key, blob.subarray(1, 13), { authTagLength: 16 })
    decipher.setAAD(boundTo).setAuthTag(blob.subarray(-16))
    return Buffer.concat([decipher.update(blob.subarray(13, -16)), decipher.final()])
  }
  const keys = new Set<string>()
  for (let number = 0; number < 20; number++) {
    await keystore.write(ALICE, credentialsOf('same'))
    const { version, kekId, wrappedKey, sealed } = (await records.get(ALICE))!
    const dataKey = decrypt(KEK, wrappedKey, 'data key', ALICE.iss, ALICE.sub, version, kekId)
    keys.add(dataKey.toString('hex'))
    const text = decrypt(dataKey, sealed, 'credentials', ALICE.iss, ALICE.sub, version).toString()
    t.strictSame(JSON.parse(text), credentialsOf('same'))
  }
  t.equal(keys.size, 20)
})

t.test('changing any byte of a record makes it unreadable, for its owner only', async (t) => {
  const { keystore, records } = await open(t, newPath(t))
  await keystore.write(ALICE, credentialsOf('alice'))
  await keystore.write(BOB, credentialsOf('bob'))
  const whole = (await records.get(ALICE))!
  const changes: [string, SealedCredentials][] = []
  for (const part of ['wrappedKey', 'sealed'] as const) {
    for (let at = 0; at < whole[part].length; at++) {
      const changed = Uint8Array.from(whole[part])
      changed[at]! ^= 1 << (at % 8)
      changes.push([`byte ${at} of ${part}`, { ...whole, [part]: changed }])
    }
    for (const length of [0, 1, 12, 13, 28, 29, whole[part].length - 12, whole[part].length - 1]) {
      changes.push([`${part} cut to ${length}`, { ...whole, [part]: whole[part].subarray(0, length) }])
    }
    changes.push([`${part} made longer`, { ...whole, [part]: Uint8Array.from([...whole[part], 0]) }])
  }
  const flip = (text: string) => text.slice(0, -1) + (text.endsWith('0') ? '1' : '0')
  changes.push(
    ['version', { ...whole, version: flip(whole.version) }],
    ['kekId', { ...whole, kekId: flip(whole.kekId) }],
  )
  const survivors: string[] = []
  for (const [what, record] of changes) {
    await records.put(ALICE, record)
    if (!isUnreadable((await keystore.find(ALICE))!)) survivors.push(what)
  }
  t.same(survivors, [])
  try {
    ;(await keystore.find(ALICE))!.open()
  } catch (error) {
    const told = JSON.stringify([error, (error as Error).message, String((error as Error).cause)])
    t.notMatch(told, /alice|canary/)
  }
  t.equal((await keystore.find(BOB))?.open().apiSecret, 'bob')
  await keystore.write(ALICE, credentialsOf('again'))
  t.equal((await keystore.find(ALICE))?.open().apiSecret, 'again', 'registering again mends it')
  await records.put(ALICE, { ...whole, kekId: 'nobody' })
  t.equal(await keystore.remove(ALICE), true, 'and so does removing')
})

t.test('a record opens only for its own owner and registration', async (t) => {
  const { keystore, records } = await open(t, newPath(t))
  /** Pairs that a plain joining of their parts would take for one another. */
  const pairs: [Owner, Owner][] = [
    [ALICE, BOB],
    [
      { iss: 'a', sub: 'b' },
      { iss: 'b', sub: 'a' },
    ],
    [
      { iss: 'a|b', sub: 'c' },
      { iss: 'a', sub: 'b|c' },
    ],
    [
      { iss: 'ab', sub: 'c' },
      { iss: 'a', sub: 'bc' },
    ],
    [
      { iss: 'a', sub: '' },
      { iss: '', sub: 'a' },
    ],
    [
      { iss: 'x', sub: 'é' },
      { iss: 'x', sub: 'e\u0301' },
    ],
    [
      { iss: 'x', sub: '__proto__' },
      { iss: 'x', sub: 'constructor' },
    ],
  ]
  for (const [one, other] of pairs) {
    await keystore.write(one, credentialsOf('one'))
    await keystore.write(other, credentialsOf('other'))
    const [mine, theirs] = [(await records.get(one))!, (await records.get(other))!]
    await records.put(one, theirs)
    await records.put(other, mine)
    const survivors: string[] = []
    for (const owner of [one, other])
      if (!isUnreadable((await keystore.find(owner))!)) survivors.push(`the record of another as ${owner.sub}`)
    const mixed = [
      { ...mine, wrappedKey: theirs.wrappedKey },
      { ...mine, sealed: theirs.sealed },
      { ...mine, version: theirs.version },
      { ...mine, wrappedKey: mine.sealed, sealed: mine.wrappedKey },
    ]
    for (const [at, record] of mixed.entries()) {
      await records.put(one, record)
      if (!isUnreadable((await keystore.find(one))!)) survivors.push(`mixture ${at}`)
    }
    t.same(survivors, [], `${one.iss} ${one.sub} and ${other.iss} ${other.sub}`)
    await records.put(one, mine)
    t.equal((await keystore.find(one))?.open().apiSecret, 'one')
  }
})

t.test('two registrations of one owner do not mix', async (t) => {
  const { keystore, records } = await open(t, newPath(t))
  await keystore.write(ALICE, credentialsOf('old'))
  const old = (await records.get(ALICE))!
  await keystore.write(ALICE, credentialsOf('new'))
  const now = (await records.get(ALICE))!
  for (const record of [
    { ...now, sealed: old.sealed },
    { ...now, sealed: old.sealed, wrappedKey: old.wrappedKey },
  ]) {
    await records.put(ALICE, record)
    const found = (await keystore.find(ALICE))!
    t.throws(() => found.open(), unreadable)
  }
})

t.test('an unknown key stops the start, and nothing is changed', async (t) => {
  const says = (path: string) => ({
    name: 'StartupError',
    faults: [{ problem: `MCP_KEK does not match the keystore '${path}'` }],
  })
  for (const users of [[], [ALICE]]) {
    const path = newPath(t)
    const first = await open(t, path)
    for (const user of users) await first.keystore.write(user, credentialsOf('kept'))
    const before = await first.records.page(null, 10)
    await t.rejects(open(t, path, NEXT), says(path))
    await t.rejects(open(t, path, NEXT, randomBytes(32)), {
      name: 'StartupError',
      faults: [{ problem: `MCP_KEK does not match the keystore '${path}', and neither does MCP_KEK_PREVIOUS` }],
    })
    await t.rejects(rewrapKeystore({ keystore: { path, kek: NEXT } }), says(path))
    t.strictSame(await first.records.page(null, 10), before)
    first.state.close()
    const again = await open(t, path)
    for (const user of users) t.equal((await again.keystore.find(user))?.open().apiSecret, 'kept')
  }
})

t.test('records without a check value belong to nobody', async (t) => {
  const donor = await open(t, newPath(t))
  await donor.keystore.write(ALICE, credentialsOf('a'))
  const path = newPath(t)
  const { openState } = await import('../../storage/state/open-state.js')
  const state = openState(path, { now: () => Date.now(), variable: 'MCP_KEYSTORE_PATH' })
  await state.credentials.put(ALICE, (await donor.records.get(ALICE))!)
  await t.rejects(open(t, path), { name: 'StartupError' })
  t.equal(await state.notes.get('kek'), null)
  state.close()
})

t.test('during a key change both keys open records, and rewrapping moves all to the new one', async (t) => {
  const path = newPath(t)
  const old = await open(t, path)
  const owners = Array.from({ length: 450 }, (_, number) => ({ iss: 'https://idp.example', sub: `user-${number}` }))
  for (const owner of owners) await old.keystore.write(owner, credentialsOf(owner.sub))
  const sealedBefore = (await old.records.page(null, 1000)).map(({ record }) => [record.version, record.sealed])
  old.state.close()

  const both = await open(t, path, NEXT, KEK)
  t.same(
    await secretsOf(both.keystore, owners),
    owners.map(({ sub }) => sub),
  )
  await both.keystore.write(owners[7]!, credentialsOf('user-7'))
  const other = (await both.records.get(owners[3]!))!
  await both.records.put(owners[3]!, { ...other, wrappedKey: other.wrappedKey.subarray(1) })

  const report = await rewrapKeystore({ keystore: { path, kek: NEXT, previousKek: KEK } })
  t.strictSame(report, {
    ok: true,
    lines: [
      { level: 'info', text: '448 rewrapped with MCP_KEK, 1 already were, 1 cannot be opened with either key' },
      { level: 'warn', text: 'The owners of those must register their PCE credentials again' },
      { level: 'info', text: 'MCP_KEK_PREVIOUS is no longer needed: restart the servers without it' },
    ],
  })
  t.strictSame(await both.keystore.rewrap(), { rewrapped: 0, already: 449, unreadable: 1 })
  const sealedAfter = (await both.records.page(null, 1000)).map(({ record }) => [record.version, record.sealed])
  const differ = sealedAfter.filter((_, at) => JSON.stringify(sealedAfter[at]) !== JSON.stringify(sealedBefore[at]))
  t.equal(differ.length, 1, 'sealed records stay unchanged, except the re-registered one')

  for (const [kek, previousKek] of [[NEXT], [NEXT, KEK], [KEK, NEXT]] as const) {
    const { keystore, state } = await open(t, path, kek, previousKek)
    const whole = owners.filter((owner) => owner !== owners[3])
    t.same(
      await secretsOf(keystore, whole),
      whole.map(({ sub }) => sub),
    )
    state.close()
  }
  await t.rejects(open(t, path, KEK), { name: 'StartupError' }, 'the old key alone is no longer the keystore’s')
  await t.rejects(rewrapKeystore({ keystore: { path: `${path}.not`, kek: KEK } }), {
    name: 'StartupError',
    faults: [{ problem: `MCP_KEYSTORE_PATH '${path}.not' does not exist: there is nothing to rewrap` }],
  })
})

t.test('a server left with the old key writes nothing that would be lost', async (t) => {
  const path = newPath(t)
  const stale = await open(t, path)
  await stale.keystore.write(ALICE, credentialsOf('alice'))
  await stale.keystore.write(BOB, credentialsOf('bob'))
  const bob = await stale.keystore.find(BOB)
  const fresh = await open(t, path, NEXT, KEK)
  await fresh.keystore.write(ALICE, credentialsOf('newer'))
  await t.rejects(stale.keystore.find(ALICE), unavailable, 'what it has no key for is no reason to register again')
  await stale.keystore.write(BOB, credentialsOf('rotating'))
  t.equal((await fresh.keystore.find(BOB))?.open().apiSecret, 'rotating', 'while the key is being changed it may write')
  t.strictSame(await fresh.keystore.rewrap(), { rewrapped: 1, already: 1, unreadable: 0 })
  await t.rejects(stale.keystore.write(BOB, credentialsOf('lost')), unavailable)
  await t.rejects(stale.keystore.find(BOB), unavailable)
  t.equal(bob?.open().apiSecret, 'bob', 'what it has read it can open')
  t.equal((await fresh.keystore.find(BOB))?.open().apiSecret, 'rotating')
})

t.test('a server left over from a reverted key change writes nothing that would be lost', async (t) => {
  for (const isRewrappedBefore of [true, false]) {
    const path = newPath(t)
    const first = await open(t, path)
    await first.keystore.write(ALICE, credentialsOf('alice'))
    const left = await open(t, path, NEXT, KEK)
    await left.keystore.write(BOB, credentialsOf('bob'))
    if (isRewrappedBefore) await left.keystore.rewrap()
    const back = await open(t, path, KEK, NEXT)
    await left.keystore.write(BOB, credentialsOf('still open to both'))
    t.strictSame(await back.keystore.rewrap(), {
      rewrapped: isRewrappedBefore ? 2 : 1,
      already: isRewrappedBefore ? 0 : 1,
      unreadable: 0,
    })
    await t.rejects(left.keystore.write(BOB, credentialsOf('lost')), unavailable)
    t.equal((await left.keystore.find(ALICE))?.open().apiSecret, 'alice', 'it reads on')
    const alone = await open(t, path)
    t.equal((await alone.keystore.find(BOB))?.open().apiSecret, 'still open to both')
    await alone.keystore.write(BOB, credentialsOf('after'))
    const [kek, next] = await notesOf(alone.state)
    t.equal(next, kek, 'no other key is to follow')

    const anew = await open(t, path, NEXT, KEK)
    for (const server of [left, anew, alone]) await server.keystore.write(BOB, credentialsOf('begun anew'))
    await anew.keystore.rewrap()
    await t.rejects(alone.keystore.write(BOB, credentialsOf('lost')), unavailable)
    t.equal((await (await open(t, path, NEXT)).keystore.find(BOB))?.open().apiSecret, 'begun anew')
  }
})

t.test(
  'interrupted rewrapping leaves every record readable with both keys, and the new key alone is refused',
  async (t) => {
    const path = newPath(t)
    const old = await open(t, path)
    const owners = Array.from({ length: 300 }, (_, number) => ({ iss: 'https://idp.example', sub: `user-${number}` }))
    for (const owner of owners) await old.keystore.write(owner, credentialsOf(owner.sub))
    const { kekId } = (await old.records.get(ALICE)) ?? (await old.records.get(owners[0]!))!
    const broken = await open(t, path, NEXT, KEK)
    const isBegun = async () => (await old.records.page(null, 1000)).some(({ record }) => record.kekId !== kekId)
    const running = broken.keystore.rewrap()
    while (!(await isBegun())) await new Promise(setImmediate)
    broken.state.close()
    await t.rejects(running, unavailable)
    const left = (await old.records.page(null, 1000)).filter(({ record }) => record.kekId === kekId).length
    t.ok(left > 0 && left < owners.length, `${left} are left`)

    await t.rejects(open(t, path, NEXT), { name: 'StartupError' })
    for (const [kek, previous] of [
      [NEXT, KEK],
      [KEK, NEXT],
    ] as const) {
      const { keystore, state } = await open(t, path, kek, previous)
      t.same(
        await secretsOf(keystore, owners),
        owners.map(({ sub }) => sub),
      )
      state.close()
    }
    await t.rejects(open(t, path), unfinished(path, owners.length - left), 'nor is the old one')
    const opened: [string, string | undefined][] = []
    for (const owner of owners) {
      const found = await old.keystore.find(owner).catch((error: ToolError) => error.code)
      if (found !== 'keystore_unavailable')
        opened.push([owner.sub, typeof found === 'string' ? found : found?.open().apiSecret])
    }
    t.equal(opened.length, left, 'a server that still has the old key alone opens what is left to it')
    t.same(
      opened.filter(([sub, secret]) => sub !== secret),
      [],
    )
    const report = await rewrapKeystore({ keystore: { path, kek: NEXT, previousKek: KEK } })
    t.equal(
      report.lines[0]!.text,
      `${left} rewrapped with MCP_KEK, ${owners.length - left} already were, 0 cannot be opened with either key`,
    )
    const alone = await open(t, path, NEXT)
    t.same(
      await secretsOf(alone.keystore, owners),
      owners.map(({ sub }) => sub),
    )
  },
)

t.test('a started key change must be finished before the next', async (t) => {
  const third = randomBytes(32)
  const keys = { one: KEK, two: NEXT, three: third }
  type Name = keyof typeof keys
  /** Which records are left under which key when the next start comes. */
  for (const [left, refusals] of [
    [
      { one: 3, two: 2 },
      { 'one three': 2, 'three one': 2, 'two three': 3, 'three two': 3, one: 2, two: 3 },
    ],
    [
      { one: 3, two: 0 },
      { 'two three': 3, 'three two': 3, two: 3 },
    ],
    [
      { one: 0, two: 2 },
      { 'one three': 2, 'three one': 2, 'two three': 0, 'three two': 0, one: 2, two: 0 },
    ],
  ] as [Record<'one' | 'two', number>, Record<string, number>][])
    for (const [pair, count] of Object.entries(refusals)) {
      const path = newPath(t)
      const old = await open(t, path)
      const begun = await open(t, path, NEXT, KEK)
      const owners = (file: typeof old, prefix: string, number: number) =>
        Promise.all(
          Array.from({ length: number }, async (_, at) => {
            const owner = { iss: 'https://idp.example', sub: `${prefix}-${at}` }
            await file.keystore.write(owner, credentialsOf(owner.sub))
            return owner
          }),
        )
      const all = [...(await owners(old, 'one', left.one)), ...(await owners(begun, 'two', left.two))]
      const rows = async () => [await old.records.page(null, 100), await notesOf(old.state)]
      const before = await rows()
      const [kek, previousKek] = pair.split(' ').map((name) => keys[name as Name])
      const what = `${pair} while ${left.one} are left under one and ${left.two} under two`
      await t.rejects(open(t, path, kek, previousKek), unfinished(path, count), what)
      await t.rejects(rewrapKeystore({ keystore: { path, kek: kek!, previousKek } }), unfinished(path, count))
      t.strictSame(await rows(), before, 'nothing is changed')

      const again = await open(t, path, NEXT, KEK)
      for (const owner of all) t.equal((await again.keystore.find(owner))?.open().apiSecret, owner.sub)
      t.strictSame(await again.keystore.rewrap(), { rewrapped: left.one, already: left.two, unreadable: 0 })
      const last = await open(t, path, third, NEXT)
      t.strictSame(await last.keystore.rewrap(), { rewrapped: all.length, already: 0, unreadable: 0 })
      const alone = await open(t, path, third)
      for (const owner of all) t.equal((await alone.keystore.find(owner))?.open().apiSecret, owner.sub)
    }
})

/** All that the file notes about keys. */
const notesOf = (state: State) => Promise.all(['kek', 'kek_next'].map((name) => state.notes.get(name)))

t.test('a key change under which nothing was written can be abandoned for another', async (t) => {
  const path = newPath(t)
  const old = await open(t, path)
  await old.keystore.write(ALICE, credentialsOf('alice'))
  const abandoned = await open(t, path, NEXT, KEK)
  const third = randomBytes(32)
  const fresh = await open(t, path, third, KEK)
  await t.rejects(abandoned.keystore.write(BOB, credentialsOf('lost')), unavailable, 'its key is no longer to be')
  t.equal((await abandoned.keystore.find(ALICE))?.open().apiSecret, 'alice')
  await old.keystore.write(BOB, credentialsOf('bob'))
  t.strictSame(await fresh.keystore.rewrap(), { rewrapped: 2, already: 0, unreadable: 0 })
  t.equal((await (await open(t, path, third)).keystore.find(BOB))?.open().apiSecret, 'bob')
})

t.test('a damaged record does not prevent a key change from finishing', async (t) => {
  const path = newPath(t)
  const begun = await open(t, path, KEK)
  const next = await open(t, path, NEXT, KEK)
  await next.keystore.write(ALICE, credentialsOf('alice'))
  const record = (await next.records.get(ALICE))!
  await next.records.put(ALICE, { ...record, wrappedKey: record.wrappedKey.subarray(1) })
  await t.rejects(open(t, path), unfinished(path, 1))
  const back = await open(t, path, KEK, NEXT)
  partial(t, await back.keystore.rewrap(), { unreadable: 1 })
  const alone = await open(t, path)
  await t.rejects(
    alone.keystore.find(ALICE).then((found) => found!.open()),
    unreadable,
  )
  begun.state.close()
})

t.test('a registration or removal during rewrapping wins', async (t) => {
  const path = newPath(t)
  const old = await open(t, path)
  const owners = Array.from({ length: 190 }, (_, number) => ({
    iss: 'https://idp.example',
    sub: `user-${1000 + number}`,
  }))
  for (const owner of owners) await old.keystore.write(owner, credentialsOf('before'))
  const { kekId } = (await old.records.get(owners[0]!))!
  const fresh = await open(t, path, NEXT, KEK)
  const isDone = async (number: number) => (await old.records.get(owners[number]!))?.kekId !== kekId
  const running = fresh.keystore.rewrap()
  while (!(await isDone(9))) await new Promise(setImmediate)
  t.notOk(await isDone(100), 'it is under way')
  // Those before have been rewrapped already, those after have been read and not yet written; each by servers with either key.
  for (const number of [0, 100]) await old.keystore.write(owners[number]!, credentialsOf('during'))
  for (const number of [1, 101]) await fresh.keystore.write(owners[number]!, credentialsOf('during'))
  for (const number of [2, 102]) await old.keystore.remove(owners[number]!)
  partial(t, await running, { unreadable: 0 })
  const alone = await open(t, path, NEXT)
  const expected = owners.map((_, number) => {
    if ([2, 102].includes(number)) return undefined
    return [0, 1, 100, 101].includes(number) ? 'during' : 'before'
  })
  t.same(await secretsOf(alone.keystore, owners), expected)
})

t.test('a failing store fails the call, with the cause in the log', async (t) => {
  const { keystore, state } = await open(t, newPath(t))
  await keystore.write(ALICE, credentialsOf('SECRET-CANARY'))
  const found = await keystore.find(ALICE)
  state.close()
  for (const call of [
    () => keystore.find(ALICE),
    () => keystore.write(ALICE, credentialsOf('SECRET-CANARY')),
    () => keystore.remove(ALICE),
    () => keystore.rewrap(),
  ]) {
    const error: ToolError = await call().then(
      () => t.fail('it was served') as never,
      (error: ToolError) => error,
    )
    partial(t, error, { ...unavailable, cause: { message: /is closed$/ } })
    t.notMatch(`${error.message} ${error.hint} ${JSON.stringify(error.details)} ${String(error.cause)}`, /CANARY/)
  }
  t.equal(found?.open().apiSecret, 'SECRET-CANARY', 'what was found before can still be opened')
})

t.test('a file that is not a keystore stops the start and names its variable', async (t) => {
  const path = newPath(t)
  writeFileSync(path, 'x'.repeat(10_000))
  const error = await open(t, path).catch((error: Error) => error)
  t.type(error, StartupError)
  partial(t, error, { faults: [{ problem: `MCP_KEYSTORE_PATH '${path}' is not an SQLite file` }] })
})

t.test('the keystore behaves like a map, across restarts and key changes', async (t) => {
  const owner = fc.record({
    iss: fc.constantFrom('a', 'a|b', 'https://idp.example/'),
    sub: fc.constantFrom('c', 'b|c', '__proto__', '😀'),
  })
  const credentials: fc.Arbitrary<PceCredentials> = fc.record(
    {
      host: fc.string({ unit: 'grapheme' }),
      port: fc.integer({ min: 1, max: 65_535 }),
      orgId: fc.nat(),
      apiKey: fc.string(),
      apiSecret: fc.string({ unit: ANY_CHARACTER }),
      tlsVerify: fc.boolean(),
      label: fc.string(),
    },
    { noNullPrototype: true, requiredKeys: ['host', 'port', 'orgId', 'apiKey', 'apiSecret', 'tlsVerify'] },
  )
  type Step =
    | { do: 'write'; owner: Owner; credentials: PceCredentials }
    | { do: 'remove' | 'find'; owner: Owner }
    | { do: 'restart' | 'turn' | 'rewrap' }
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), owner, credentials }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('remove' as const, 'find' as const), owner }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('restart' as const, 'turn' as const, 'rewrap' as const) }),
    },
  )
  const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const path = newPath(t)
      const model = new Map<string, PceCredentials>()
      const versions = new Set<string>()
      let [kek, previousKek] = [KEK, NEXT]
      let file = await open(t, path, kek, previousKek)
      for (const step of steps) {
        if (step.do === 'write') {
          const version = await file.keystore.write(step.owner, step.credentials)
          assert.ok(!versions.has(version))
          versions.add(version)
          model.set(keyOf(step.owner), step.credentials)
        } else if (step.do === 'remove') {
          assert.equal(await file.keystore.remove(step.owner), model.delete(keyOf(step.owner)))
        } else if (step.do === 'find') {
          const found = await file.keystore.find(step.owner)
          assert.deepEqual(found?.open(), model.get(keyOf(step.owner)))
        } else if (step.do === 'rewrap') {
          const { rewrapped, already, unreadable } = await file.keystore.rewrap()
          assert.deepEqual([rewrapped + already, unreadable], [model.size, 0])
        } else {
          if (step.do === 'turn') [kek, previousKek] = [previousKek, kek]
          file.state.close()
          file = await open(t, path, kek, previousKek)
        }
      }
      await file.keystore.rewrap()
      file.state.close()
      const alone = await open(t, path, kek)
      for (const iss of ['a', 'a|b', 'https://idp.example/']) {
        for (const sub of ['c', 'b|c', '__proto__', '😀']) {
          assert.deepEqual((await alone.keystore.find({ iss, sub }))?.open(), model.get(keyOf({ iss, sub })))
        }
      }
      alone.state.close()
    }),
    { numRuns: RUNS },
  )
  t.pass('no counterexample was found')
})

/** What holds when several processes share the file, when they are killed, and when the disk is full. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { StoredCredentials } from '../../schemas/credentials.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import type { ToolError } from '../../schemas/errors.js'
import { partial } from '../partial.js'
import { bytesOf, directoryOf, startWorker, type Said, type Worker } from './support.js'

/** The full loop is `SVC_MCP_KILLS=300`; a kill takes one to three seconds, most of them for the start of three processes. */
const KILLS = Number(process.env.SVC_MCP_KILLS ?? 4)
const now = () => Date.now()
const newKey = () => randomBytes(32)
const text = (key: Buffer) => key.toString('base64')
const ownerOf = (number: number) => ({ iss: 'https://idp.example', sub: `user-${number}` })

t.test(`after ${KILLS} kill -9 nothing acknowledged is lost or torn`, async (t) => {
  const directory = directoryOf(t)
  const path = join(directory, 'keystore.db')
  const [kek, previousKek] = [newKey(), newKey()]
  const keys = { kek, previousKek }
  ;(await openKeystoreState({ path, kek }, { now })).state.close()
  const owners = 5
  /** By owner: the acknowledged secret, or nothing, and those that a killed writer had begun to store after it. */
  const expected = new Map<number, (string | undefined)[]>()
  const claims: string[] = []
  let stores = 0
  let first = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const args = { path, kek: text(kek), previousKek: text(previousKek), owners, first }
    // Every third time the end of a rewrap is what is waited for, beside one writer; otherwise a number of writes of two.
    const isRewrapRound = kill % 3 === 0
    const writers = (isRewrapRound ? [0] : [0, 1]).map((number) =>
      startWorker(t, 'write', { ...args, name: `${number}-${kill}`, firstOwner: number * owners }),
    )
    const rewrapper = startWorker(t, 'rewrap', args)
    const limit = 1 + Math.floor(Math.random() * 100)
    const enough = (worker: Worker) => worker.until(() => worker.said.length >= limit)
    await Promise.all(
      [...writers, rewrapper].map((worker) => worker.until((said) => 'claimed' in said || 'ready' in said)),
    )
    await Promise.race(isRewrapRound ? [rewrapper.until((said) => 'rewrapped' in said)] : writers.map(enough))
    for (const { child } of [...writers, rewrapper]) child.kill('SIGKILL')
    const ends = await Promise.all([...writers, rewrapper].map((worker) => worker.ended))
    t.strictSame(
      ends.map(({ signal, stderr }) => [signal, stderr]),
      ends.map(() => ['SIGKILL', '']),
      'no process had an error',
    )

    for (const { said } of writers) for (const { claimed } of said) if (claimed !== undefined) claims.push(claimed)
    for (const { said } of writers) note(expected, said)
    stores += writers.flatMap(({ said }) => said).filter(({ stored }) => stored !== undefined).length
    first += Math.max(...writers.map(({ said }) => said.length))

    // With either key as the current one, whichever way the last rewrap went.
    for (const turned of [keys, { kek: previousKek, previousKek: kek }]) {
      const { state, keystore } = await openKeystoreState({ path, ...turned }, { now })
      for (const [owner, possible] of expected) {
        const found = await keystore.find(ownerOf(owner))
        t.ok(possible.includes(found?.open().apiSecret), 'each record is one that was written, and whole')
      }
      state.close()
    }
    for (const alone of [kek, previousKek]) await checkOneKey(t, path, alone, [...expected.keys()])
  }
  const { state, keystore } = await openKeystoreState({ path, ...keys }, { now })
  t.ok(claims.length >= KILLS)
  t.ok(stores >= KILLS)
  t.equal(new Set(claims).size, claims.length, 'no id was given to two')
  for (const id of claims) t.equal(await state.usedTokens.isUsed(id), true, 'no claim was forgotten')
  for (const id of claims) t.equal(await state.usedTokens.claim(id, now() + 120_000), false, 'no claim is given again')
  await keystore.rewrap()
  state.close()
  const { state: rotated, keystore: alone } = await openKeystoreState({ path, kek }, { now })
  for (const owner of expected.keys())
    t.doesNotThrow((await alone.find(ownerOf(owner)))?.open ?? (() => {}), 'the new key alone opens all')
  rotated.close()
  t.notOk(bytesOf(directory).includes('canary'), 'no plaintext was left anywhere')
  t.strictSame(
    readdirSync(directory).filter((name) => !/^keystore\.db(-wal|-shm)?$/.test(name)),
    [],
  )
})

/** One key alone is refused at the start, or opens what it can; it never takes a record for damaged. */
async function checkOneKey(t: Test, path: string, kek: Buffer, owners: number[]): Promise<void> {
  const file = await openKeystoreState({ path, kek }, { now }).catch((error: Error) => error)
  if (file instanceof Error) {
    const says = [`MCP_KEK does not match the keystore '${path}'`, 'The last change of MCP_KEK is incomplete']
    t.ok(
      says.some((begin) => file.message.startsWith(begin)),
      file.message,
    )
    return
  }
  for (const owner of owners) {
    const found: StoredCredentials | string | null = await file.keystore
      .find(ownerOf(owner))
      .catch((error: ToolError) => error.code)
    if (typeof found === 'string') t.equal(found, 'keystore_unavailable')
    else if (found !== null) t.doesNotThrow(found.open)
  }
  file.state.close()
}

/** Nobody else writes for these owners: what was acknowledged last stands, or what the writer was at when it was killed. */
function note(expected: Map<number, (string | undefined)[]>, said: Said[]): void {
  for (const { trying, stored, outdated, secret } of said) {
    if (trying !== undefined) expected.set(trying, [...(expected.get(trying) ?? [undefined]), secret])
    if (stored !== undefined) expected.set(stored, [secret])
    if (outdated !== undefined)
      expected.set(
        outdated,
        expected.get(outdated)!.filter((possible) => possible !== secret),
      )
  }
}

t.test('a start beside busy writers has its turn among them', async (t) => {
  const path = join(directoryOf(t), 'keystore.db')
  const kek = newKey()
  ;(await openKeystoreState({ path, kek }, { now })).state.close()
  const hog = startWorker(t, 'hog', { path })
  await hog.until(({ ready }) => ready === true)
  for (let start = 0; start < 5; start++) (await openKeystoreState({ path, kek }, { now })).state.close()
  hog.child.kill('SIGKILL')
  partial(t, await hog.ended, { signal: 'SIGKILL', stderr: '' })
})

t.test('of four processes claiming the same ids, each id is granted once', async (t) => {
  const path = join(directoryOf(t), 'new', 'keystore.db')
  const kek = text(newKey())
  const count = 250
  const workers = [1, 2, 3, 4].map(() => startWorker(t, 'claim', { path, kek, first: 0, count }))
  await Promise.all(workers.map((worker) => worker.until(({ ready }) => ready === true)))
  for (const worker of workers) worker.go()
  for (const end of await Promise.all(workers.map(({ ended }) => ended))) partial(t, end, { code: 0, stderr: '' })
  const claimed = workers.map(({ said }) => said.flatMap((line) => line.claimed ?? []))
  t.strictSame(claimed.flat().sort(), Array.from({ length: count }, (_, number) => `token-${number}`).sort())
  t.ok(claimed.filter((ids) => ids.length > 0).length > 1, 'more than one process was given some')
})

t.test('four processes on 100 users: no errors, and every answer is one that was written', async (t) => {
  const path = join(directoryOf(t), 'keystore.db')
  const kek = newKey()
  const owners = 100
  const names = ['a', 'b', 'c', 'd']
  const workers = names.map((name) => startWorker(t, 'mix', { path, kek: text(kek), owners, name }))
  await Promise.all(workers.map((worker) => worker.until(({ ready }) => ready === true)))
  for (const worker of workers) worker.go()
  for (const end of await Promise.all(workers.map(({ ended }) => ended))) partial(t, end, { code: 0, stderr: '' })
  const secretsOf = (number: number) => names.map((name) => `${name}-${number}`)
  for (const { said } of workers) {
    for (const { read, secret } of said) if (read !== undefined) t.ok(secretsOf(read).includes(secret!))
    t.ok(said.at(-1)?.done)
  }
  const { state, keystore } = await openKeystoreState({ path, kek }, { now })
  for (let number = 0; number < owners; number++) {
    const found = await keystore.find(ownerOf(number))
    if (number % 4 === 0) t.equal(found, null, 'who was removed last by everybody is gone')
    else t.ok(secretsOf(number).includes(found!.open().apiSecret))
  }
  state.close()
})

t.test('four processes create the same files once', async (t) => {
  const path = join(directoryOf(t), 'state.db')
  const count = 25
  const workers = [1, 2, 3, 4].map(() => startWorker(t, 'make', { path, count }))
  await Promise.all(workers.map((worker) => worker.until(({ ready }) => ready === true)))
  for (const worker of workers) worker.go()
  for (const end of await Promise.all(workers.map(({ ended }) => ended))) partial(t, end, { code: 0, stderr: '' })
  const said = workers.flatMap((worker) => worker.said)
  t.strictSame(
    said.flatMap(({ claimed }) => claimed ?? []).sort(),
    Array.from({ length: count }, (_, number) => `${path}-${number}`).sort(),
  )
  t.notOk(said.some(({ warning, refused }) => warning ?? refused))
  t.strictSame(
    readdirSync(join(path, '..')).filter((name) => name.includes('.new-')),
    [],
  )
})

t.test('processes with different keys create the file together: one wins, the others report it', async (t) => {
  const path = join(directoryOf(t), 'keystore.db')
  const workers = [1, 2, 3].map(() => startWorker(t, 'claim', { path, kek: text(newKey()), first: 0, count: 1 }))
  await Promise.all(
    workers.map((worker) => worker.until(({ ready, refused }) => ready === true || refused !== undefined)),
  )
  for (const worker of workers) worker.go()
  const ends = await Promise.all(workers.map(({ ended }) => ended))
  t.strictSame(ends.map(({ code }) => code).sort(), [0, 1, 1])
  const refused = workers.flatMap(({ said }) => said.flatMap((line) => line.refused ?? []))
  t.strictSame(refused, Array(2).fill(`MCP_KEK does not match the keystore '${path}'`))
})

t.test('whatever the umask, every file is 0600 and every new directory 0700', async (t) => {
  const directory = directoryOf(t)
  const modeOf = (name: string) => (statSync(join(directory, name)).mode & 0o7777).toString(8)
  // Under 777 a new directory would be closed to everyone: the second file lies in those of the first.
  for (const [umask, name] of [
    [0o000, 'first.db'],
    [0o777, 'second.db'],
  ] as const) {
    const path = join(directory, 'deep', 'er', name)
    const worker = startWorker(t, 'hold', { path, kek: text(newKey()), umask })
    await worker.until(({ ready }) => ready === true)
    t.strictSame(['deep', 'deep/er'].map(modeOf), ['700', '700'])
    const files = readdirSync(join(directory, 'deep', 'er')).filter((file) => file.startsWith(name))
    t.strictSame(files.sort(), [name, `${name}-shm`, `${name}-wal`])
    t.strictSame(
      files.map((name) => modeOf(`deep/er/${name}`)),
      ['600', '600', '600'],
    )
    partial(
      t,
      worker.said,
      [{ warning: /did not exist and has been created/ }, { ready: true }],
      'and there was nothing else to warn of',
    )
    t.equal(worker.said.length, 2)
    worker.go()
    partial(t, await worker.ended, { code: 0, stderr: '' })
  }
})

t.test('a full disk fails the call; the process survives and continues once there is space', async (t) => {
  const path = join(directoryOf(t), 'keystore.db')
  const kek = newKey()
  const worker = startWorker(t, 'fill', { path, kek: text(kek) }, { shell: 'ulimit -S -f 600' })
  const full = await worker.until((said) => said.full !== undefined)
  t.equal(full.full!.length, 3)
  for (const error of full.full!) t.match(error, /^(Error|keystore_unavailable)$/)
  t.strictSame(full.refusals, {
    claim: 'Error',
    check: 'Error',
    write: 'keystore_unavailable',
    remove: 'keystore_unavailable',
  })
  t.equal(full.readable, 'secret-0', 'what is there can still be read')
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(worker.child.pid), '--fsize=unlimited:unlimited'])
  t.equal(status, 0, String(stderr))
  worker.go()
  partial(t, await worker.ended, { code: 0, stderr: '' })
  partial(
    t,
    worker.said.find(({ relieved }) => relieved !== undefined),
    { relieved: true },
    'a refused claim used nothing up',
  )
  const { state, keystore } = await openKeystoreState({ path, kek }, { now })
  const stored = worker.said.filter((line) => line.stored !== undefined)
  t.ok(stored.length > 10)
  for (const { stored: number, secret } of stored) {
    t.equal((await keystore.find(ownerOf(number!)))?.open().apiSecret, secret)
  }
  for (const { claimed } of worker.said) if (claimed) t.ok(await state.usedTokens.isUsed(claimed))
  state.close()
})

t.test('an unwritable file stops the start, and nothing is recreated', async (t) => {
  const directory = directoryOf(t)
  const path = join(directory, 'state.db')
  // root may write everywhere: the worker runs as a user without privileges.
  const uid = process.geteuid?.() === 0 ? 65_534 : undefined
  const run = async (path: string) => {
    const worker = startWorker(t, 'start', { path }, { uid })
    await worker.ended
    return worker.said
  }
  const give = (...paths: string[]) => {
    if (uid !== undefined) spawnSync('chown', ['-R', `${uid}:${uid}`, ...paths])
  }
  give(directory)
  t.strictSame(await run(path), [{ opened: true }])

  spawnSync('chmod', ['400', path])
  partial(t, await run(path), [
    { refused: `MCP_STATE_PATH '${path}' cannot be written: permission denied (EACCES) on '${path}'` },
  ])
  spawnSync('chmod', ['600', path])

  spawnSync('chmod', ['500', directory])
  partial(t, await run(path), [
    { refused: `MCP_STATE_PATH '${path}' cannot be written: permission denied (EACCES) on '${directory}'` },
  ])
  const other = join(directory, 'other.db')
  partial(t, await run(other), [
    { refused: `MCP_STATE_PATH '${other}' cannot be created: permission denied (EACCES) on '${directory}'` },
  ])
  spawnSync('chmod', ['700', directory])

  mkdirSync(join(directory, 'closed'), { mode: 0o000 })
  give(join(directory, 'closed'))
  const hidden = join(directory, 'closed', 'state.db')
  partial(t, await run(hidden), [
    { refused: `MCP_STATE_PATH '${hidden}' cannot be reached: permission denied (EACCES)` },
  ])
  t.strictSame(await run(path), [{ opened: true }])
  t.strictSame(
    readdirSync(directory).filter((name) => !/-(wal|shm)$/.test(name)),
    ['closed', 'state.db'],
  )
  spawnSync('chmod', ['700', join(directory, 'closed')])
})

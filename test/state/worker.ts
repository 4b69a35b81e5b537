/**
 * A process of its own on a state file: `worker.ts <task> <JSON>`. Says what it did in one JSON line each, at once and only after the
 * promise has resolved, so that whoever kills it knows what had been acknowledged.
 */
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import Database from 'libsql'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { openState } from '../../storage/state/open-state.js'
import { StartupError } from '../../schemas/config.js'
import { credentialsOf, type WorkerArguments } from './support.js'

const [task, json] = process.argv.slice(2) as [string, string]
const args = JSON.parse(json) as WorkerArguments
const now = () => Date.now()
const read = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const ownerOf = (number: number) => ({ iss: 'https://idp.example', sub: `user-${number}` })

async function open() {
  const keystore = {
    path: args.path,
    kek: Buffer.from(args.kek, 'base64'),
    ...(args.previousKek && { previousKek: Buffer.from(args.previousKek, 'base64') }),
  }
  return openKeystoreState(keystore, { now, warn: (line) => say({ warning: line }) })
}

const tasks: Record<string, () => Promise<void>> = {
  /** Opens, and waits to be told to go. */
  async hold() {
    process.umask(args.umask ?? 0o022)
    const { state } = await open()
    say({ ready: true })
    await read.next()
    state.close()
  },

  /** Until it is killed: registers for one of its owners after the other, and claims one id after the other that others claim as well. */
  async write() {
    const { state, keystore } = await open()
    for (let round = args.first; ; round++) {
      const owner = (args.firstOwner ?? 0) + (round % args.owners)
      const secret = `${args.name}-${round}`
      say({ trying: owner, secret })
      // While another process has just changed the key back, this one must not write with it.
      const isStored = await keystore.write(ownerOf(owner), credentialsOf(secret)).then(
        () => true,
        (error: Error & { cause?: Error }) => {
          if (error.cause?.message.startsWith('MCP_KEK of the keystore has changed') !== true) throw error
          return false
        },
      )
      say(isStored ? { stored: owner, secret } : { outdated: owner, secret })
      const id = `token-${round}`
      if (await state.usedTokens.claim(id, now() + 120_000)) say({ claimed: id })
    }
  },

  /** Until it is killed: rewraps from one key to the other and back. */
  async rewrap() {
    const { state, keystore } = await open()
    const { credentials: records, notes } = state
    const { openKeystore } = await import('../../storage/keystore/open-keystore.js')
    const back = await openKeystore({
      records,
      notes,
      kek: Buffer.from(args.previousKek!, 'base64'),
      previousKek: Buffer.from(args.kek, 'base64'),
      place: { name: args.path, variable: 'MCP_KEYSTORE_PATH' },
      now,
    })
    say({ ready: true })
    for (;;) {
      say({ rewrapped: await keystore.rewrap() })
      say({ rewrapped: await back.rewrap() })
    }
  },

  /** Makes files that other workers make at the same time, and claims one id in each. */
  async make() {
    say({ ready: true })
    await read.next()
    for (let number = 0; number < args.count; number++) {
      const path = `${args.path}-${number}`
      const state = openState(path, { now, variable: 'MCP_STATE_PATH', warn: (line) => say({ warning: line }) })
      if (await state.usedTokens.claim('once', now() + 120_000)) say({ claimed: path })
      state.close()
    }
  },

  /** Claims ids that other workers claim at the same time. */
  async claim() {
    const { state } = await open()
    say({ ready: true })
    await read.next()
    for (let number = args.first; number < args.first + args.count; number++) {
      const id = `token-${number}`
      if (await state.usedTokens.claim(id, now() + 120_000)) say({ claimed: id })
    }
  },

  /** Registers, reads and removes for many owners that other workers write to as well. */
  async mix() {
    const { keystore } = await open()
    say({ ready: true })
    await read.next()
    for (let number = 0; number < args.owners; number++) {
      const owner = ownerOf(number)
      await keystore.write(owner, credentialsOf(`${args.name}-${number}`))
      const found = await keystore.find(owner)
      if (found !== null) say({ read: number, secret: found.open().apiSecret })
      // A quarter of the owners ends without credentials: whoever is last removes them again.
      if (number % 4 === 0) await keystore.remove(owner)
    }
    say({ done: true })
  },

  /** Writes until the disk is full, says so, and goes on when told. */
  async fill() {
    const { state, keystore } = await open()
    const errors: string[] = []
    for (let number = 0; errors.length < 3; number++) {
      try {
        await keystore.write(ownerOf(number), credentialsOf(`secret-${number}`))
        say({ stored: number, secret: `secret-${number}` })
        const id = `token-${number}`
        if (await state.usedTokens.claim(id, now() + 120_000)) say({ claimed: id })
      } catch (error) {
        errors.push((error as { code?: string }).code ?? (error as Error).name)
      }
    }
    // A mark of one page may still fit where a record does not.
    for (let mark = 0; (await failure(state.notes.set('mark', String(mark)))) === 'none'; mark++);
    const refusals = {
      claim: await failure(state.usedTokens.claim('full', now() + 120_000)),
      check: await failure(state.checkWritable()),
      write: await failure(keystore.write(ownerOf(0), credentialsOf('lost'))),
      remove: await failure(keystore.remove(ownerOf(0))),
    }
    const found = await keystore.find(ownerOf(0))
    say({ full: errors, refusals, readable: found?.open().apiSecret })
    await read.next()
    say({ relieved: await state.usedTokens.claim('full', now() + 120_000) })
    await keystore.write(ownerOf(1_000_000), credentialsOf('after'))
    say({ stored: 1_000_000, secret: 'after' })
  },

  /** Until it is killed: holds the file nearly all the time, as a crowd of busy writers does. */
  async hog() {
    const db = new Database(args.path)
    db.exec('PRAGMA busy_timeout = 5000')
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (let turn = 0; ; turn++) {
      db.exec('BEGIN IMMEDIATE')
      if (turn === 0) say({ ready: true })
      Atomics.wait(pause, 0, 0, 197)
      db.exec('COMMIT')
      Atomics.wait(pause, 0, 0, 3)
    }
  },

  /** Opens only, to see what a user without privileges hears. */
  async start() {
    openState(args.path, { now, variable: 'MCP_STATE_PATH', warn: (line) => say({ warning: line }) }).close()
    say({ opened: true })
  },
}

/** Written when this returns, also when whoever reads the pipe is slow. */
function say(line: object): void {
  let rest = Buffer.from(`${JSON.stringify(line)}\n`)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

async function failure(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'none'
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name
  }
}

try {
  await tasks[task]!()
  process.exit(0)
} catch (error) {
  if (!(error instanceof StartupError)) throw error
  say({ refused: error.faults[0]?.problem })
  process.exit(1)
}

/**
 * A preload (`node --import`) that delays what the operating system may delay: what is written to sockets, asynchronous calls to files,
 * and timers. The delays come from SHAKE_SEED and the program's arguments, so a run can be repeated. A test that fails under them relies
 * on the pace of the machine.
 */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timers from 'node:timers'

const LONGEST_MS = 5
const seed = createHash('sha256').update(`${process.env.SHAKE_SEED} ${process.argv.slice(2).join(' ')}`)
const sleep = globalThis.setTimeout
let state = seed.digest().readUInt32LE()

/** The next of the pseudo-random delays (mulberry32); half of them are none at all. */
function nextDelay() {
  state = (state + 0x6d2b79f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), state | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  const fraction = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  return Math.max(0, Math.round((fraction * 2 - 1) * LONGEST_MS))
}

/** Replaces a method by one that begins later. Its callers learn of the result by a callback or a promise, so what it returns is not needed. */
function delayMethod(object, name) {
  const original = object[name]
  function delayed(...args) {
    // Node.js writes standard streams at once, and programs that say something and exit rely on that.
    const delay = this?._isStdio === true ? 0 : nextDelay()
    if (delay === 0) return original.apply(this, args)
    sleep(() => original.apply(this, args), delay)
  }
  object[name] = Object.defineProperties(delayed, Object.getOwnPropertyDescriptors(original))
}

// A stream writes its next part when the last one is done, so the order stays. What one end writes late, the other end reads late.
for (const name of ['_write', '_writev', '_final'])
  if (net.Socket.prototype[name]) delayMethod(net.Socket.prototype, name)

const CALLS = [
  'access',
  'appendFile',
  'copyFile',
  'lstat',
  'mkdir',
  'open',
  'readdir',
  'readFile',
  'readlink',
  'realpath',
  'rename',
]
CALLS.push('rm', 'rmdir', 'stat', 'unlink', 'writeFile')
for (const name of [...CALLS, 'close', 'fdatasync', 'fstat', 'fsync', 'read', 'write']) delayMethod(fs, name)
for (const name of CALLS) {
  const original = fs.promises[name]
  if (original === undefined) continue
  fs.promises[name] = async (...args) => {
    const delay = nextDelay()
    if (delay > 0) await new Promise((resolve) => sleep(resolve, delay))
    return original.apply(fs.promises, args)
  }
}

function lateTimeout(callback, ms, ...args) {
  return sleep(callback, Number(ms ?? 0) + nextDelay(), ...args)
}
Object.defineProperties(lateTimeout, Object.getOwnPropertyDescriptors(sleep))
timers.setTimeout = lateTimeout
globalThis.setTimeout = lateTimeout

syncBuiltinESMExports()

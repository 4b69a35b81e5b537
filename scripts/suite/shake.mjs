/**
 * A preload (`node --import`) that delays operations which the operating system may delay, too: writes to sockets,
 * asynchronous file operations, and timers. The delays are derived from SHAKE_SEED and the program's arguments, so that
 * a run can be repeated. A test that fails because of the delays depends on the speed of the machine.
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

/** Returns the next pseudo-random delay (mulberry32). Half of the delays are zero. */
function nextDelay() {
  state = (state + 0x6d2b79f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), state | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  const fraction = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  return Math.max(0, Math.round((fraction * 2 - 1) * LONGEST_MS))
}

/**
 * Replaces a method by one that starts its work after a delay. The replacement returns nothing, because callers receive
 * the result by a callback or a promise.
 */
function delayMethod(object, name) {
  const original = object[name]
  function delayed(...args) {
    // Standard streams are not delayed: Node.js writes to them immediately, and programs that print something and exit
    // rely on this.
    const delay = this?._isStdio === true ? 0 : nextDelay()
    if (delay === 0) return original.apply(this, args)
    sleep(() => original.apply(this, args), delay)
  }
  object[name] = Object.defineProperties(delayed, Object.getOwnPropertyDescriptors(original))
}

// A stream writes its next part only when the previous one is done, so the order is kept. Delaying writes also delays
// the reads of the other end.
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

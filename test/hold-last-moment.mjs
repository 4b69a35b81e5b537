/**
 * A preload (`node --import`) for the HTTP program: the half second for which it still serves after it was told to stop
 * lasts until SIGCONT, so that a test can look at that moment on a machine of any speed. A process that ends without
 * that half second exits with 70, so that a test cannot look at something else without noticing.
 */
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

const MOMENT_MS = 500
const wait = timers.setTimeout
const told = once(process, 'SIGCONT')
let isHeld = false
timers.setTimeout = (ms, ...rest) => {
  if (isHeld || ms !== MOMENT_MS) return wait(ms, ...rest)
  isHeld = true
  return told
}
syncBuiltinESMExports()
process.once('exit', () => {
  if (!isHeld) process.exitCode = 70
})

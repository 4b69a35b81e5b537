/**
 * A preload (`node --import`) for the HTTP program: the half seconds for which it still serves once it was told to stop last until
 * SIGCONT, so that a test can look at that moment on a machine of any speed.
 */
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

const MOMENT_MS = 500
const wait = timers.setTimeout
const told = once(process, 'SIGCONT')
timers.setTimeout = (ms, ...rest) => (ms === MOMENT_MS ? told : wait(ms, ...rest))
syncBuiltinESMExports()

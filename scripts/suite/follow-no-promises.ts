/**
 * This module must be imported before tap, which would otherwise follow every promise, timer and socket with
 * async_hooks to learn which test an uncaught error belongs to. This would take a tenth of the processor time of the
 * suite. The files of a process run one after the other, so an uncaught error belongs to the file that is running, and
 * nothing has to be followed.
 */
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const { createHook } = asyncHooks
asyncHooks.createHook = () => createHook({})
syncBuiltinESMExports()

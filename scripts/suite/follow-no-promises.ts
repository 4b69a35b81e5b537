/**
 * This module must be imported before tap. It prevents tap from following every promise, timer and socket with
 * async_hooks in order to find out to which test an uncaught error belongs. That would take a tenth of the processor
 * time of the suite. It is not needed: the files of a process run one after the other, so an uncaught error belongs to
 * the file that is running.
 */
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const { createHook } = asyncHooks
asyncHooks.createHook = () => createHook({})
syncBuiltinESMExports()

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Test } from 'tap'
import { compiled } from '../suite-folder.js'
import type { Turns } from './watch-turns.js'

/** The longest turn, in units of work: 100 ms where a unit takes four. */
export const MOST_UNITS = 25
/** The variables with which a server measures the turns of its main thread, and tells them over this socket. */
export function watchedAt(socketPath: string): NodeJS.ProcessEnv {
  return { NODE_OPTIONS: `--import ${compiled('test/contract/watch-turns.ts')}`, WATCH_TURNS: socketPath }
}

/** Asks a program for a line, by a line. */
export function askOf<T>(input: Writable, output: Readable): () => Promise<T> {
  const lines = createInterface(output)[Symbol.asyncIterator]()
  return async () => {
    input.write('\n')
    return JSON.parse((await lines.next()).value as string) as T
  }
}

/** Connects to a server that measures its turns; returns a function that asks for the turns since the last question. */
export function readTurns(t: Test, socketPath: string): () => Promise<Turns> {
  const socket = connect(socketPath)
  t.teardown(() => socket.destroy())
  return askOf<Turns>(socket, socket)
}

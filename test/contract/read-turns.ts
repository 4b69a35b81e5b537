import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Test } from 'tap'
import { compiled } from '../suite-folder.js'
import type { Turns } from './watch-turns.js'

/** The longest turn, in units of work: 100 ms where a unit takes four. */
export const MOST_UNITS = 25
/**
 * How often a call is made if a turn of it is longer. What a tool computes, it computes in each call, while a collection
 * of garbage falls into a turn by chance: on a busy machine, V8's other threads leave more of it to the main thread.
 */
const ATTEMPTS = 3

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

/** Measures a call, and if a turn was too long, measures again, for the least of several. */
export async function leastUnits<T extends { units: number }>(measure: () => Promise<T>): Promise<T> {
  let least = await measure()
  for (let attempt = 1; attempt < ATTEMPTS && least.units > MOST_UNITS; attempt++) {
    const next = await measure()
    if (next.units < least.units) least = next
  }
  return least
}

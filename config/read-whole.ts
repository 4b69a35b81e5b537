import { closeSync, constants, openSync, readFileSync, readSync, statSync } from 'node:fs'

/** Maximum time, in milliseconds, to wait for the first bytes from a pipe. */
const PATIENCE_MS = 5000
const PAUSE_MS = 20

/**
 * Reads a whole file or a pipe, because shells and password managers pass secrets through pipes. If no writer opens the
 * pipe in time, throws ETIMEDOUT, because reading would otherwise wait for ever. Also throws the errors of node:fs.
 */
export function readWhole(path: string, patienceMs = PATIENCE_MS): Buffer {
  return statSync(path).isFIFO() ? readPipe(path, patienceMs) : readFileSync(path)
}

function readPipe(path: string, patienceMs: number): Buffer {
  const pipe = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const deadline = performance.now() + patienceMs
  const pieces: Buffer[] = []
  const pause = new Int32Array(new SharedArrayBuffer(4))
  try {
    for (;;) {
      const piece = Buffer.alloc(65_536)
      const length = readSome(pipe, piece)
      // If a read returns nothing and nothing was read before, no writer has opened the pipe yet.
      if (length === 0 && pieces.length > 0) return Buffer.concat(pieces)
      if (length !== null && length > 0) pieces.push(piece.subarray(0, length))
      else if (performance.now() > deadline) throw Object.assign(new Error('nothing came'), { code: 'ETIMEDOUT' })
      else Atomics.wait(pause, 0, 0, PAUSE_MS)
    }
  } finally {
    closeSync(pipe)
  }
}

/**
 * Reads available bytes from a pipe into `piece` and returns their number. Returns null if the writer has not written
 * anything new yet.
 */
function readSome(pipe: number, piece: Buffer): number | null {
  try {
    return readSync(pipe, piece)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return null
    throw error
  }
}

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { PceEnvironment } from './start-programs.js'

/**
 * Draws the application map of a PCE into a file in the folder, using the same command `draw map` as people do.
 * Resolves with the path of the file. Rejects with the command's output if the command fails.
 */
export async function draw(
  program: URL,
  { pce, folder, signal }: { pce: PceEnvironment; folder: string; signal: AbortSignal },
): Promise<string> {
  const path = join(folder, 'map.html')
  await promisify(execFile)(process.execPath, [fileURLToPath(program), 'draw', 'map', '-o', path], {
    cwd: folder,
    env: { ...getDefaultEnvironment(), ...pce },
    signal,
  })
  return path
}

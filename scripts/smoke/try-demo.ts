import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The settings of another PCE, which the demonstration must ignore. */
const OTHERS = 'PCE_HOST=https://127.0.0.1:1\nMCP_READ_ONLY=1\nMCP_TOOLSETS=vens\n'
/** The width of the narrowest terminals that are still in use, in columns. */
const WIDTH = 80

/**
 * Runs the installed demonstration in a folder with the settings of another PCE. When it waits for clients, ends it
 * with Ctrl-C. Throws Error with its output if the story is incomplete, the picture is missing, or a process continues
 * to run.
 */
export async function tryDemo(program: string, folder: string, env: Record<string, string>): Promise<void> {
  writeFileSync(join(folder, '.env'), OTHERS)
  const child = spawn(program, ['demo', '--port', '0'], {
    cwd: folder,
    env: { ...env, MCP_READ_ONLY: '1' },
    // All processes of a process group receive Ctrl-C together, as in a terminal.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close') as Promise<[number | null]>
  let said = ''
  let picture: string | undefined
  try {
    const waits = new Promise<void>((resolve) => {
      const hear = (chunk: Buffer) => {
        said += chunk.toString()
        if (said.includes('Ctrl-C ends both.')) resolve()
      }
      child.stdout.on('data', hear)
      child.stderr.on('data', hear)
    })
    await Promise.race([waits, ended])
    const [, server, pce] = /svc-mcp is at (http:\S+), the\s+simulated\s+PCE\s+at\s+(http:\S+)\. /.exec(said) ?? []
    if (server === undefined || pce === undefined || !said.includes('\nShown: ')) throw new Error(said)
    picture = /svc-mcp draw map:\s+(\S+\.html)/.exec(said)?.[1]
    if (picture === undefined || !readFileSync(picture, 'utf8').includes('<svg')) throw new Error(`no picture: ${said}`)
    const wide = said.split('\n').filter((line) => [...line].length > WIDTH && !line.includes(folder))
    if (wide.length > 0) throw new Error(`too wide: ${wide.join('\n')}`)
    process.kill(-child.pid!, 'SIGINT')
    const [code] = await ended
    const alive = await Promise.all(
      [server, pce].map((url) =>
        fetch(url).then(
          () => url,
          () => '',
        ),
      ),
    )
    if (code !== 0 || alive.join('') !== '') throw new Error(`exit code ${code}, still there: ${alive.join(' ')}`)
    const left = readdirSync(dirname(picture))
    if (left.length !== 1) throw new Error(`left beside the picture: ${left.join(', ')}`)
  } finally {
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
    if (picture !== undefined) rmSync(dirname(picture), { recursive: true, force: true })
  }
}

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { choosePort } from '../process/choose-port.js'
import { printClientLines } from './demo/client-lines.js'
import { draw } from './demo/draw.js'
import { blankLine, tell } from './demo/print.js'
import { startServer, startSimulator, type Stay } from './demo/start-programs.js'
import { tellStory } from './demo/story.js'

/** The programs that the demonstration starts. Their files are next to the file of the running program. */
export interface DemoPrograms {
  stdio: URL
  http: URL
  simulator: URL
  /** The path of the stdio program that is printed for MCP clients. It stays valid after an update to a new version. */
  named: string
}

interface Options {
  once: boolean
  port: number
}

/** A run of the demonstration, with the files and programs that must be cleaned up at its end. */
interface Run extends Stay {
  /** The path of the picture that the story mentions; null until it has been drawn. */
  picture: string | null
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const ESTATE = { seed: 7, workloads: 400, flows: 20_000, pods: true }

const HELP = `
No PCE and no settings are needed; those in the environment or in a .env file are ignored. Everything listens
only on this machine, without a login.`

/**
 * Runs `svc-mcp demo`: starts a simulated PCE, the HTTP server and an MCP client, and prints their conversation as a
 * story. Resolves with the exit code: with `--once` after the story, otherwise at Ctrl-C.
 */
export async function runDemo(args: readonly string[], programs: DemoPrograms): Promise<number> {
  const program = new Command('svc-mcp demo')
    .description('Play a conversation between an MCP client and this server on a simulated PCE.')
    .option('--once', 'end after the conversation instead of staying up', false)
    .option('--port <port>', 'port of the MCP server; any free one when it is taken', readPort, 8080)
    .addHelpText('after', HELP)
    .allowExcessArguments(false)
    .showHelpAfterError('(svc-mcp demo --help shows its options)')
    .exitOverride()
  try {
    const options = program.parse([...args], { from: 'user' }).opts<Options>()
    return await play(options, programs)
  } catch (error) {
    // Commander has already printed its message. The error that it throws contains the exit code.
    if (error instanceof Error && 'exitCode' in error) return error.exitCode as number
    process.stderr.write(`svc-mcp demo: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}

async function play({ once, port }: Options, programs: DemoPrograms): Promise<number> {
  for (const program of [programs.http, programs.simulator])
    if (!existsSync(program))
      throw new Error(
        `${fileURLToPath(program)} is missing. In a clone, run npm run build; an image does not contain it`,
      )
  const stop = new AbortController()
  const end = () => stop.abort()
  // The signal handlers stay registered after the first signal, because npm and the terminal may both deliver the same
  // Ctrl-C.
  for (const signal of SIGNALS) process.on(signal, end)
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // EPIPE means that the reader has closed the pipe before the story ended, as in `svc-mcp demo | head`.
    if (error.code !== 'EPIPE') throw error
    end()
  })
  // Child programs run in a separate folder, because a .env file in the current folder could contain settings for
  // another PCE.
  const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-demo-'))
  const run: Run = { folder, signal: stop.signal, started: [], picture: null }
  try {
    return await Promise.race([perform({ once, port }, programs, run), stopped(stop.signal)])
  } finally {
    await Promise.all(run.started.map(({ end }) => end()))
    clear(run)
    for (const signal of SIGNALS) process.off(signal, end)
  }
}

/** Removes the folder. If it contains a picture whose path was printed, this picture is kept. */
function clear({ folder, picture }: Run): void {
  if (picture === null || !existsSync(picture)) return rmSync(folder, { recursive: true, force: true })
  for (const file of readdirSync(folder))
    if (file !== basename(picture)) rmSync(join(folder, file), { recursive: true, force: true })
}

/** Resolves with the exit code 0 when the signal aborts. This ends the demonstration. */
const stopped = (signal: AbortSignal) =>
  new Promise<number>((resolve) => signal.addEventListener('abort', () => resolve(0), { once: true }))

/**
 * Performs the demonstration. Everything that it starts or draws is noted in `run` at once, so that it is cleaned up
 * even after a failure.
 */
async function perform({ once, port }: Options, programs: DemoPrograms, run: Run): Promise<number> {
  const { folder, signal } = run
  const { workloads, flows } = ESTATE
  tell(`Starting a simulated PCE (${workloads} workloads, ${flows.toLocaleString('en')} flows) and svc-mcp …`)
  const simulator = await startSimulator(programs.simulator, ESTATE, run)
  const { pce } = simulator
  const server = await startServer(programs.http, { port: await choosePort(port), pce }, run)
  const broken = Promise.race([simulator.ended, server.ended]).then((what) => {
    if (signal.aborted) return 0
    throw new Error(what)
  })
  const story = tellStory({
    url: `${server.url}/mcp`,
    stdioProgram: fileURLToPath(programs.stdio),
    folder,
    pce,
    draw: async () => (run.picture = await draw(programs.stdio, { pce, folder, signal })),
  })
  await Promise.race([story, broken])
  if (once) return 0
  blankLine()
  tell('Now your own client. Everything stays up until Ctrl-C; one line or file each:')
  printClientLines(server.url, programs.named, pce)
  blankLine()
  tell(`svc-mcp is at ${server.url}/mcp, the simulated PCE at ${simulator.url}. Ctrl-C ends both.`)
  return broken
}

function readPort(text: string): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value > 65_535) throw new InvalidArgumentError('a port is 0 to 65535.')
  return value
}

/**
 * The command `svc-mcp draw`. It calls the tool that supplies the data of a picture, in the same way as the server
 * would, and draws the picture from the answer.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname, extname, join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { composeUnauthenticated, findFileFaults } from './composition/compose-unauthenticated.js'
import { pathsIn, readConfig, readEnvironment } from '../config/index.js'
import { drawPicture } from '../pictures/draw-picture.js'
import { TOOL_OF } from '../pictures/kinds.js'
import { renderHtmlFile } from '../pictures/page/render-html.js'
import { renderSvgFile } from '../pictures/page/render-svg.js'
import type { Picture, PictureKind } from '../pictures/picture.js'
import { readScript } from '../pictures/read-script.js'
import { createDispatcher } from '../plugins/dispatcher/dispatch.js'
import { checkPathsAnswer } from './process/check-paths-answer.js'
import { alwaysSaid, createLogger } from './process/create-logger.js'
import { readPackage } from './process/read-package.js'
import { inWords, type StdioConfig } from '../schemas/config.js'
import { catalogue as tools } from '../tools/catalogue/index.js'

/**
 * Maximum size, in bytes, of an answer from which a picture is drawn. No model reads this answer, so the limit is the
 * largest size that can be configured.
 */
const BUDGET = 800_000
/**
 * Maximum number of pages of an answer that are fetched for a picture of changes. Nobody would study more changes in
 * one picture.
 */
const MOST_PAGES = 5
const DAY_MS = 86_400_000

interface OutputOptions {
  output: string
  force: boolean
}
type Format = '.html' | '.svg'

const HELP = `
The file is .html (interactive: zoom, search, switches, and the facts as tables) or .svg (only the drawing). It needs neither
a network nor other files. The PCE is that of the environment or of a .env file, as for svc-mcp itself. Nothing is changed there: a
ringfence is a dry run.`

/** A failure that the command reports in a single line. */
class DrawError extends Error {}

/**
 * Runs the command and resolves with its exit code. Rejects with StartupError if the settings are wrong.
 *
 * @param worker the module that worker threads load. It is a parameter, because this file may be in another folder than
 * the program.
 */
export async function draw(args: readonly string[], worker: URL): Promise<number> {
  const run = (kind: PictureKind, options: RunOptions, given: object) => drawOne(kind, options, given, worker)
  const program = new Command('svc-mcp draw')
    .description('Draw a picture of what a tool answers, for a ticket or a mail.')
    .addHelpText('after', HELP)
    .exitOverride()
  commandOf(program, 'map', 'application map: who talks to whom, by volume and policy decision')
    .option('--days <n>', 'traffic of the last n days', readWhole(1, 365), 7)
    .option('--source <label...>', 'only traffic from these: key=value, iplist:NAME, an address')
    .option('--destination <label...>', 'only traffic to these')
    .option('--groups <n>', 'fold the map beyond this number of groups', readWhole(2, 10_000))
    .option('--complete', 'query in parts to get past the row limit of the PCE')
    .action((options: MapCommand) => run('map', options, mapArguments(options)))
  commandOf(program, 'ringfence', 'ringfence plan: who is let in, who would be cut, on which services')
    .requiredOption('--app <app>', 'value of the app label')
    .requiredOption('--env <env>', 'value of the env label')
    .option('--days <n>', 'traffic of the last n days', readWhole(1, 365), 30)
    .option('--selective', 'deny other inbound traffic by a rule')
    .option('--exclude-source <app...>', 'keep out: app|env, app=X or env=X')
    .option('--complete', 'query in parts to get past the row limit of the PCE')
    .action((options: RingfenceCommand) => run('ringfence', options, ringfenceArguments(options)))
  commandOf(program, 'change', 'policy change: what provisioning would change, before and after')
    .option('--type <type>', 'only this type: rule_sets, ip_lists …')
    .action((options: ChangeCommand) => run('change', options, { resource_type: options.type, max_results: 250 }))
  commandOf(program, 'paths', 'lateral movement: shortest paths from a start or to a target, bridges marked')
    .option('--app <app>', 'app label of the start')
    .option('--env <env>', 'env label of the start')
    .option('--target <app>', 'the target: app|env, app=X or env=X')
    .option('--max-hops <n>', 'maximum number of edges in a path', readWhole(1, 10), 4)
    .option('--days <n>', 'traffic of the last n days', readWhole(1, 365), 30)
    .option('--complete', 'query in parts to get past the row limit of the PCE')
    .action((options: PathsCommand) => run('paths', options, pathsArguments(options)))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return 0
  } catch (error) {
    // Commander has already printed its message. The error that it throws contains the exit code.
    if (error instanceof Error && 'exitCode' in error) return error.exitCode as number
    if (!(error instanceof DrawError)) throw error
    process.stderr.write(`svc-mcp draw: ${error.message}\n`)
    return 1
  }
}

const commandOf = (program: Command, name: PictureKind, description: string): Command =>
  program
    .command(name)
    .description(`Draw the ${description}.`)
    .exitOverride()
    .allowExcessArguments(false)
    .requiredOption('-o, --output <file>', 'the file to write: .html or .svg', readOutput)
    .option('-f, --force', 'replace an existing file', false)
    .showHelpAfterError(`(svc-mcp draw ${name} --help shows its options)`)

interface MapCommand extends OutputOptions {
  days: number
  source?: string[]
  destination?: string[]
  groups?: number
  complete?: true
}

const mapArguments = ({ days, source, destination, complete }: MapCommand) => ({
  start_date: new Date(Date.now() - days * DAY_MS).toISOString(),
  end_date: new Date().toISOString(),
  include_sources: source,
  include_destinations: destination,
  complete,
  sections: ['app_to_app'],
  detail_level: 'full',
})

interface RingfenceCommand extends OutputOptions {
  app: string
  env: string
  days: number
  selective?: true
  excludeSource?: string[]
  complete?: true
}

const ringfenceArguments = ({ app, env, days, selective, excludeSource, complete }: RingfenceCommand) => ({
  app_name: app,
  env_name: env,
  lookback_days: days,
  selective,
  exclude_sources: excludeSource,
  complete,
  dry_run: true,
  detail_level: 'full',
})

interface ChangeCommand extends OutputOptions {
  type?: string
}

interface PathsCommand extends OutputOptions {
  app?: string
  env?: string
  target?: string
  maxHops: number
  days: number
  complete?: true
}

const pathsArguments = ({ app, env, target, maxHops, days, complete }: PathsCommand) => ({
  app_name: app,
  env_name: env,
  target,
  max_hops: maxHops,
  lookback_days: days,
  complete,
  detail_level: 'full',
})

type RunOptions = OutputOptions & { groups?: number }

async function drawOne(kind: PictureKind, options: RunOptions, given: object, worker: URL): Promise<void> {
  const { output, force, groups } = options
  const path = resolve(output)
  await checkTarget(path, force)
  const pages = await ask(TOOL_OF[kind], withoutAbsent(given), worker)
  const format = extname(path).toLowerCase() as Format
  const picture = drawPicture(kind, pages, { most: groups, withWhole: format === '.html' })
  const text = format === '.svg' ? renderSvgFile(picture) : await renderPage(picture)
  await write(path, text, force)
  process.stdout.write(`${output}: ${picture.title}, ${Math.ceil(Buffer.byteLength(text) / 1024)} KiB\n`)
  for (const note of [...picture.warnings, ...picture.notes]) process.stdout.write(`  ${note}\n`)
}

const withoutAbsent = (given: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))

async function renderPage(picture: Picture): Promise<string> {
  const { name, version } = readPackage()
  return renderHtmlFile(picture, {
    script: await readScript('page'),
    hash: (text) => `sha256-${createHash('sha256').update(text).digest('base64')}`,
    foot: `Drawn by ${name} ${version} on ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC. Names come from the PCE.`,
  })
}

/**
 * Calls a tool as the server would, and fetches all pages of its answer. Rejects with DrawError if the tool refuses.
 */
async function ask(tool: string, args: Record<string, unknown>, worker: URL): Promise<object[]> {
  const config = await readSettings()
  // Log messages of level `info` are suppressed, because the person at the shell sees the outcome anyway.
  const log = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel)
  for (const warning of config.warnings) alwaysSaid(log).warn(warning)
  const composed = composeUnauthenticated(config, { tools, log, worker })
  const dispatcher = createDispatcher(composed.dispatcher)
  const stop = new AbortController()
  const interrupt = () => stop.abort()
  process.once('SIGINT', interrupt)
  const call = async (cursor?: string) => {
    const result = await dispatcher.dispatch(
      {
        name: tool,
        arguments: { ...args, ...(cursor !== undefined && { cursor }) },
        requestId: randomUUID(),
        sender: stop,
        progress: ({ message }) => {
          if (message !== undefined && process.stderr.isTTY) process.stderr.write(`${message}\n`)
        },
      },
      composed.callerContext,
    )
    if (result.ok) return result.value as { next_cursor?: string }
    const { message, hint } = result.error
    throw new DrawError(`${tool}: ${message}${hint === undefined ? '' : ` ${hint}`}`)
  }
  try {
    const pages = [await call()]
    for (let cursor = pages[0]?.next_cursor; cursor !== undefined && pages.length < MOST_PAGES;) {
      const page = await call(cursor)
      pages.push(page)
      cursor = page.next_cursor
    }
    return pages
  } finally {
    process.off('SIGINT', interrupt)
    dispatcher.audit?.close()
    composed.callerContext.pce?.close()
    await composed.close()
  }
}

/**
 * Reads the server's settings for use in a shell. Restrictions of the offered tools and confirmations are meant for
 * assistants, so they do not apply here (D121).
 */
async function readSettings(): Promise<StdioConfig> {
  const { env, ...found } = readEnvironment()
  await checkPathsAnswer(pathsIn(env))
  const config = readConfig('stdio', env, {
    found,
    check: (config) => ({ faults: findFileFaults(config), warnings: [] }),
  })
  const { confirm: _asks, offer: _assistants, tracing: _spans, ...own } = config
  return { ...own, limits: { ...own.limits, responseBudgetBytes: BUDGET } }
}

/** Checks the path of the output file before the PCE is queried, because the query may take minutes. */
async function checkTarget(path: string, force: boolean): Promise<void> {
  const folder = await stat(dirname(path)).catch(() => null)
  if (folder === null || !folder.isDirectory()) throw new DrawError(`--output: there is no folder ${dirname(path)}`)
  if (existsSync(path) && !force) throw new DrawError(`--output: ${path} exists; --force replaces it`)
}

/** Writes the file; if this fails, no incomplete file is left. */
async function write(path: string, text: string, force: boolean): Promise<void> {
  const scratch = join(dirname(path), `.${randomUUID()}.unfinished`)
  try {
    const file = await open(scratch, 'wx')
    try {
      await file.writeFile(text)
    } finally {
      await file.close()
    }
    // Another process may have created the file in the meantime.
    await checkTarget(path, force)
    await rename(scratch, path)
  } catch (error) {
    await rm(scratch, { force: true })
    throw error instanceof DrawError ? error : new DrawError(`--output: ${path} cannot be written: ${inWords(error)}`)
  }
}

function readOutput(text: string): string {
  const format = extname(text).toLowerCase()
  if (format !== '.html' && format !== '.svg') throw new InvalidArgumentError('it ends in .html or .svg.')
  return text
}

/** Parses a whole number within the limits of the tool's argument. */
const readWhole =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`it is a whole number from ${least} to ${most}.`)
    return value
  }

/**
 * The command `svc-mcp policy`, which keeps the policy of a PCE in files. Everything that it asks of the PCE runs as
 * one tool call, so that it is audited, cancelled and reported like the tool calls of the server (D276).
 */
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { composeUnauthenticated, findFileFaults } from './composition/compose-unauthenticated.js'
import { type Folder, readFolder } from './commands/policy-files/read-yaml.js'
import {
  showDifference,
  showHalf,
  showLook,
  showRefusal,
  showRemarks,
  showTally,
} from './commands/policy-files/print-difference.js'
import { choosePaths, formatYaml, writeWhole } from './commands/policy-files/write-yaml.js'
import { checkPathsAnswer } from './process/check-paths-answer.js'
import { alwaysSaid, createLogger } from './process/create-logger.js'
import { pathsIn, readConfig, readEnvironment } from '../config/index.js'
import type { ToolContext } from '../domain/call.js'
import type { Applied } from '../domain/policy-files/apply-files.js'
import {
  applyToDraft,
  type ComparedVersion,
  compareWithPce,
  exportVersion,
  type JudgeRequests,
} from '../domain/policy-files/compare-with-pce.js'
import { readHead } from '../domain/policy-files/convert-objects.js'
import { keyOf } from '../domain/policy-files/name-book.js'
import type { Fault } from '../domain/policy-files/read-files.js'
import { countOf } from '../domain/text/describe-numbers.js'
import { escapeText } from '../domain/text/escape-text.js'
import type { ServerLog } from '../plugins/dispatcher/call.js'
import { createDispatcher } from '../plugins/dispatcher/dispatch.js'
import { inWords, StartupError, type StdioConfig } from '../schemas/config.js'
import { ToolError } from '../schemas/errors.js'
import { Ended, NoArguments } from '../schemas/shell-command.js'
import { defineTool, type ToolEffect } from '../tools/define.js'

/** The exit codes, with the same meaning as those of `diff`: no differences or success, differences found, trouble. */
const [FINE, DIFFERS, TROUBLE] = [0, 1, 2]

const HELP = `
A folder of policy has one YAML file for each rule set, IP list, service and label group, with exact names instead of
hrefs. The PCE is that of the environment or of a .env file, as for svc-mcp itself. Nothing is ever provisioned.

Exit codes: 0 nothing differs, or done; 1 diff found differences; 2 trouble. docs/policy-as-files.md has an example.`

/** A failure whose message is printed as it is, with exit code 2. */
class PolicyError extends Error {}

type Context = ToolContext<true>

/** Runs `svc-mcp policy` with these arguments, and resolves with the exit code. */
export async function runPolicy(args: readonly string[]): Promise<number> {
  endWithReader()
  let code = FINE
  const run = (work: () => Promise<number>) => work().then((ended) => void (code = ended))
  const program = new Command('svc-mcp policy')
    .description('Keep the policy as files: export it, compare the files with it, apply them to the draft.')
    .addHelpText('after', HELP)
    .exitOverride()
  commandOf(program, 'export', 'Write the policy into files.')
    .addOption(versionOption('--from', 'the version to write'))
    .option('-f, --force', 'replace files that exist, and remove those of objects that are gone', false)
    .action((folder: string, options: ExportOptions) => run(() => exportInto(folder, options)))
  commandOf(program, 'diff', 'Say field by field in what the files differ from the policy.')
    .addOption(versionOption('--against', 'the version to compare with'))
    .option('--only-files', 'leave out objects without a file', false)
    .action((folder: string, options: DiffOptions) => run(() => diffWith(folder, options)))
  commandOf(program, 'apply', 'Make the draft what the files say. All files are checked before the first write.')
    .option('-n, --dry-run', 'write nothing, and say what would be written', false)
    .option('--prune', 'delete objects without a file, of the types that have files', false)
    .action((folder: string, options: ApplyOptions) => run(() => apply(folder, options)))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof StartupError) {
      for (const { problem, remedy } of error.faults) complain(`${problem}. ${remedy}`)
      return TROUBLE
    }
    // Commander has already printed its message. Its exit code 1 would wrongly mean that there are differences.
    if (error instanceof Error && 'exitCode' in error) return error.exitCode === 0 ? FINE : TROUBLE
    if (!(error instanceof PolicyError)) throw error
    complain(error.message)
    return TROUBLE
  }
}

/** Ends quietly if the reader of standard output has closed the pipe, as in `svc-mcp policy diff DIR | head`. */
function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

const complain = (text: string) => void process.stderr.write(`svc-mcp policy: ${escapeText(text)}\n`)
const print = (lines: readonly string[]) => void process.stdout.write(lines.map((line) => `${line}\n`).join(''))

const commandOf = (program: Command, name: string, description: string): Command =>
  program
    .command(name)
    .description(description)
    .argument('<dir>', 'the folder')
    .exitOverride()
    .allowExcessArguments(false)
    .showHelpAfterError(`(svc-mcp policy ${name} --help shows its options)`)

const versionOption = (name: string, what: string) =>
  new Option(`${name} <version>`, what).choices(['draft', 'active']).default('draft')

interface ExportOptions {
  from: ComparedVersion
  force: boolean
}

async function exportInto(folder: string, { from, force }: ExportOptions): Promise<number> {
  const there = await readOrNothing(folder)
  refuseFaults(there, 'Nothing was written. Where they are not files of the policy, give another folder.')
  const taken = new Map<string, string>()
  for (const { path, value } of there.files) {
    const head = readHead(value, (_part, why) => {
      throw new PolicyError(`${path}: ${why} Nothing was written.`)
    })
    if (head !== null) taken.set(keyOf(head.kind, head.name), path)
  }
  if (taken.size > 0 && !force)
    throw new PolicyError(`${folder} has ${countOf(taken.size, 'file')} of policy; --force replaces them.`)
  const { documents, notes } = await ask('read', (ctx) => exportVersion(ctx, from))
  const paths = choosePaths(documents, taken)
  const known = new Map(there.files.map(({ path, value }) => [path, JSON.stringify(value)]))
  let written = 0
  try {
    for (const { kind, document } of documents) {
      const path = paths.get(keyOf(kind, document.name))!
      // A file with the same content is not written again, so that comments in it are kept.
      if (known.get(path) === JSON.stringify(document)) continue
      await writeWhole(folder, path, formatYaml(document))
      written++
    }
    const gone = [...taken].filter(([key]) => !paths.has(key))
    for (const [, path] of gone) await rm(join(folder, path))
    print([
      `${folder}: ${countOf(documents.length, 'object')} of the ${from} policy. Files written: ${written}, removed: ${gone.length}.`,
      ...(notes.length > 0 ? ['Not in the files:', ...notes.map((note) => `  ${escapeText(note)}`)] : []),
    ])
  } catch (error) {
    throw new PolicyError(`${folder} cannot be written: ${inWords(error)}. ${countOf(written, 'file')} written before.`)
  }
  return FINE
}

interface DiffOptions {
  against: ComparedVersion
  onlyFiles: boolean
}

async function diffWith(folder: string, options: DiffOptions): Promise<number> {
  const work = (ctx: Context, { files }: Folder, judge: JudgeRequests | null) =>
    compareWithPce(ctx, files, options, judge)
  const { faults, differences, effects, same, refusal } = await ask('read', work, folder)
  if (faults.length > 0) throw faulty(faults, 'Nothing was compared.')
  print([
    ...(differences.length === 0 ? [] : [`--- the ${options.against} policy`, `+++ ${escapeText(folder)}`]),
    ...differences.flatMap((one) => showDifference(one, effects.get(one))),
    showTally(differences, same),
    ...showRefusal(refusal),
  ])
  return differences.length === 0 ? FINE : DIFFERS
}

interface ApplyOptions {
  dryRun: boolean
  prune: boolean
}

async function apply(folder: string, options: ApplyOptions): Promise<number> {
  const applied: Applied = { written: [], notWritten: [] }
  const { dryRun } = options
  const work = async (ctx: Context, { files }: Folder, judge: JudgeRequests | null) => {
    const done = await applyToDraft(ctx, files, options, applied, judge)
    if (done.faults.length > 0) throw faulty(done.faults, 'Nothing was written.')
    return done
  }
  let done
  try {
    done = await ask(dryRun ? 'read' : 'write', work, folder)
  } catch (error) {
    if (applied.written.length > 0 || applied.stopped !== undefined) print(showHalf(applied))
    throw error
  }
  const { planned, effects, same, left, refusal } = done
  print([
    ...planned.flatMap((one) => showDifference(one, effects.get(one))),
    ...showRemarks(done),
    ...showRefusal(refusal),
    ...(dryRun
      ? [`Would write ${countOf(planned.length, 'object')}; ${same} are as the files say. Nothing was written.`]
      : [`Written: ${countOf(planned.length, 'object')}; ${same} were as the files say. Nothing was provisioned.`]),
  ])
  if (refusal !== null) return TROUBLE
  if (dryRun || planned.length === 0) return FINE
  print(showLook(left))
  return left.length === 0 ? FINE : TROUBLE
}

async function readOrNothing(folder: string): Promise<Folder> {
  try {
    return await readFolder(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { files: [], faults: [] }
    throw new PolicyError(`${folder} cannot be read: ${inWords(error)}`)
  }
}

/** Maximum number of faults that are printed. */
const MOST_FAULTS = 100

function faulty(faults: readonly Fault[], end: string): PolicyError {
  const shown = faults.slice(0, MOST_FAULTS).map(({ place, why }) => `${place}: ${why}`)
  const more = faults.length > MOST_FAULTS ? [`${faults.length - MOST_FAULTS} more.`] : []
  process.stderr.write([...shown, ...more].map((line) => `${escapeText(line)}\n`).join(''))
  return new PolicyError(`${countOf(faults.length, 'fault')} in the files. ${end}`)
}

function refuseFaults({ faults }: Folder, end: string): void {
  if (faults.length > 0) throw faulty(faults, end)
}

/**
 * Reads the files of a folder, and does the work on the PCE as one tool call.
 * @throws {PolicyError} if the folder has no files or faulty ones, or if the tool call is refused or fails.
 */
async function ask<T>(
  effect: ToolEffect,
  work: (ctx: Context, files: Folder, judge: JudgeRequests | null) => Promise<T>,
  folder?: string,
): Promise<T> {
  const files = folder === undefined ? { files: [], faults: [] } : await readOrNothing(folder)
  refuseFaults(files, 'Nothing was compared or written.')
  if (folder !== undefined && files.files.length === 0)
    throw new PolicyError(`there are no YAML files in ${folder}. Nothing was compared or written.`)
  const config = await readSettings(effect)
  const log = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel)
  for (const warning of config.warnings) alwaysSaid(log).warn(warning)
  let result: { value: T } | undefined
  let refused: PolicyError | undefined
  const tool = defineTool({
    name: `policy-${effect}`,
    summary: 'The command svc-mcp policy.',
    effect,
    toolset: 'rules',
    roles: ['admin'],
    requiresPce: true,
    requiresConfirm: false,
    input: NoArguments,
    output: Ended,
    example: {},
    async handler(_args, ctx) {
      try {
        result = { value: await work(ctx, files, composed.judge) }
        return { message: 'Done.' }
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        refused = error
        throw new ToolError('invalid_argument', error.message)
      }
    },
  })
  const listed = { ...tool, schemas: () => ({}) as never, load: () => Promise.resolve(tool) }
  const composed = composeUnauthenticated(config, { tools: [listed], log })
  const dispatcher = createDispatcher({ ...composed.dispatcher, log: withoutCalls(log) })
  const interrupt = () => dispatcher.abortAll()
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  try {
    const call = {
      name: tool.name,
      arguments: {},
      requestId: randomUUID(),
      sender: new AbortController(),
      progress: ({ progress, total }: { progress: number; total?: number }) => {
        if (process.stderr.isTTY) process.stderr.write(`${progress} of ${total ?? '?'} requests\n`)
      },
    }
    const answer = await dispatcher.dispatch(call, composed.callerContext)
    if (answer.ok && result !== undefined) return result.value
    if (refused !== undefined) throw refused
    const { message, hint } = answer.ok ? { message: 'the command ended without a result' } : answer.error
    throw new PolicyError(hint === undefined ? message : `${message} ${hint}`)
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
    dispatcher.audit?.close()
    composed.callerContext.pce?.close()
    await composed.close()
  }
}

/** Suppresses the log line of the tool call, because the person at the shell sees its outcome anyway. */
function withoutCalls(log: ServerLog): ServerLog {
  const unless = (level: keyof ServerLog) => (facts: object, message: string) =>
    message === 'tool call' ? undefined : log[level](facts, message)
  return { debug: unless('debug'), info: unless('info'), warn: unless('warn'), error: unless('error') }
}

/**
 * Reads the server's settings for use in a shell. Confirmations are left out, because they are meant for assistants
 * (D121). If MCP_READ_ONLY is set, the command does not write either, because an assistant that has a shell can run
 * this command too.
 */
async function readSettings(effect: ToolEffect): Promise<StdioConfig> {
  const { env, ...found } = readEnvironment()
  await checkPathsAnswer(pathsIn(env))
  const config = readConfig('stdio', env, {
    found,
    check: (config) => ({ faults: findFileFaults(config), warnings: [] }),
  })
  const { confirm: _asks, offer, tracing: _spans, ...own } = config
  if (effect !== 'read' && offer?.readOnly === true)
    throw new PolicyError('MCP_READ_ONLY is set, so apply writes nothing. --dry-run shows what it would write.')
  return own
}

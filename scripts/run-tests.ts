/**
 * `npm test`: runs every `*.test.ts` below `test/`, or what is named, on the Node.js that runs this script; tells each file as it ends
 * and each failure with its details, and ends with the plain line `N passed, N failed`. `--help` lists the options.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Result } from 'tap-parser'
import { summaryLine } from './count-assertions.js'
import { compileSuite } from './suite/compile-tests.js'
import { runSuite } from './suite/run-suite.js'

const HELP = `npm test [-- [--timeout=SECONDS] [--jobs=N] [FILE or FOLDER ...]]

  --timeout=SECONDS  how long one file may take (120)
  --jobs=N           processes that run files side by side (5)
`

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = readArguments()
const timeoutMs = Number(values.timeout) * 1000
const files = positionals.length === 0 ? listTests(join(root, 'test')) : positionals.flatMap(findTests)
// The largest first: the run ends when the last process does, and a long file that starts last would be alone.
const sizes = new Map(files.map((name) => [name, sizeOf(name)]))
files.sort((one, other) => sizes.get(other)! - sizes.get(one)!)

console.log(`Node.js ${process.version}, ${files.length} ${files.length === 1 ? 'file' : 'files'}`)
const started = Date.now()
const suite = await compileSuite(root)
process.on('exit', () => suite.remove())

const counts = await runSuite(
  files.map((name) => ({ name, url: suite.urlOf(name), timeoutMs })),
  {
    root,
    folder: suite.folder,
    worker: suite.urlOf('scripts/suite/run-test-files.ts'),
    jobs: Number(values.jobs),
    failure: (result) => console.log(`\nFAILED  ${result.fullname}\n${detailsOf(result)}\n`),
    lost: (name, how) => console.log(`\nFAILED  ${name}\n        its process ${how}\n`),
    file: ({ name, time }, { passed, failed, skipped }) => {
      const tally = `${passed} passed${failed === 0 ? '' : `, ${failed} failed`}${skipped === 0 ? '' : `, ${skipped} skipped`}`
      console.log(
        `${failed === 0 ? 'ok    ' : 'FAILED'}  ${name.padEnd(44)} ${(Number(time) / 1000).toFixed(1).padStart(6)} s  ${tally}`,
      )
    },
  },
)
console.log(
  `${Math.round((Date.now() - started) / 1000)} s${counts.skipped === 0 ? '' : `, ${counts.skipped} skipped`}`,
)
if (positionals.length === 0 && counts.failed === 0)
  console.log(
    'Shown: every tool and both transports against a simulated PCE. `npm run test:long` and `test:edge` are the slow proofs.',
  )
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

function readArguments() {
  const number = { type: 'string' } as const
  const options = {
    timeout: { ...number, default: '120' },
    jobs: { ...number, default: '5' },
    help: { type: 'boolean', short: 'h' },
  } as const
  try {
    const read = parseArgs({ options, allowPositionals: true })
    const wrong = (['timeout', 'jobs'] as const).find((name) => !/^[1-9]\d{0,5}$/.test(read.values[name]))
    if (wrong !== undefined) throw new Error(`--${wrong} takes a whole number from 1 on`)
    if (read.values.help !== true) return read
    console.log(HELP)
    process.exit(0)
  } catch (error) {
    return refuse(`${(error as Error).message}\n\n${HELP}`)
  }
}

/** Bytes of a test file, with those of the folder that is named after it. */
function sizeOf(name: string): number {
  const path = join(root, name)
  const folder = path.replace(/\.[^/]*$/, '')
  const parts = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  return [path, ...parts.map((part) => join(folder, part))].reduce((sum, part) => sum + statSync(part).size, 0)
}

/** The files that an argument names, relative to the root: a file whatever its kind, or the tests of a folder. */
function findTests(argument: string): string[] {
  const path = resolve(argument)
  if (!existsSync(path)) return refuse(`There is no ${argument}`)
  if (relative(join(root, 'test'), path).startsWith('..')) return refuse(`${argument || 'The root'} is not below test/`)
  if (statSync(path).isFile() && !path.endsWith('.ts')) return refuse(`${argument} is not a test file (.ts)`)
  return statSync(path).isDirectory() ? listTests(path) : [relative(root, path)]
}

function listTests(folder: string): string[] {
  // Packages that are installed beside their users bring tests of their own.
  const isTest = (name: string) => name.endsWith('.test.ts') && !name.includes('node_modules')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isTest)
  return names.length === 0 ? refuse(`No tests in ${folder}`) : names.map((name) => relative(root, join(folder, name)))
}

function refuse(message: string): never {
  console.error(message)
  console.log(summaryLine({ passed: 0, failed: 1 }))
  process.exit(1)
}

/** What tap knows about a failure, without the lines about how the test file was started. */
function detailsOf({ diag }: Result): string {
  if (diag === null || typeof diag !== 'object') return '        no details; see standard error above'
  const { at, source, diff, stack, ...rest } = diag as Record<string, unknown>
  const { fileName, lineNumber } = (at ?? {}) as { fileName?: string; lineNumber?: number }
  const kept = Object.entries(rest).filter(
    ([key]) => !['stdio', 'cwd', 'externalID', 'command', 'args', 'jobId'].includes(key),
  )
  const parts = [
    fileName === undefined ? '' : `${fileName}:${lineNumber}`,
    source,
    diff,
    stack,
    ...kept.map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
  ]
  return parts
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .map((part) => part.trimEnd().replace(/^/gm, '        '))
    .join('\n')
}

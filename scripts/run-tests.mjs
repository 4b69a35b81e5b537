/**
 * `npm test` runs every `*.test.ts` below `test/`, or the named tests, on the Node.js that runs this script. It is a
 * tap program, which starts test processes side by side, shows the failures and ends with the line `N passed, N
 * failed`. `--help` lists options and suites. In a fresh clone, it first installs the packages. For this reason,
 * modules that use packages are imported only after that.
 */
import './ensure-install.mjs'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { bundlePictures } from './bundle-pictures.mjs'
import { FIRST, SUITES } from './suite/suites.mjs'

const environment = { ...process.env }
const HELP = `npm test [-- [--timeout=SECONDS] [--jobs=N] [FILE, FOLDER or SUITE ...]]

  --timeout=SECONDS  how long one file may take (900)
  --jobs=N           processes that run files side by side (4, for suites that start much by themselves 3 or 2)

  Suites: ${Object.keys(SUITES).join(', ')} (scripts/suite/suites.mjs says what they are for)
`
/** The time, after a file's own limit, in which tap can end a file that only waits and say where it waits. */
const GRACE_SECONDS = 5
/** The time limit of a process with several files, even if the sum of their own limits is larger. */
const LONGEST_PROCESS_SECONDS = 3600
/** The free space in bytes that a file system in memory must have for the temporary files of the tests. */
const SCRATCH_BYTES = 2 ** 30
/** Maximum number of characters that are shown of one detail of a failure. */
const LONGEST_DETAIL = 10_000

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = readArguments()
const suites = positionals.filter((name) => name in SUITES).map((name) => SUITES[name])
const files = positionals.length === 0 ? listTests(join(root, 'test')) : positionals.flatMap(findTests)

// Arguments are refused before the packages are loaded, which takes a second.
// If CI is set, the reporter would write the failures after the last line of a run.
process.env.CI = 'false'
const { report } = await import('@tapjs/reporter')
const { default: t } = await import('tap')
// Each file has its own time limit. tap's limit of 30 s is not used, because it would also count the compilation.
t.setTimeout(0)
const { compileSuite } = await import('./suite/compile.mjs')

console.log(`Node.js ${process.version}, ${files.length} ${files.length === 1 ? 'file' : 'files'}`)
const limitMs = Number(values.timeout) * 1000
const [suite] = await Promise.all([compileSuite(root), bundlePictures(root)])
mkdirSync(join(suite.folder, 'taken'))
const scratch = scratchFolder()
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    console.error(`Ended by ${signal}`)
    process.exit(1)
  })
}

t.register()
t.jobs = Number(values.jobs ?? suites[0]?.jobs ?? 4)
t.on('complete', ({ ok }) => {
  const { pass, fail } = t.counts
  const failed = ok && pass > 0 ? 0 : Math.max(1, fail)
  process.once('exit', () => console.log(`\n${pass} passed, ${failed} failed`))
})
await report('min', t)
await runAll([...new Set(files)])

/**
 * Runs all files. Each slow file runs in its own process. Quick files share a few processes, because loading tap, the
 * packages and the sources takes longer than most files; a process takes the next file when it has finished one. The
 * files in FIRST start first, then the largest files, so that all processes end at about the same time.
 */
async function runAll(names) {
  const order = names
    .map((name) => ({ name, bytes: FIRST.includes(name) ? Number.MAX_SAFE_INTEGER : statSync(join(root, name)).size }))
    .sort((a, b) => b.bytes - a.bytes)
  const largestFirst = order.map(({ name }) => name)
  const quick = largestFirst.filter(isQuick)
  const left = new Set(names)
  const runs = largestFirst.filter((name) => !isQuick(name)).map((name) => runFiles(name, [name], left))
  const jobs = Math.min(quick.length, t.jobs)
  // A run with random delays can be repeated only if the same files run in the same processes.
  const isFixed = process.env.SHAKE_SEED !== undefined
  const shared = Array.from({ length: jobs }, (_, index) =>
    runFiles(`process ${index + 1}`, isFixed ? quick.filter((_, at) => at % jobs === index) : quick, left),
  )
  await Promise.all([...runs, ...shared])
  for (const file of left) {
    tell(false, file, 'not run, because its process had ended')
    t.fail(`${file} was not run`)
  }
}

/**
 * Returns the folder for the temporary files of quick tests, which is in memory if there is room for them. Each server
 * that a test starts writes its state through to the disk a dozen times, and all tests together would wait for a disk
 * about as long as they compute.
 */
function scratchFolder() {
  if (!isInMemory('/dev/shm')) return tmpdir()
  const folder = mkdtempSync('/dev/shm/svc-mcp-test-')
  // A database server runs as another user, who has to pass through to its own folder.
  chmodSync(folder, 0o711)
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Returns true if a folder is a file system in memory with free space for all tests, from which programs may be run. */
function isInMemory(folder) {
  try {
    const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
    const [, , type, options] = mounts.map((line) => line.split(' ')).find(([, place]) => place === folder) ?? []
    if (type !== 'tmpfs' || !options.startsWith('rw') || options.split(',').includes('noexec')) return false
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= SCRATCH_BYTES
  } catch {
    return false
  }
}

function processSeconds(files) {
  const seconds = Number(values.timeout)
  return Math.min(files * seconds, Math.max(seconds, LONGEST_PROCESS_SECONDS))
}

/**
 * Starts a process that runs these files, except for files that other processes take, and reports each file when it
 * ends.
 */
async function runFiles(title, names, left) {
  const run = t.spawn(
    'env',
    [
      // tap adds a preload to NODE_OPTIONS. It is removed here, because processes that tests start must not have it.
      `NODE_OPTIONS=${process.env.NODE_OPTIONS ?? ''}`,
      process.execPath,
      // Tests produce so much garbage that with Node.js's default size of the young generation, the collector would run
      // all the time. The option is in MB.
      ...['--enable-source-maps', '--max-semi-space-size=64', '--single-threaded-gc'],
      // A quick file runs most of its code only a few times. With this option, V8 optimises a function only after
      // fifteen times as much executed bytecode as by default, which saves a fifth of the processor time. Later
      // versions of Node.js do not have the option. Until a function is optimised, it runs as code from V8's quickest
      // compiler instead of bytecode, which saves another sixteenth.
      ...(names.every(isQuick) && process.version.startsWith('v20.')
        ? ['--interrupt-budget=1000000', '--always-sparkplug']
        : []),
      suite.compiled(join(root, 'scripts/suite/run-files.ts')),
      // tap names the folders of fixtures after these arguments.
      title,
    ],
    {
      at: null,
      stack: '',
      buffered: true,
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...environment,
        ...Object.assign({}, ...suites.map(({ env }) => env)),
        SVC_MCP_SUITE_FOLDER: suite.folder,
        ...(names.every(isQuick) && { TMPDIR: scratch }),
        FILE_LIMIT: limitMs,
        TEST_FILES: JSON.stringify(urlsOf(names)),
        // The time limit of a single file cannot end a process that is completely busy, so the process has a limit too.
        TAP_TIMEOUT: String(processSeconds(names.length) + GRACE_SECONDS),
        TAKEN_FILES: join(suite.folder, 'taken'),
      },
    },
    title,
  )
  shortenDiffs(run.subtest.parser)
  run.subtest.parser.on('child', (file) =>
    file.on('complete', ({ ok, pass, count, time }) => {
      left.delete(file.name)
      tell(ok && count > 0, file.name, `${(time / 1000).toFixed(1).padStart(6)} s  ${pass} passed`)
    }),
  )
  await run
  const { signal } = run.subtest.options
  if (signal) console.log(`        ${signal} ended ${title}`)
}

/**
 * Shortens the differences in failures, because the reporter takes hours to format the difference of two pages of a
 * megabyte.
 */
function shortenDiffs(parser) {
  parser.on('child', shortenDiffs)
  parser.on('assert', ({ diag }) => {
    for (const [name, value] of Object.entries(diag ?? {}))
      if (typeof value === 'string' && value.length > LONGEST_DETAIL) diag[name] = `${value.slice(0, LONGEST_DETAIL)}…`
  })
}

function tell(ok, file, words) {
  console.log(`${ok ? 'ok    ' : 'FAILED'}  ${file.padEnd(50)} ${words}`)
}

function urlsOf(names) {
  return names.map((name) => ({ name, url: pathToFileURL(suite.compiled(join(root, name))).href }))
}

function readArguments() {
  const options = {
    timeout: { type: 'string', default: '900' },
    jobs: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  }
  try {
    const read = parseArgs({ options, allowPositionals: true })
    const wrong = ['timeout', 'jobs'].find((name) => !/^[1-9]\d{0,5}$/.test(read.values[name] ?? '1'))
    if (wrong !== undefined) throw new Error(`--${wrong} takes a whole number from 1 on`)
    if (read.values.help !== true) return read
    console.log(HELP)
    process.exit(0)
  } catch (error) {
    return refuse(`${error.message}\n\n${HELP}`)
  }
}

/**
 * Lists the files that an argument names, relative to the root: the files of a suite, a single file of any type, or the
 * tests in a folder.
 */
function findTests(argument) {
  if (argument in SUITES) {
    const { matching, paths = [] } = SUITES[argument]
    const matched = matching === undefined ? [] : listFiles(join(root, 'test')).filter((name) => matching.test(name))
    return [...matched, ...paths.flatMap(findTests)]
  }
  const path = resolve(root, argument)
  if (!existsSync(path)) return refuse(`There is no ${argument}`)
  if (relative(join(root, 'test'), path).startsWith('..')) return refuse(`${argument || 'The root'} is not below test/`)
  if (statSync(path).isDirectory()) return listTests(path)
  return path.endsWith('.ts') ? [relative(root, path)] : refuse(`${argument} is not a test file (.ts)`)
}

function isQuick(name) {
  return name.endsWith('.test.ts')
}

function listTests(folder) {
  const names = listFiles(folder).filter(isQuick)
  return names.length === 0 ? refuse(`No tests in ${folder}`) : names
}

function listFiles(folder) {
  return (
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      // Packages that are installed in the folder of the tests contain tests of their own, which are not run.
      .filter((name) => !name.includes('node_modules'))
      .map((name) => relative(root, join(folder, name)))
  )
}

function refuse(message) {
  console.error(message)
  console.log('0 passed, 1 failed')
  process.exit(1)
}

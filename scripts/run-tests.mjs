/**
 * `npm test`: every `*.test.ts` below `test/`, or what is named, on the Node.js that runs this script. A tap program: it starts programs
 * of test files side by side, shows what failed, and ends with the line `N passed, N failed`. `--help` lists the options.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { report } from '@tapjs/reporter'
import t from 'tap'
import { compileSuite } from './suite/compile.mjs'
import { SUITES } from './suite/suites.mjs'

const HELP = `npm test [-- [--timeout=SECONDS] [--jobs=N] [FILE or FOLDER ...]]

  --timeout=SECONDS  how long one file may take (900)
  --jobs=N           processes that run files side by side (3)
  --suite=NAME       also the files of a suite: ${Object.keys(SUITES).join(', ')}
`
/** Test files of a room that share a process, which loads tap, the packages and the sources once. */
const FILES_PER_PROCESS = 12
/** In which tap itself ends a file that only waits, and says where it stood. */
const GRACE_SECONDS = 5

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = readArguments()
const asked = [...(SUITES[values.suite] ?? []), ...positionals]
const files = asked.length === 0 ? listTests(join(root, 'test')) : asked.flatMap(findTests)

console.log(`Node.js ${process.version}, ${files.length} ${files.length === 1 ? 'file' : 'files'}`)
const limitMs = Number(values.timeout) * 1000
const suite = await compileSuite(root)
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    console.error(`Ended by ${signal}`)
    process.exit(1)
  })
}

t.register()
t.setTimeout(0)
t.jobs = Number(values.jobs)
t.on('complete', ({ ok }) => {
  const { pass, fail } = t.counts
  const failed = ok && pass > 0 ? 0 : Math.max(1, fail)
  process.once('exit', () => console.log(`\n${pass} passed, ${failed} failed`))
})
// What each process runs, to be named when it dies.
const running = new Map()
t.on('spawn', (spawned) =>
  spawned.on('process', (child) => child.on('message', ({ file }) => file && running.set(spawned, file))),
)
await report('min', t)
for (const [name, group] of groupFiles(files)) void runGroup(name, group)

/** Rooms in the order of their weight: the suite ends with the last process, and a long one that starts last would be alone. */
function groupFiles(names) {
  const rooms = new Map()
  for (const name of [...new Set(names)].sort()) {
    // The long suites are of a few minutes a file, and need nothing of each other.
    const key = name.endsWith('.test.ts') ? dirname(name) : name
    rooms.set(key, [...(rooms.get(key) ?? []), name])
  }
  return [...rooms]
    .flatMap(([room, all]) => {
      const parts = Math.ceil(all.length / FILES_PER_PROCESS)
      return Array.from({ length: parts }, (_, part) => {
        const title = parts === 1 ? room : `${room} (${part + 1} of ${parts})`
        return [title, all.filter((_name, index) => index % parts === part)]
      })
    })
    .sort(([, one], [, other]) => bytesOf(other) - bytesOf(one))
}

function bytesOf(names) {
  return names.reduce((sum, name) => sum + statSync(join(root, name)).size, 0)
}

async function runGroup(title, names) {
  const started = Date.now()
  const run = t.spawn(
    'env',
    [
      // tap adds a preload that follows every process into the ones it starts; what the tests start must run as it does without them.
      `NODE_OPTIONS=${process.env.NODE_OPTIONS ?? ''}`,
      process.execPath,
      // Room for what a test throws away (in MB): the collector would run all the time in the little that Node.js gives it.
      ...['--enable-source-maps', '--max-semi-space-size=64', '--single-threaded-gc'],
      suite.compiled(join(root, 'scripts/suite/run-files.ts')),
      // tap names the folders of fixtures for the arguments.
      title,
    ],
    {
      at: null,
      stack: '',
      buffered: true,
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        SVC_MCP_SUITE_FOLDER: suite.folder,
        FILE_LIMIT: limitMs,
        TEST_FILES: JSON.stringify(urlsOf(names)),
        // Each file has its own limit, which a process that no longer listens to anything overlooks.
        TAP_TIMEOUT: String(names.length * Number(values.timeout) + GRACE_SECONDS),
      },
    },
    title,
  )
  const { ok } = await run
  const seconds = ((Date.now() - started) / 1000).toFixed(1)
  const { pass } = run.subtest.counts
  const { signal } = run.subtest.options
  console.log(`${ok ? 'ok    ' : 'FAILED'}  ${title.padEnd(45)} ${seconds.padStart(6)} s  ${pass} passed`)
  if (signal) console.log(`        ${signal} ended the process while ${running.get(run.subtest)} ran`)
}

function urlsOf(names) {
  return names.map((name) => ({ name, url: pathToFileURL(suite.compiled(join(root, name))).href }))
}

function readArguments() {
  const options = {
    timeout: { type: 'string', default: '900' },
    jobs: { type: 'string', default: '3' },
    suite: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  }
  try {
    const read = parseArgs({ options, allowPositionals: true })
    const wrong = ['timeout', 'jobs'].find((name) => !/^[1-9]\d{0,5}$/.test(read.values[name]))
    if (wrong !== undefined) throw new Error(`--${wrong} takes a whole number from 1 on`)
    if (read.values.suite !== undefined && !(read.values.suite in SUITES))
      throw new Error(`--suite: ${Object.keys(SUITES).join(' or ')}`)
    if (read.values.help !== true) return read
    console.log(HELP)
    process.exit(0)
  } catch (error) {
    return refuse(`${error.message}\n\n${HELP}`)
  }
}

/** The files that an argument names, relative to the root: a file whatever its kind, or the tests of a folder. */
function findTests(argument) {
  const path = resolve(root, argument)
  if (!existsSync(path)) return refuse(`There is no ${argument}`)
  if (relative(join(root, 'test'), path).startsWith('..')) return refuse(`${argument || 'The root'} is not below test/`)
  if (statSync(path).isDirectory()) return listTests(path)
  return path.endsWith('.ts') ? [relative(root, path)] : refuse(`${argument} is not a test file (.ts)`)
}

function listTests(folder) {
  // Packages that are installed beside their users bring tests of their own.
  const isTest = (name) => name.endsWith('.test.ts') && !name.includes('node_modules')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isTest)
  return names.length === 0 ? refuse(`No tests in ${folder}`) : names.map((name) => relative(root, join(folder, name)))
}

function refuse(message) {
  console.error(message)
  console.log('0 passed, 1 failed')
  process.exit(1)
}

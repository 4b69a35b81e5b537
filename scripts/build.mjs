/**
 * `npm run build` compiles everything that is shipped into a new folder below dist/, named after a hash of its sources.
 * Then the entry files that package.json names are replaced one by one, each atomically, so that they refer to that
 * folder. Thus dist/ is complete at every moment, an interrupted build changes nothing, and a running program keeps the
 * parts that it loads later (D106). If dist/ is current, nothing is done; with `--quiet`, there is no message about
 * this. Messages go to standard error, because `npm pack --json` promises JSON on standard output.
 */
import './ensure-install.mjs'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleCatalogue } from './bundle-catalogue.mjs'
import { bundlePictures } from './bundle-pictures.mjs'

const NOT_SHIPPED = new Set(['deploy', 'dist', 'docs', 'data', 'node_modules', 'scripts', 'test', 'test-artifacts'])
/** The data files that the programs read when they first need them. */
const DATA_FILES = [
  'domain/traffic/providers/provider-ranges.json',
  'pictures/generated/app.js',
  'pictures/generated/page.js',
]
/** The rooms in which Markdown files in subfolders are data, too. A README beside the code is not data. */
const TEXT_ROOMS = ['knowledge']
/** The TypeScript configuration for the types of the PCE client. */
const DECLARATIONS = 'pce-client/tsconfig.build.json'
/** The files that determine a build in addition to its sources and data. */
const RECIPE = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  DECLARATIONS,
  'scripts/build.mjs',
  'scripts/bundle-catalogue.mjs',
]
// Each program is bundled into one file and further parts that it loads later. Code that several programs need is in
// shared parts. Without bundling, a client would have to wait at every start until some 600 small modules are found and
// read; without sharing, the package would contain the same code twice.
const PROGRAMS = {
  stdio: 'programs/stdio.ts',
  http: 'programs/http.ts',
  worker: 'programs/worker.ts',
  'pce-client/index': 'pce-client/index.ts',
}
/** The oldest Node.js that the bundles have to run on, in esbuild's form. */
const TARGET = 'node20.19'
/** The simulator, which is bundled separately, because the image of the server does not contain it. */
const SIMULATOR = 'pce-simulator/pce-sim'
/**
 * The packages that are bundled with the stdio program, because people wait for its start. All other packages are
 * loaded from node_modules when a program needs them.
 */
const BUNDLED = [
  '@sinclair/typebox',
  '@streamparser/json',
  'canonicalize',
  'close-with-grace',
  'commander',
  'csv-parse',
  'd3-force',
  'fastest-levenshtein',
  'ipaddr.js',
  'longest-prefix-match',
  'lru-cache',
  'pino',
  'semver',
]
/**
 * The time, in milliseconds, for which a replaced build is kept, because programs that were started from it may still
 * load parts of it.
 */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const { bin, exports, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const found = Object.keys(dependencies).filter((name) => !BUNDLED.includes(name))

await bundlePictures(root)
const sources = listSources()
const data = [...DATA_FILES, ...TEXT_ROOMS.flatMap(listTexts)]
const id = hashOf([...sources, ...data, ...RECIPE])
const home = join(dist, id)
const doors = doorsTo(id)

if (existsSync(home) && [...doors].every(([path, text]) => readIfThere(join(root, path)) === text)) {
  if (!process.argv.includes('--quiet')) say(`dist/ is current (${id}).`)
} else {
  const started = Date.now()
  say('Building …')
  if (!existsSync(home)) await compileInto(home)
  openDoors()
  say(`Built in ${((Date.now() - started) / 1000).toFixed(1)} s.`)
}
sweep()

/** Compiles everything into a folder beside `folder`, which is renamed to `folder` when it is complete. */
async function compileInto(folder) {
  const scratch = join(dist, `.unfinished-${process.pid}`)
  rmSync(scratch, { recursive: true, force: true })
  mkdirSync(scratch, { recursive: true })
  const declared = emitDeclarations(scratch)
  // In a fresh clone, this package is only available after the install at the beginning of this program.
  const { build, transform } = await import('esbuild')
  const { minify } = await import('oxc-minify')
  const catalogue = await bundleCatalogue(root, scratch)
  const common = {
    absWorkingDir: root,
    outdir: scratch,
    outbase: '.',
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: TARGET,
    logLevel: 'warning',
    // Whitespace is removed, because indentation is an eighth of the package, and statements are shortened, which is a
    // hundredth. Lines stay so short that Node.js can show one in a stack trace.
    minifySyntax: true,
    minifyWhitespace: true,
    lineLimit: 200,
    // Bundled CommonJS packages still load Node's own modules with require.
    plugins: [catalogue, shortenNames(transform)],
    banner: { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" },
  }
  const buildPrograms = async () => {
    const { outputFiles } = await build({
      ...common,
      entryPoints: PROGRAMS,
      chunkNames: 'parts/[name]-[hash]',
      splitting: true,
      external: found,
      write: false,
    })
    await Promise.all(outputFiles.map(shortenVariables))
  }
  /**
   * Writes a part with shorter names of variables, which are a tenth of its size. The names of functions and classes
   * and everything at the top level keep theirs, because people read them in stack traces.
   */
  const shortenVariables = async ({ path, text }) => {
    const mangle = { toplevel: false, keepNames: { function: true, class: true } }
    const { code, errors } = await minify(path, text, { compress: false, mangle })
    if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`)
    const { code: lines } = await transform(code, {
      minifyWhitespace: true,
      lineLimit: common.lineLimit,
      target: TARGET,
    })
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, lines)
  }
  await Promise.all([
    buildPrograms(),
    // Names are shortened in the simulator, where nobody needs them in a report: they are a sixth of its size.
    build({ ...common, entryPoints: [`${SIMULATOR}.ts`], packages: 'external', minifyIdentifiers: true }),
  ])
  for (const file of data) cpSync(join(root, file), join(scratch, file))
  const status = await declared
  if (status !== 0) {
    // Removed only when everything is written; the bundler's own process would create the folder again.
    rmSync(scratch, { recursive: true, force: true })
    process.exit(status)
  }
  try {
    renameSync(scratch, folder)
  } catch (error) {
    // Another build of the same sources was completed in the meantime.
    if (!existsSync(folder)) throw error
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Creates the plugin that shortens the names inside bundled packages, whose stack traces are not ours to read. */
function shortenNames(transform) {
  const load = async ({ path }) => {
    const { code } = await transform(readFileSync(path, 'utf8'), { minifyIdentifiers: true, target: TARGET })
    return { contents: code, loader: 'js' }
  }
  return { name: 'shorten-names', setup: (build) => void build.onLoad({ filter: /node_modules.*\.[cm]?js$/ }, load) }
}

/** Emits the types of the PCE client, which other programs import. Resolves with the exit status of the compiler. */
async function emitDeclarations(folder) {
  const tsc = ['node_modules/typescript/bin/tsc', '-p', DECLARATIONS, '--outDir', folder]
  // tsc reports on standard output, which is redirected to the standard error of this process.
  const [status] = await once(spawn(process.execPath, tsc, { cwd: root, stdio: ['ignore', 2, 2] }), 'exit')
  return status ?? 1
}

/** Returns the entry files that package.json names, by path, with a text that re-exports the build `target`. */
function doorsTo(target) {
  const leadIn = (path) => {
    const there = posix.relative(posix.dirname(path), posix.join('dist', target, posix.relative('dist', path)))
    return there.startsWith('.') ? there : `./${there}`
  }
  const programs = Object.values(bin).map((path) => [path, `#!/usr/bin/env node\nimport '${leadIn(path)}'\n`])
  const modules = Object.values(exports).flatMap(({ types, default: code }) => {
    // The declarations also import from the path of their JavaScript file.
    const text = `export * from '${leadIn(posix.normalize(code))}'\n`
    return [code, types].map((path) => [posix.normalize(path), text])
  })
  return new Map([...programs, ...modules])
}

/** Replaces each entry file atomically, so that at every moment each entry file refers to a complete build. */
function openDoors() {
  const before = new Set([...doors.keys()].map(buildBehind).filter((name) => name !== undefined && name !== id))
  for (const name of before) if (existsSync(join(dist, name))) utimesSync(join(dist, name), new Date(), new Date())
  // npm would pack all of dist/, so everything except this build is excluded.
  const packed = [`dist/${id}/**`, ...doors.keys()].map((path) => `!${path.slice('dist'.length)}`)
  replaceFile('dist/.npmignore', ['*', '!*/', ...packed, ''].join('\n'))
  for (const [path, text] of doors) replaceFile(path, text, Object.values(bin).includes(path) ? 0o755 : 0o644)
}

function replaceFile(path, text, mode = 0o644) {
  const fresh = join(dist, `.unfinished-${process.pid}`)
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(fresh, text)
  chmodSync(fresh, mode)
  renameSync(fresh, join(root, path))
}

/** Returns the name of the build to which an entry file refers. */
function buildBehind(path) {
  return /'(?:\.{1,2}\/)+([\da-f]{12})\//.exec(readIfThere(join(root, path)) ?? '')?.[1]
}

/**
 * Removes the remains of aborted builds, and replaced builds from which no program can still be running, including
 * builds with an older layout.
 */
function sweep() {
  const paths = [...doors.keys()]
  const kept = new Set([...paths, ...paths.map(dirname), `dist/${id}`, 'dist/.npmignore'])
  for (const folder of new Set(paths.map(dirname))) {
    for (const name of readdirSync(join(root, folder))) {
      if (kept.has(`${folder}/${name}`)) continue
      const path = join(root, folder, name)
      const [, maker] = /^\.unfinished-(\d+)$/.exec(name) ?? []
      if (maker === undefined ? Date.now() - statSync(path).mtimeMs < KEPT_MS : isRunning(Number(maker))) continue
      // A folder is renamed before it is removed, so that no incomplete build ever has the name of a build.
      const doomed = join(dist, `.unfinished-${process.pid}`)
      if (path !== doomed) renameSync(path, doomed)
      rmSync(doomed, { recursive: true, force: true })
    }
  }
}

function isRunning(pid) {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Lists every shipped source, relative to the root, with `/` between folders. */
function listSources() {
  const isSource = (name) => name.endsWith('.ts') && !name.endsWith('.d.ts')
  return readdirSync(root, { withFileTypes: true })
    .flatMap((entry) => {
      if (entry.isFile()) return isSource(entry.name) ? [entry.name] : []
      if (!entry.isDirectory() || entry.name.startsWith('.') || NOT_SHIPPED.has(entry.name)) return []
      const inside = readdirSync(join(root, entry.name), { recursive: true, encoding: 'utf8' })
      return inside.filter(isSource).map((name) => [entry.name, ...name.split(sep)].join('/'))
    })
    .sort()
}

function listTexts(room) {
  return readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && name.includes(sep))
    .map((name) => [room, ...name.split(sep)].join('/'))
    .sort()
}

function hashOf(paths) {
  const hash = createHash('sha256')
  for (const path of paths) {
    const content = readFileSync(join(root, path))
    hash.update(`${path}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex').slice(0, 12)
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function say(line) {
  process.stderr.write(`${line}\n`)
}

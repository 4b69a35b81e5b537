/**
 * Runs `npm ci` when node_modules is missing or not what package-lock.json asks for; does nothing otherwise. Plain JavaScript
 * without dependencies, because on a fresh clone there are none. Never writes to standard output: `npm run pce-sim` promises one
 * JSON line there. `--quiet` leaves out the line about the install; failures are always shown.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

if (!isInstalled()) {
  const say = process.argv.includes('--quiet') ? () => undefined : (line) => process.stderr.write(`${line}\n`)
  const started = Date.now()
  say('Installing dependencies (npm ci) …')
  // An inherited NODE_ENV=production would leave out what the tests and the build need.
  install(['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'])
  say(`Installed in ${Math.round((Date.now() - started) / 1000)} s.`)
}

/** Whether the tree that npm last wrote holds every package of the lock file, at the locked content. */
function isInstalled() {
  const wanted = packagesOf('package-lock.json')
  const present = packagesOf('node_modules/.package-lock.json') ?? {}
  if (wanted === undefined) return false
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (path === '') return true
    const found = present[path]
    // Optional packages of other platforms are locked but never installed here.
    if (found === undefined) return optional === true || devOptional === true
    return found.version === version && found.integrity === integrity
  })
}

/** The `packages` table of a lock file, or undefined where it does not exist or cannot be read. */
function packagesOf(lockFile) {
  try {
    return JSON.parse(readFileSync(`${root}${lockFile}`, 'utf8')).packages
  } catch {
    return undefined
  }
}

function install(args) {
  // The npm that started this script, which on Windows cannot be spawned by its plain name.
  const npm = process.env.npm_execpath
  const [command, prefix] = npm?.endsWith('npm-cli.js') === true ? [process.execPath, [npm]] : ['npm', []]
  const { status, error } = spawnSync(command, [...prefix, ...args], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status === 0) return
  process.stderr.write(`npm ci failed${error === undefined ? '' : `: ${error.message}`}\n`)
  process.exit(status ?? 1)
}

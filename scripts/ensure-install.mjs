/**
 * Runs `npm ci` if node_modules is missing or differs from package-lock.json; otherwise does nothing. If folders are
 * given as arguments, relative to the root, they are installed instead of the root. This is plain JavaScript without
 * dependencies, because a fresh clone has none. It never writes to standard output, because `npm run pce-sim` promises
 * a single JSON line there. `--quiet` suppresses the progress messages, but not failures.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/**
 * True if this module was started as the program. If another program imports it, the arguments belong to that program.
 */
const isProgram = process.argv[1] === fileURLToPath(import.meta.url)
const named = isProgram ? process.argv.slice(2).filter((argument) => !argument.startsWith('--')) : []
const say = process.argv.includes('--quiet') ? () => undefined : (line) => process.stderr.write(`${line}\n`)

for (const folder of named.length === 0 ? ['.'] : named) {
  if (isInstalled(folder)) continue
  const started = Date.now()
  say(`Installing ${folder === '.' ? 'dependencies' : `the packages of ${folder}`} (npm ci) …`)
  // Without `--include=dev`, an inherited NODE_ENV=production would omit packages that tests and builds need.
  install(folder, ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'])
  say(`Installed in ${Math.round((Date.now() - started) / 1000)} s.`)
}

/**
 * Returns true if the last installation by npm contains every package of the lock file, with the content that the lock
 * file states.
 */
function isInstalled(folder) {
  const wanted = packagesOf(folder, 'package-lock.json')
  const present = packagesOf(folder, 'node_modules/.package-lock.json') ?? {}
  if (wanted === undefined) return false
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (path === '') return true
    const found = present[path]
    // The lock file also contains optional packages for other platforms, which are never installed here.
    if (found === undefined) return optional === true || devOptional === true
    return found.version === version && found.integrity === integrity
  })
}

/** Returns the `packages` table of a lock file, or undefined if the file does not exist or cannot be read. */
function packagesOf(folder, lockFile) {
  try {
    return JSON.parse(readFileSync(join(root, folder, lockFile), 'utf8')).packages
  } catch {
    return undefined
  }
}

function install(folder, args) {
  // The npm that started the script is used, because npm cannot be started by its plain name on Windows.
  const npm = process.env.npm_execpath
  const [command, prefix] = npm?.endsWith('npm-cli.js') === true ? [process.execPath, [npm]] : ['npm', []]
  const { status, error } = spawnSync(command, [...prefix, ...args], {
    cwd: join(root, folder),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status === 0) return
  process.stderr.write(`npm ci failed${error === undefined ? '' : `: ${error.message}`}\n`)
  process.exit(status ?? 1)
}

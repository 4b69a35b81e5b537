import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { packExtension } from '@anthropic-ai/mcpb'
import { build } from 'esbuild'
import { run } from '../run-command.js'

/** The entry files of a stdio server, including the worker threads of heavy tools. */
const ENTRIES = ['dist/stdio.js', 'worker.js']
/** A package that is not in the bundle, because only `svc-mcp demo` needs it. */
const NOT_NEEDED = '@modelcontextprotocol/sdk'
/** Matches data files, which programs read when they first need them. */
const DATA = /\.(json|md)$|\/generated\/.*\.js$/
const BESIDE = ['CHANGELOG.md', 'LICENSE']

/**
 * Makes the bundle that Claude Desktop installs, from a tarball of the package: the parts that the stdio program can
 * reach, and the dependencies that these load, in the versions of package-lock.json. Rejects if one of the dependencies
 * is a native module, since the manifest promises that the bundle works on every platform.
 *
 * @param root the root folder of the project. @param manifest the text of manifest.json. @param output the path of the bundle.
 */
export async function makeBundle(root: string, tarball: string, manifest: string, output: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-mcp-bundle-'))
  try {
    run('tar', ['-xzf', tarball, '-C', scratch], scratch)
    const from = join(scratch, 'package')
    const to = join(scratch, 'bundle')
    const { files, packages } = await findNeeded(from)
    for (const file of [...files, ...BESIDE]) {
      mkdirSync(dirname(join(to, file)), { recursive: true })
      cpSync(join(from, file), join(to, file))
    }
    writeFileSync(join(to, 'manifest.json'), manifest)
    installInto(to, { root, packages })
    if (!(await packExtension({ extensionPath: to, outputPath: output, silent: true })))
      throw new Error('mcpb does not pack it')
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/**
 * Finds the files that can be reached from the entry files, relative to the package and including data, and the
 * packages that they import.
 */
async function findNeeded(folder: string): Promise<{ files: string[]; packages: string[] }> {
  const [, id] = /'\.\/([\da-f]{12})\//.exec(readFileSync(join(folder, 'dist/stdio.js'), 'utf8'))!
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: ENTRIES.map((entry) => (entry.startsWith('dist/') ? entry : `dist/${id}/${entry}`)),
    outdir: 'unused',
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'error',
  })
  const imports = Object.values(metafile.inputs).flatMap(({ imports }) => imports)
  const packages = imports
    .filter(({ path, external }) => external === true && !isBuiltin(path))
    .map(({ path }) => path.split('/', path.startsWith('@') ? 2 : 1).join('/'))
  const data = readdirSync(join(folder, 'dist', id!), { recursive: true, encoding: 'utf8' })
    .map((path) => `dist/${id}/${path.replaceAll('\\', '/')}`)
    .filter((path) => DATA.test(path))
  return {
    files: [...Object.keys(metafile.inputs), ...data],
    packages: [...new Set(packages)].filter((name) => name !== NOT_NEEDED),
  }
}

/**
 * Writes package.json and node_modules with these packages and their dependencies, in the versions of
 * package-lock.json, but without native modules.
 */
function installInto(folder: string, { root, packages }: { root: string; packages: string[] }): void {
  const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>
  const { name, version, type, license, dependencies } = read('package.json')
  const all = dependencies as Record<string, string>
  const strangers = packages.filter((wanted) => !(wanted in all))
  if (strangers.length > 0) throw new Error(`not among the dependencies: ${strangers.join(', ')}`)
  const wanted = Object.fromEntries(packages.sort().map((wanted) => [wanted, all[wanted]]))
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name, version, type, license, private: true, dependencies: wanted }, null, 2),
  )
  cpSync(join(root, 'package-lock.json'), join(folder, 'package-lock.json'))
  const options = ['--omit=dev', '--omit=optional', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  run('npm', ['install', '--loglevel=error', ...options], folder)
  for (const left of ['package-lock.json', 'node_modules/.package-lock.json', 'node_modules/.bin'])
    rmSync(join(folder, left), { recursive: true, force: true })
  const native = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.node'),
  )
  if (native.length > 0) throw new Error(`native modules in the bundle: ${native.join(', ')}`)
  checkLocked(folder, read('package-lock.json') as { packages: Record<string, { version: string }> })
}

/** Throws if npm installed a version other than the one in the lock file. */
function checkLocked(folder: string, lock: { packages: Record<string, { version: string }> }): void {
  const locked = new Set(
    Object.entries(lock.packages).map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  )
  const modules = join(folder, 'node_modules')
  const strays = readdirSync(modules, { recursive: true, encoding: 'utf8' })
    .filter((path) => /(^|node_modules[/\\])(@[^/\\]+[/\\])?[^/\\@]+[/\\]package\.json$/.test(path))
    .map((path) => {
      const { name, version } = JSON.parse(readFileSync(join(modules, path), 'utf8')) as Record<string, string>
      return `${name}@${version}`
    })
    .filter((named) => !locked.has(named))
  if (strays.length > 0) throw new Error(`not as package-lock.json has it: ${strays.join(', ')}`)
}

/** The programs as one file each: a process that loads the sources one by one takes three times as long to start. */
import { copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, buildSync, type BuildOptions } from 'esbuild'
import { inSuiteFolder } from './suite-folder.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
// Below the package, so that its dependencies and its package.json are found from there; the processes of one run share it.
const FOLDER = inSuiteFolder('bundled')
/** Native code is found beside the package, and what a program loads later stays later. */
const NOT_BUNDLED = ['libsql', 'sodium-native', 'pino', 'got', 'hpagent', 'piscina', '@opentelemetry/*']
// Not `import.meta.url`, which the suite replaces by the URL of this file.
const BANNER = [
  "import * as fromModule from 'node:module'",
  "import * as fromUrl from 'node:url'",
  "const require = fromModule.createRequire(import.meta['url'])",
  "const __filename = fromUrl.fileURLToPath(import.meta['url'])",
  "const __dirname = fromUrl.fileURLToPath(new URL('.', import.meta['url']))",
].join('\n')

/** The path of `<name>.ts` of programs/ bundled from the sources, with what its threads load beside it; the first call of a run makes it. */
export function bundleProgram(name: 'http' | 'stdio'): string {
  return bundle(name, 'worker')
}

/**
 * The HTTP program of another release: bundled from sources of which one reads as `change` makes it. `release` is the name of its folder.
 *
 * @param path from the root of the project.
 */
export async function bundleRelease(
  release: string,
  path: string,
  change: (source: string) => string,
): Promise<string> {
  const worker = bundle('worker')
  const folder = join(FOLDER, release)
  const changed = join(ROOT, path)
  let isChanged = false
  await build({
    ...optionsFor(['http'], folder),
    plugins: [
      {
        name: 'another release',
        setup(running) {
          running.onLoad({ filter: new RegExp(`/${basename(path).replaceAll('.', '\\.')}$`) }, (args) => {
            if (args.path !== changed) return undefined
            isChanged = true
            return { contents: change(readFileSync(changed, 'utf8')), loader: 'ts' }
          })
        },
      },
    ],
  })
  if (!isChanged) throw new Error(`http.ts does not load ${path}`)
  copyFileSync(worker, join(folder, 'worker.js'))
  return join(folder, 'http.js')
}

type Program = 'http' | 'stdio' | 'worker'

/** Bundles those programs that no process of the run has bundled yet, together, as they share most sources; returns the first one's path. */
function bundle(...names: [Program, ...Program[]]): string {
  const pathOf = (name: Program) => join(FOLDER, `${name}.js`)
  const missing = names.filter((name) => !existsSync(pathOf(name)))
  if (missing.length > 0) {
    // Renamed into place, so that no process starts half a program.
    const own = join(FOLDER, String(process.pid))
    buildSync(optionsFor(missing, own))
    // The first one comes last: where it is, the others are.
    for (const name of missing.toReversed()) renameSync(join(own, `${name}.js`), pathOf(name))
  }
  return pathOf(names[0])
}

const optionsFor = (names: Program[], outdir: string): BuildOptions => ({
  absWorkingDir: ROOT,
  entryPoints: names.map((name) => `programs/${name}.ts`),
  outdir,
  bundle: true,
  external: NOT_BUNDLED,
  platform: 'node',
  format: 'esm',
  // CommonJS packages inside an ES module still ask for these.
  banner: { js: BANNER },
  target: 'node20.19',
  logLevel: 'warning',
})

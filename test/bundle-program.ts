/** The programs as one file each: a process that loads the sources one by one takes three times as long to start. */
import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, buildSync, type BuildOptions } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
// Below the package, so that its dependencies and its package.json are found from there.
const FOLDER = join(ROOT, 'node_modules', '.cache', `svc-mcp-test-${process.pid}`)
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
const bundled = new Map<string, string>()

/** The path of `<name>.ts` of programs/ bundled from the sources as they are now, with what its threads load beside it; made with the first call of this process that asks for it. */
export function bundleProgram(name: 'http' | 'stdio'): string {
  bundle('worker')
  return bundle(name)
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
    ...optionsFor('http', folder),
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

function bundle(name: 'http' | 'stdio' | 'worker'): string {
  const known = bundled.get(name)
  if (known !== undefined) return known
  if (bundled.size === 0) process.once('exit', () => rmSync(FOLDER, { recursive: true, force: true }))
  buildSync(optionsFor(name, FOLDER))
  const outfile = join(FOLDER, `${name}.js`)
  bundled.set(name, outfile)
  return outfile
}

const optionsFor = (name: 'http' | 'stdio' | 'worker', outdir: string): BuildOptions => ({
  absWorkingDir: ROOT,
  entryPoints: [`programs/${name}.ts`],
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

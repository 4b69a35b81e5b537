/**
 * The programs as they are shipped: with the catalogue in place of the tools, and with parts that are loaded when they are needed. A
 * process that loads the sources one by one, or all of them as one file, takes three times as long to start.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions, type Plugin } from 'esbuild'
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
/** How often a process looks whether another one has bundled the programs. */
const LOOK_MS = 50

// Bundled when this module is loaded, so that whoever starts a program need not wait.
await bundleOnce()

/** The path of a bundled program of programs/; what its threads load lies beside it. */
export function bundleProgram(name: 'http' | 'stdio'): string {
  return join(FOLDER, `${name}.js`)
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
  const folder = join(FOLDER, release)
  const changed = join(ROOT, path)
  let isChanged = false
  await bundle(folder, {
    name: 'another release',
    setup(running) {
      running.onLoad({ filter: new RegExp(`/${basename(path).replaceAll('.', '\\.')}$`) }, (args) => {
        if (args.path !== changed) return undefined
        isChanged = true
        return { contents: change(readFileSync(changed, 'utf8')), loader: 'ts' }
      })
    },
  })
  if (!isChanged) throw new Error(`No program loads ${path}`)
  return join(folder, 'http.js')
}

/** Bundles the programs if no process of the run has done so. Of several processes one bundles, and the others wait. */
async function bundleOnce(): Promise<void> {
  const lock = `${FOLDER}-lock`
  for (; !existsSync(FOLDER); await setTimeout(LOOK_MS)) {
    try {
      mkdirSync(lock)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue
      throw error
    }
    // Renamed when it is complete, so that no process starts half a program.
    const unfinished = `${FOLDER}-unfinished`
    try {
      if (!existsSync(FOLDER)) {
        await bundle(unfinished)
        renameSync(unfinished, FOLDER)
      }
    } finally {
      rmdirSync(lock)
    }
  }
}

async function bundle(outdir: string, ...plugins: Plugin[]): Promise<void> {
  mkdirSync(outdir, { recursive: true })
  const catalogue = new URL('../scripts/bundle-catalogue.mjs', import.meta.url).href
  const { bundleCatalogue } = (await import(catalogue)) as {
    bundleCatalogue: (root: string, folder: string) => Promise<Plugin>
  }
  // The catalogue is computed by a program that finds its packages from where it is, and the folder of a run may be
  // outside of the project.
  mkdirSync(join(ROOT, '.suite'), { recursive: true })
  const scratch = mkdtempSync(join(ROOT, '.suite/catalogue-'))
  const withCatalogue = await bundleCatalogue(ROOT, scratch)
  rmSync(scratch, { recursive: true })
  const options: BuildOptions = {
    absWorkingDir: ROOT,
    entryPoints: ['http', 'stdio', 'worker'].map((name) => `programs/${name}.ts`),
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: 'parts/[name]-[hash]',
    external: NOT_BUNDLED,
    plugins: [withCatalogue, ...plugins],
    platform: 'node',
    format: 'esm',
    // CommonJS packages inside an ES module still ask for these.
    banner: { js: BANNER },
    target: 'node20.19',
    logLevel: 'warning',
  }
  await build(options)
}

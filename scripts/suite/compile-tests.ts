import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

/** All TypeScript of the project as JavaScript, for one run of the suite. */
export interface CompiledSuite {
  /** Where the compiled files are, at the paths of their sources; other files of the run may lie beside them. */
  folder: string
  /** URL of the module that a source file, relative to the root, has become. */
  urlOf(file: string): string
  remove(): void
}

const NO_SOURCES = new Set(['node_modules', 'dist', 'data', 'deploy', 'docs', 'test-artifacts'])
const CURRENT_TEST = fileURLToPath(new URL('./current-test.ts', import.meta.url))

/**
 * Compiles every source once into a folder of this run, file by file, so that the processes of the suite neither compile anything nor
 * share what another run writes. In the compiled files `import.meta.url` is still that of the source, and `t` of a test file is the
 * test that was opened for that file, not the root of the process. Rejects when a file does not parse.
 */
export async function compileSuite(root: string): Promise<CompiledSuite> {
  const folder = join(root, '.suite', String(process.pid))
  const compiled = (source: string) => join(folder, relative(root, source).replace(/\.ts$/, '.js'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    await build({
      entryPoints: listSources(root),
      outdir: folder,
      outbase: root,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      sourcemap: 'linked',
      logLevel: 'error',
      plugins: [
        {
          name: 'test-file',
          setup(compiler) {
            compiler.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
              loader: 'ts',
              contents: prepare(readFileSync(path, 'utf8'), path),
            }))
          },
        },
      ],
    })
  } catch (error) {
    remove()
    throw error
  }
  return { folder, urlOf: (file) => pathToFileURL(compiled(join(root, file))).href, remove }

  function prepare(source: string, path: string): string {
    const whole = source.replaceAll('import.meta.url', () => JSON.stringify(pathToFileURL(path).href))
    if (!relative(root, path).startsWith(`test${sep}`)) return whole
    const current = JSON.stringify(pathToFileURL(compiled(CURRENT_TEST)).href)
    // On one line, so that the lines of the source stay where they are.
    return whole.replace(
      /^import t\b.* from 'tap'$/m,
      `import { currentTest } from ${current}; import type { Test } from 'tap'; const t = currentTest()`,
    )
  }
}

function listSources(root: string): string[] {
  const rooms = readdirSync(root, { withFileTypes: true })
  return rooms.flatMap((entry) => {
    const path = join(root, entry.name)
    if (entry.isFile()) return isSource(entry.name) ? [path] : []
    if (!entry.isDirectory() || entry.name.startsWith('.') || NO_SOURCES.has(entry.name)) return []
    const inside = readdirSync(path, { recursive: true, encoding: 'utf8' })
    return inside.filter(isSource).map((name) => join(path, name))
  })
}

const isSource = (name: string) => name.endsWith('.ts') && !name.endsWith('.d.ts') && !name.includes('node_modules')

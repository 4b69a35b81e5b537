import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const NO_SOURCES = new Set(['node_modules', 'dist', 'data', 'deploy', 'docs', 'test-artifacts'])

/**
 * Compiles every source into a separate folder with the same paths, so that no process of the suite has to compile
 * anything. In compiled files, `import.meta.url` is still the URL of the source. In a compiled test file, `t` is a
 * separate subtest, because files that share a process must not share hooks, time limits and counts. Rejects if a file
 * cannot be parsed.
 */
export async function compileSuite(root) {
  const folder = join(root, '.suite', String(process.pid))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const compiled = (source) => join(folder, relative(root, source).replace(/\.ts$/, '.js'))
  // A killed process with the same process id may have left its folder behind.
  remove()
  process.once('exit', remove)
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
        setup: (compiler) =>
          compiler.onLoad({ filter: /\.ts$/ }, ({ path }) => ({ loader: 'ts', contents: prepare(path) })),
      },
    ],
  })
  return { folder, compiled }

  function prepare(path) {
    const url = JSON.stringify(pathToFileURL(path).href)
    const source = readFileSync(path, 'utf8').replaceAll('import.meta.url', () => url)
    if (!relative(root, path).startsWith(`test${sep}`)) return source
    const fileTest = JSON.stringify(pathToFileURL(compiled(join(root, 'scripts/suite/file-test.ts'))).href)
    // The replacement has a single line, so that line numbers do not change.
    return source.replace(
      /^import t\b.* from 'tap'$/m,
      `import { fileTest } from ${fileTest}; import type { Test } from 'tap'; const t = fileTest()`,
    )
  }
}

function listSources(root) {
  return readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
    const path = join(root, entry.name)
    if (!entry.isDirectory() || entry.name.startsWith('.') || NO_SOURCES.has(entry.name)) return []
    const inside = readdirSync(path, { recursive: true, encoding: 'utf8' })
    return inside.filter(isSource).map((name) => join(path, name))
  })
}

const isSource = (name) => name.endsWith('.ts') && !name.endsWith('.d.ts') && !name.includes('node_modules')

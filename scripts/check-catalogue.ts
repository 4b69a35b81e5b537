/**
 * A step of `npm run check`. It bundles the stdio program as a build does, and compares the catalogue of the tools with
 * the sources: the entries, and what they load. It also checks that the program, before its first call, loads nothing
 * that only calls need.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { build, type Metafile } from 'esbuild'
import type { AnyTool } from '../tools/define.js'
import type { ListedTool } from '../tools/listed-tool.js'
import { dataOf } from '../tools/catalogue/catalogue-of.js'
import { tools } from '../tools/index.js'
import { bundleCatalogue } from './bundle-catalogue.mjs'

/** What only calls need: the tools, the domain except for texts, the schema compiler, and libraries of the domain. */
const ONLY_CALLS =
  /^(tools\/(?!catalogue\/(index|read-catalogue)\.ts|define\.ts|listed-tool\.ts)|domain\/(?!text\/)|node_modules\/(@sinclair|@modelcontextprotocol|zod|ajv|csv-parse|d3-force)\/)/
/** What only servers with callers and state need, and what Fastify needs for requests without a socket. */
const ONLY_STATE = /^node_modules\/(libsql|pg|light-my-request|openid-client|fast-jwt)\//

const root = fileURLToPath(new URL('..', import.meta.url))
// Below the project, so that the packages that are not bundled are found.
const folder = join(root, 'node_modules/.cache', `catalogue-${process.pid}`)
mkdirSync(folder, { recursive: true })
try {
  const { outputs } = await bundle()
  const { catalogue } = (await import(pathToFileURL(join(folder, 'index.js')).href)) as { catalogue: ListedTool[] }
  const problems = [...(await compare(catalogue)), ...findEarly(outputs, 'stdio'), ...findEarly(outputs, 'http')]
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function bundle(): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { index: 'tools/catalogue/index.ts', stdio: 'programs/stdio.ts', http: 'programs/http.ts' },
    outdir: folder,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    metafile: true,
    logLevel: 'warning',
    plugins: [await bundleCatalogue(root, folder)],
  })
  return metafile
}

/** Returns the differences between the bundled catalogue and the sources, one line each. */
async function compare(catalogue: readonly ListedTool[]): Promise<string[]> {
  const problems = tools.length === catalogue.length ? [] : [`${catalogue.length} entries for ${tools.length} tools`]
  for (const [at, tool] of tools.entries()) {
    const { schemas, load, ...facts } = catalogue[at]!
    if (!isDeepStrictEqual({ ...facts, schemas: schemas() }, asJson(dataOf(tool))))
      problems.push(`${tool.name}: its entry differs from the tool`)
    const loaded = await load()
    if (!isDeepStrictEqual(outlineOf(loaded), outlineOf(tool)))
      problems.push(`${tool.name}: the code that its entry loads is not that of the tool`)
  }
  return problems
}

/** Returns what can be compared between two copies of a tool: its data, and the names of its functions. */
function outlineOf(tool: AnyTool): unknown {
  const functions = Object.keys(tool).filter((key) => typeof tool[key as keyof AnyTool] === 'function')
  return asJson({ ...tool, functions: functions.sort() })
}

/** Returns a value as it is after it was JSON. */
function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Returns the sources that a program loads before its first call although only calls need them, one line each. */
function findEarly(outputs: Metafile['outputs'], program: 'stdio' | 'http'): string[] {
  const reached = new Set<string>()
  const visit = (path: string) => {
    if (reached.has(path)) return
    reached.add(path)
    for (const { path: inner, kind } of outputs[path]?.imports ?? []) if (kind === 'import-statement') visit(inner)
  }
  visit(Object.keys(outputs).find((path) => path.endsWith(`/${program}.js`))!)
  return [...reached].flatMap((path) => {
    const { inputs, imports } = outputs[path] ?? { inputs: {}, imports: [] }
    const external = imports.flatMap((one) =>
      one.external && one.kind === 'import-statement' ? [`node_modules/${one.path}/`] : [],
    )
    return [...Object.keys(inputs), ...external]
      .filter((source) => ONLY_CALLS.test(source) || ONLY_STATE.test(source))
      .map((source) => `${source} is loaded at the start of ${program}`)
  })
}

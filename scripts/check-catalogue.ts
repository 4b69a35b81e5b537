/**
 * A step of `npm run check`. It bundles the programs as a build does, and compares the catalogue with the sources: the
 * entries of the tools and what they load, the lists of resources, templates and prompts, and the instructions. It also
 * checks that the programs, before their first call, load nothing that only calls need.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { build, type Metafile } from 'esbuild'
import type { AnyTool } from '../tools/define.js'
import type { ListedTool } from '../tools/listed-tool.js'
import { listKnowledge } from '../knowledge/catalogue/list-knowledge.js'
import { instructionsFor } from '../plugins/mcp/instructions.js'
import { listTool } from '../plugins/mcp/list-tools.js'
import { catalogueOf, dataOf } from '../tools/catalogue/catalogue-of.js'
import { tools } from '../tools/index.js'
import { bundleCatalogue } from './bundle-catalogue.mjs'

/**
 * What only calls and reads need: the tools, the domain and the knowledge except for texts and lists, the schema
 * compiler, and libraries of the domain.
 */
const ONLY_CALLS =
  /^(knowledge\/(?!index\.ts|catalogue\/index\.ts)|tools\/(?!catalogue\/(index|read-catalogue)\.ts|define\.ts|listed-tool\.ts)|domain\/(?!text\/)|node_modules\/(@sinclair|@modelcontextprotocol|zod|ajv|csv-parse|d3-force)\/)/
/** What only servers with callers and state need, and what Fastify needs for requests without a socket. */
const ONLY_STATE = /^node_modules\/(libsql|pg|light-my-request|openid-client|fast-jwt)\//

const root = fileURLToPath(new URL('..', import.meta.url))
// Below the project, so that the packages that are not bundled are found.
const folder = join(root, 'node_modules/.cache', `catalogue-${process.pid}`)
mkdirSync(folder, { recursive: true })
try {
  const { outputs } = await bundle()
  const { catalogue } = await load<{ catalogue: ListedTool[] }>('tools')
  const problems = [
    ...(await compare(catalogue)),
    ...(await compareKnowledge()),
    ...(await compareInstructions(catalogue)),
    ...findEarly(outputs, 'stdio'),
    ...findEarly(outputs, 'http'),
  ]
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function bundle(): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: {
      tools: 'tools/catalogue/index.ts',
      knowledge: 'knowledge/catalogue/index.ts',
      instructions: 'plugins/mcp/instructions.ts',
      stdio: 'programs/stdio.ts',
      http: 'programs/http.ts',
    },
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

/** Imports what was bundled from one of the entry points. */
async function load<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(join(folder, `${name}.js`)).href)) as T
}

/** Returns the lists of knowledge/ that differ between the bundle and the sources, one line each. */
async function compareKnowledge(): Promise<string[]> {
  const { catalogue } = await load<{ catalogue: Record<string, unknown> }>('knowledge')
  const lists = Object.entries(await listKnowledge())
  const missing =
    Object.keys(catalogue).length === lists.length ? [] : ['the lists of knowledge/ are not those of the room']
  return lists.reduce(
    (problems, [name, list]) =>
      isDeepStrictEqual(catalogue[name], asJson(list))
        ? problems
        : [...problems, `the list of ${name} differs from knowledge/`],
    missing,
  )
}

/**
 * Returns the offers for which the instructions differ between the bundle, with its catalogue, and the sources, one line
 * each: all tools, the reading ones, and all but provision-policy.
 */
async function compareInstructions(bundled: readonly ListedTool[]): Promise<string[]> {
  const { instructionsFor: ofBundle } = await load<{ instructionsFor: typeof instructionsFor }>('instructions')
  const offers: Record<string, (tool: ListedTool) => boolean> = {
    'all tools': () => true,
    'reading tools': ({ effect }) => effect === 'read',
    'all tools but provision-policy': ({ name }) => name !== 'provision-policy',
  }
  return Object.entries(offers).flatMap(([offer, isOffered]) => {
    const expected = instructionsFor(catalogueOf(tools).filter(isOffered).map(listTool))
    const text = ofBundle(bundled.filter(isOffered).map(listTool))
    return text === expected ? [] : [`the instructions for ${offer} differ`]
  })
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

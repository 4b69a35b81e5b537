/**
 * `npm run generate` writes all generated files that are kept in git. With `--check`, it only reports outdated files.
 * If parts are named (`npm run generate -- snapshots`), only these are generated; `--help` lists all parts. It fails if
 * a part cannot be generated, or if a document cites or names something that does not exist.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bundlePictures } from './bundle-pictures.mjs'
import type { Generator } from './generate/generator.js'
import { syncFiles } from './generate/sync-files.js'

/** The parts of the generated files. The code of a part is loaded when it is needed. */
const PARTS: Record<string, () => Promise<Generator>> = {
  documents: async () => (await import('./generate/documents.js')).documents,
  snapshots: async () => (await import('./generate/snapshots.js')).snapshots,
  map: async () => (await import('./generate/map.js')).map,
  examples: async () => (await import('./generate/examples.js')).examples,
}
/**
 * The parts that are generated only if they are named, because they need a program that not everybody has installed.
 */
const ON_REQUEST: Record<string, () => Promise<Generator>> = {
  kubernetes: async () => (await import('./generate/kubernetes.js')).kubernetes,
}
const HELP = `npm run generate [-- [--check] [PART ...]]

  --check  change nothing, and say what is stale
  parts: ${Object.keys(PARTS).join(', ')}; made where they are named alone: ${Object.keys(ON_REQUEST).join(', ')}
`

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = readArguments()
if (values.help) {
  console.log(HELP)
  process.exit(0)
}
const all = { ...PARTS, ...ON_REQUEST }
const unknown = positionals.filter((name) => !Object.hasOwn(all, name))
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}.\n\n${HELP}`)
  process.exit(1)
}

// The pictures in the documents are drawn with the bundled scripts.
await bundlePictures(root)
let isFine = true
for (const name of positionals.length > 0 ? positionals : Object.keys(PARTS)) {
  try {
    const { files, folders = [], problems } = await all[name]!()
    const wanted = await files()
    const surplus = folders.flatMap(filesBelow).filter((path) => !wanted.has(path))
    const command = `\`npm run generate -- ${name}\``
    // Lines are shortened in the report, because a picture is a single long line.
    const say = (line: string) => console.error(`${name}: ${line.replace(/^(.{0,200}).*$/gm, '$1')}`)
    isFine = syncFiles(wanted, { root, check: values.check, command, surplus, say }) && isFine
    for (const problem of problems?.() ?? []) {
      say(problem)
      isFine = false
    }
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    isFine = false
  }
}
process.exit(isFine ? 0 : 1)

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { check: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
    })
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(1)
  }
}

/** Lists the paths of the files in a folder, relative to the root. */
function filesBelow(folder: string): string[] {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    return entry.isDirectory() ? filesBelow(path) : [path]
  })
}

/**
 * `npm run snapshots`: writes one file a tool with its public surface, so that a change of it shows in review; `--check` only says
 * which differ.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tools } from '../tools/index.js'
import { syncFiles } from './sync-files.js'
import { surfaceOf } from './tool-surface.js'

const FOLDER = 'test/snapshots'

const root = fileURLToPath(new URL('..', import.meta.url))
const wanted = new Map(
  tools.map((tool) => [`${FOLDER}/${tool.name}.json`, `${JSON.stringify(surfaceOf(tool), null, 2)}\n`]),
)
const surplus = listFolder().filter((path) => !wanted.has(path))
const fine = syncFiles(wanted, {
  root,
  check: process.argv.includes('--check'),
  command: '`npm run snapshots`',
  surplus,
})
process.exit(fine ? 0 : 1)

function listFolder(): string[] {
  try {
    return readdirSync(join(root, FOLDER)).map((name) => `${FOLDER}/${name}`)
  } catch {
    return []
  }
}

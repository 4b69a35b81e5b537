/**
 * `npm run providers`: makes domain/traffic/providers/provider-ranges.ts anew from the publishers' feeds and from the facts entered
 * by hand, and says what changed. `--from DIR` reads the feeds from files (their names are in provider-ranges/feeds.ts) where there
 * is no internet; `--to FILE` writes another file. One feed that cannot be read or believed, and nothing is written.
 */
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { ProviderRanges } from '../domain/traffic/providers/provider-table.js'
import { buildTable, checkRanges, type Claim } from './provider-ranges/build-table.js'
import { CATALOG } from './provider-ranges/catalog.js'
import { describeUpdate } from './provider-ranges/describe-update.js'
import { FEEDS } from './provider-ranges/feeds.js'
import { HAND_ENTERED } from './provider-ranges/hand-entered.js'
import { fromDirectory, fromPublishers, readClaims } from './provider-ranges/read-feeds.js'
import { renderModule } from './provider-ranges/render-module.js'

const SHIPPED = fileURLToPath(new URL('../domain/traffic/providers/provider-ranges.ts', import.meta.url))

try {
  const { values } = parseArgs({ options: { from: { type: 'string' }, to: { type: 'string', default: SHIPPED } } })
  const target = resolve(values.to)
  const read = values.from === undefined ? fromPublishers(new Date()) : fromDirectory(values.from)
  const claims: Claim[] = [...(await readClaims(FEEDS, read)), ...HAND_ENTERED]
  for (const { ranges } of HAND_ENTERED) checkRanges(ranges)

  const table = buildTable(CATALOG, claims)
  const changes = describeUpdate(await readTable(target), table)
  if (changes.length > 0) {
    // A reader of the file never meets half of it.
    writeFileSync(`${target}.new`, await renderModule(table))
    renameSync(`${target}.new`, target)
  }
  for (const line of changes) console.log(line)
  const count = table.reduce((sum, { ranges }) => sum + ranges.length, 0)
  console.log(`${table.length} providers, ${count} ranges: ${changes.length === 0 ? 'nothing changed' : 'written'}`)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  console.error('Nothing was written.')
  process.exit(1)
}

/** The table that stands in a file; empty when there is none. */
async function readTable(file: string): Promise<readonly ProviderRanges[]> {
  if (!existsSync(file)) return []
  const module = (await import(pathToFileURL(file).href)) as { PROVIDER_RANGES?: readonly ProviderRanges[] }
  return module.PROVIDER_RANGES ?? []
}

/**
 * `node --import tsx scripts/provider-ranges.ts` builds provider-ranges.json anew from the publishers' feeds and from
 * the manually entered facts, and prints what has changed. Without internet access, `--from DIR` reads the feeds from
 * files (named in provider-ranges/feeds.ts); `--to FILE` writes to another file. If any feed cannot be read or is
 * implausible, nothing is written.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { format } from 'prettier'
import { PROVIDER_RANGES_FILE, type ProviderRanges } from '../domain/traffic/providers/read-ranges.js'
import { buildTable, checkRanges, type Claim } from './provider-ranges/build-table.js'
import { CATALOG } from './provider-ranges/catalog.js'
import { FEEDS } from './provider-ranges/feeds.js'
import { HAND_ENTERED } from './provider-ranges/hand-entered.js'
import { fromDirectory, fromPublishers, readClaims } from './provider-ranges/read-feeds.js'

const SHIPPED = fileURLToPath(new URL(`../${PROVIDER_RANGES_FILE}`, import.meta.url))

try {
  const { values } = parseArgs({ options: { from: { type: 'string' }, to: { type: 'string', default: SHIPPED } } })
  const target = resolve(values.to)
  const read = values.from === undefined ? fromPublishers(new Date()) : fromDirectory(values.from)
  const claims: Claim[] = [...(await readClaims(FEEDS, read)), ...HAND_ENTERED]
  for (const { ranges } of HAND_ENTERED) checkRanges(ranges)

  const table = buildTable(CATALOG, claims)
  const changes = describeUpdate(readTable(target), table)
  if (changes.length > 0) {
    // The file is written under another name and then renamed, so that nobody ever reads an incomplete file.
    writeFileSync(`${target}.new`, await format(JSON.stringify(table), { parser: 'json', printWidth: 120 }))
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

/** Reads the table in a file. Returns an empty table if the file does not exist. */
function readTable(file: string): readonly ProviderRanges[] {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ProviderRanges[]) : []
}

/**
 * Describes the changes of an update, one line for each affected provider: `zoom: 2 ranges added, 1 removed; as of
 * 2026-08-30`.
 */
function describeUpdate(before: readonly ProviderRanges[], after: readonly ProviderRanges[]): string[] {
  const names = [...new Set([...before, ...after].map(({ provider }) => provider))].sort()
  return names.flatMap((name) => {
    const was = before.find(({ provider }) => provider === name)
    const is = after.find(({ provider }) => provider === name)
    if (is === undefined) return [`${name}: gone`]
    if (was === undefined) return [`${name}: new, ${is.ranges.length} ranges`]
    if (JSON.stringify(was) === JSON.stringify(is)) return []
    const added = is.ranges.filter((range) => !was.ranges.includes(range)).length
    const removed = was.ranges.filter((range) => !is.ranges.includes(range)).length
    const dates = [...new Set(is.sources.map(({ asOf }) => asOf))].join(' and ')
    return [`${name}: ${added} ranges added, ${removed} removed; as of ${dates}`]
  })
}

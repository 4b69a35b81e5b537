import type { ProviderRanges } from '../../domain/traffic/providers/provider-table.js'

/** What an update changes, a line per provider that it touches: `zoom: 2 ranges added, 1 removed; as of 2026-08-30`. */
export function describeUpdate(before: readonly ProviderRanges[], after: readonly ProviderRanges[]): string[] {
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

import { SUMMARY, type FlowFigures, type SizeFigures } from './measure-flows.js'
import { judge } from './judge.js'

/** Formats the results as lines of the report, with the targets for the analysis tools. */
export function describeFlows({ floors, tools: figures }: FlowFigures): string[] {
  const cells = ({ rows, seconds, cpuSeconds, memory }: SizeFigures) =>
    `    ${String(rows).padStart(6)} rows ${seconds.toFixed(2).padStart(7)} s ${cpuSeconds.toFixed(2).padStart(6)} s of processor ${memory.toFixed(0).padStart(5)} MiB`
  const lines = [
    'Analysis tools over generated flows, through the dispatcher, each reading in a fresh process; memory as peak above idle',
    '  bare got, one JSON.parse of the same download: the floor',
    ...floors.map(cells),
  ]
  for (const { name, sizes, growth } of figures) {
    lines.push(`  ${name}`)
    for (const size of sizes)
      lines.push(
        `${cells(size)}   ${size.ratio.toFixed(2)} floors (processor ${size.cpuRatio.toFixed(2)}), longest wait of others ${size.longestBlockMs.toFixed(0)} ms`,
      )
    lines.push(`    200,000 over 50,000 rows    ${growth.toFixed(2)}   ${judge(growth, { atMost: 4.4 }, 2)}`)
    const most = sizes[sizes.length - 1]!
    if (name === SUMMARY)
      lines.push(
        `    ratio to the floor          ${most.ratio.toFixed(2)}   ${judge(most.ratio, { atMost: 2 }, 2)}`,
        `    memory above idle       ${most.memory.toFixed(0).padStart(4)} MiB   ${judge(most.memory, { atMost: 200 })}`,
      )
  }
  return lines
}

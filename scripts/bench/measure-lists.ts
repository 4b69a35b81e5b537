import { serveLargeEstate } from './serve-large-estate.js'

const SMALL = { workloads: 200, events: 100, ipLists: 20, services: 20 }
const LARGE = { ...SMALL, workloads: 200_000, events: 100_000 }
/** Calls that make each list read everything. */
const CALLS = [
  ['get-workload-enforcement-status', {}],
  ['get-workloads', { ip_address: '2001:db8::ffff:1', exact: true }],
  ['get-events', { object: 'nothing' }],
] as const
/** How much more memory a large estate may take than a small one, in MiB. */
const MOST_ABOVE = 150

export interface ListFigures {
  /** The milliseconds of each tool's call at the large estate. */
  ms: Readonly<Record<string, number>>
  /** The process's peak (VmHWM) at the large estate minus that at the small one, in MiB. */
  above: number
}

/** Measures lists that are too long for one answer of a PCE. Each estate has a process of its own. */
export async function measureLists(): Promise<ListFigures> {
  const ms: Record<string, number> = {}
  const peaks: number[] = []
  for (const size of [SMALL, LARGE]) {
    const served = await serveLargeEstate('dist/stdio.js', size)
    try {
      for (const [tool, args] of CALLS) {
        const begun = performance.now()
        await served.call(tool, args)
        ms[tool] = performance.now() - begun
      }
      peaks.push(served.peak())
    } finally {
      await served.close()
    }
  }
  return { ms, above: peaks[1]! - peaks[0]! }
}

export function describeLists({ ms, above }: ListFigures): string[] {
  return [
    'lists of 200,000 workloads (3 KB each) and 100,000 events; memory as peak (VmHWM) above a small estate',
    ...Object.entries(ms).map(([tool, took]) => `  ${tool.padEnd(32)}${took.toFixed(0).padStart(7)} ms`),
    `  memory above a small estate ${above.toFixed(0).padStart(4)} MiB   target at most ${MOST_ABOVE}: ${above <= MOST_ABOVE ? 'met' : 'MISSED'}`,
  ]
}

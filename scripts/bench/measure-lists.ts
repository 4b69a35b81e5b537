import { serveLargeEstate } from './serve-large-estate.js'

const SMALL = { workloads: 200, events: 100, ipLists: 20, services: 20 }
const LARGE = { ...SMALL, workloads: 200_000, events: 100_000 }
/** What makes each list read everything. */
const CALLS = [
  ['get-workload-enforcement-status', {}],
  ['get-workloads', { ip_address: '2001:db8::ffff:1', exact: true }],
  ['get-events', { object: 'nothing' }],
] as const
/** What a large estate may cost above a small one: MiB. */
const MOST_ABOVE = 150

export interface ListFigures {
  /** Milliseconds of each call, by its tool, at the large estate. */
  ms: Readonly<Record<string, number>>
  /** The peak (VmHWM) of the process at the large estate above that at the small one: MiB. */
  above: number
}

/** Lists that no answer of a PCE holds, each estate by a process of its own. */
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

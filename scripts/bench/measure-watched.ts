import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { choosePort } from '../../programs/process/choose-port.js'
import { inScratch } from './in-scratch.js'
import { GROUP, load, startAuthenticated, tokensOf } from './measure-authenticated.js'
import { startProvider } from './start-provider.js'
import type { StartedServer } from './start-server.js'
import { median } from './statistics.js'
import { judge } from './judge.js'

const ROUNDS = 9

type Kind = 'bare' | 'measured' | 'traced'

/** Starts a collector that accepts spans and drops them. */
async function startSink() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200).end())
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** The number of units of processor time in a second. Linux's /proc uses this unit regardless of the kernel's ticks. */
const TICKS_PER_SECOND = 100

/** Measures the server's processor time per call, in microseconds. Unlike a rate, it hardly depends on other load. */
async function costOf({ url, pid }: StartedServer, tokens: readonly string[]): Promise<number> {
  const ticks = () => {
    const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13)
    return Number(user) + Number(system)
  }
  const before = ticks()
  const { requests } = await load(url, tokens)
  return ((ticks() - before) / TICKS_PER_SECOND / requests) * 1e6
}

/**
 * Measures how much an authenticated tools/call costs more with metrics, and with metrics and traces of every call. All
 * three servers run at the same time and are measured one after the other; ratios compare servers in the same round.
 */
export async function describeWatched(): Promise<string[]> {
  const provider = await startProvider(GROUP)
  const sink = await startSink()
  try {
    return await inScratch(async (scratch) => {
      const port = String(await choosePort(0))
      const bare = await startAuthenticated(scratch, provider)
      const measured = await startAuthenticated(scratch, provider, {
        name: 'measured',
        more: { MCP_METRICS_PORT: port },
      })
      const more = { OTEL_EXPORTER_OTLP_ENDPOINT: sink.url }
      const traced = await startAuthenticated(scratch, provider, { name: 'traced', more })
      const tokens = await tokensOf(provider)
      for (const { url } of [bare, measured, traced]) await load(url, tokens)
      const costs: Record<Kind, number>[] = []
      for (let round = 0; round < ROUNDS; round++)
        costs.push({
          bare: await costOf(bare, tokens),
          measured: await costOf(measured, tokens),
          traced: await costOf(traced, tokens),
        })
      const cost = (of: Kind) => median(costs.map((round) => round[of]))
      const ratio = (of: Kind) => median(costs.map((round) => round[of] / round.bare))
      const line = (what: string, value: string) => `  ${what.padEnd(28)}${value}`
      return [
        'Processor time of a tools/call with access tokens: with metrics, and with traces of every call, against neither',
        line('neither', `${cost('bare').toFixed(0).padStart(7)} µs`),
        line(
          'metrics',
          `${cost('measured').toFixed(0).padStart(7)} µs   ratio ${ratio('measured').toFixed(2)}   ${judge(ratio('measured'), { atMost: 1.1 }, 2)}`,
        ),
        line(
          'traces',
          `${cost('traced').toFixed(0).padStart(7)} µs   ratio ${ratio('traced').toFixed(2)}   ${judge(ratio('traced'), { atMost: 1.6 }, 2)}`,
        ),
      ]
    })
  } finally {
    sink.close()
    provider.close()
  }
}

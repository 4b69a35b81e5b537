/**
 * `npm run bench` measures the figures that this project promises, as ratios within one run, so that they can be
 * compared between machines. It needs a build, which `npm run bench` makes, sends traffic only to loopback, and takes
 * some minutes. Each part prints its targets with verdicts; the last line counts them, and a missed one makes the exit
 * status 1. `npm run bench -- calls start` measures only these two parts; `--help` lists all parts.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describeFlows } from './bench/describe-flows.js'
import { judge, verdicts } from './bench/judge.js'
import { measureAnswers } from './bench/measure-answers.js'
import { measureAuthenticated } from './bench/measure-authenticated.js'
import { measureCalls } from './bench/measure-calls.js'
import { describeCrowd, measureCrowd } from './bench/measure-crowd.js'
import { measureFlows } from './bench/measure-flows.js'
import { describeGraph, measureGraph } from './bench/measure-graph.js'
import { measureOverhead } from './bench/measure-overhead.js'
import { describeParts, measureParts } from './bench/measure-parts.js'
import { describeReplicas, measureReplicas } from './bench/measure-replicas.js'
import { describeStages, measureStages } from './bench/measure-stages.js'
import { type FirstCall, measureStart } from './bench/measure-start.js'
import { measureStream } from './bench/measure-stream.js'
import { describeWatched } from './bench/measure-watched.js'
import { median } from './bench/statistics.js'

interface Part {
  /** Measures the part, and returns the lines of the report. */
  measure(): Promise<string[]>
  /** What the measurement needs beyond Node.js and the packages of this project. */
  needs?: readonly (keyof typeof INSTALLED)[]
}

/** Functions that return whether something is there; .ci/install-packages installs what is missing on Linux. */
const INSTALLED = {
  // Memory and processor time of other processes are read from /proc.
  Linux: () => process.platform === 'linux',
  nginx: () => {
    const env = { PATH: `${process.env.PATH}:/usr/sbin` }
    return spawnSync('nginx', ['-v'], { env }).error === undefined
  },
  openssl: () => spawnSync('openssl', ['version']).error === undefined,
  PostgreSQL: () => existsSync(new URL('../test/postgres/node_modules/', import.meta.url)),
}

/** The size in bytes above which a usual answer counts as long. */
const LONG_ANSWER = 2_000
/**
 * The target for the median of the long answers in bytes: half of the 13,600 that it was when a page had as many rows as
 * the budget of 48,000 bytes permitted (D254).
 */
const HALF_OF_LONG = 6_800

const PARTS: Record<string, Part> = {
  calls: { measure: describeCalls },
  authenticated: { measure: describeAuthenticated },
  stages: { measure: async () => describeStages(await measureStages()), needs: ['Linux'] },
  watched: { measure: describeWatched },
  replicas: {
    measure: async () => describeReplicas(await measureReplicas()),
    needs: ['Linux', 'nginx', 'openssl', 'PostgreSQL'],
  },
  start: { measure: describeStart },
  overhead: { measure: describeOverhead },
  stream: { measure: describeStream },
  flows: { measure: async () => describeFlows(await measureFlows()) },
  parts: { measure: async () => describeParts(await measureParts()) },
  graph: { measure: async () => describeGraph(await measureGraph()) },
  crowd: { measure: async () => describeCrowd(await measureCrowd()), needs: ['Linux'] },
  answers: { measure: describeAnswers },
}

const HELP = `npm run bench [-- PART ...]

  Parts: ${Object.keys(PARTS).join(', ')}
`

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(PARTS, name))
if (unknown.length > 0) {
  console.log(HELP)
  process.exit(unknown.every((name) => name === '--help') ? 0 : 1)
}
const names = asked.length === 0 ? Object.keys(PARTS) : asked
const missing = (name: string) => (PARTS[name]!.needs ?? []).filter((program) => !INSTALLED[program]())
const lacking = new Map(names.map((name) => [name, missing(name)]))
for (const [name, programs] of lacking) {
  const { needs = [] } = PARTS[name]!
  if (needs.length === 0) continue
  const missing = `${programs.join(' and ')} missing (.ci/install-packages), so this part is left out`
  console.log(`${name} needs ${needs.join(', ')}: ${programs.length === 0 ? 'all there' : missing}`)
}
for (const name of names)
  if (lacking.get(name)!.length === 0) console.log(`\n${(await PARTS[name]!.measure()).join('\n')}`)
const { met, missed } = verdicts()
console.log(`\n${met} met, ${missed} missed`)
process.exitCode = missed > 0 ? 1 : 0

async function describeCalls(): Promise<string[]> {
  const calls = await measureCalls()
  return [
    'tools/call over HTTP: get-server-changelog, 20 connections, server log and audit log to files',
    `  bare Fastify JSON route     ${rate(calls.bareRoute)}`,
    `  bare SDK stateless server   ${rate(calls.bareSdk)}`,
    `  svc-mcp                     ${rate(calls.ours)}   failures: ${calls.failures}`,
    `  ratio to the bare route     ${calls.toBareRoute.toFixed(2)}`,
    `  ratio to the bare SDK       ${calls.toBareSdk.toFixed(2)}   ${judge(calls.toBareSdk, { atLeast: 2 }, 2)}`,
  ]
}

async function describeAuthenticated(): Promise<string[]> {
  const figures = await measureAuthenticated()
  return [
    'tools/call over HTTP with access tokens of 20 callers (RS256), against a bare route and the same call in dev-insecure mode',
    `  bare Fastify JSON route     ${rate(figures.bareRoute)}`,
    `  the same with our duties    ${rate(figures.dutifulRoute)}   token, headers, two lines of log, two audit entries; nothing of MCP`,
    `  dev-insecure                ${rate(figures.insecure)}   p99 ${figures.insecureP99.toFixed(0)} ms`,
    `  authenticated               ${rate(figures.authenticated)}   p99 ${figures.authenticatedP99.toFixed(0)} ms   failures: ${figures.failures}`,
    `  ratio to the bare route     ${figures.toBareRoute.toFixed(2)}`,
    `  ratio to that with duties   ${figures.toDutifulRoute.toFixed(2)}   ${judge(figures.toDutifulRoute, { atLeast: 0.8 }, 2)}`,
    `  ratio to dev-insecure       ${figures.ratio.toFixed(2)}   ${judge(figures.ratio, { atLeast: 0.9 }, 2)}`,
    `  further p99                 ${figures.p99More.toFixed(1)} ms   ${judge(figures.p99More, { atMost: 2 })}`,
  ]
}

async function describeStart(): Promise<string[]> {
  const { listed, listedAll, firstCalls, hastyCalls, ready } = await measureStart()
  const ratio = (what: string, value: number, atMost: number) =>
    `  ${what.padEnd(28)}${value.toFixed(2).padStart(7)}      ${judge(value, { atMost }, 2)}`
  const callLine = ({ tool, first, second, more }: FirstCall) =>
    `  ${tool.padEnd(28)}${milliseconds(first)} ${milliseconds(second)}   ${milliseconds(more)} more`
  const worst = Math.max(...firstCalls.map(({ more }) => more))
  return [
    'stdio: spawn to the first tools/list, medians of 15 pairs',
    `  empty SDK server            ${milliseconds(listed.empty)}`,
    `  svc-mcp, toolset default    ${milliseconds(listed.ours)}`,
    `  svc-mcp, all tools          ${milliseconds(listedAll.ours)}`,
    ratio('ratio, toolset default', listed.ratio, 0.7),
    ratio('ratio, all tools', listedAll.ratio, 0.7),
    'stdio: the first call of a tool a second after the list, and the second one',
    ...firstCalls.map(callLine),
    `  largest difference          ${milliseconds(worst)}   ${judge(worst, { atMost: 60 })}`,
    'the same without that second',
    ...hastyCalls.map(callLine),
    'HTTP: spawn to /readyz, without authentication, medians of 15 pairs',
    `  empty Fastify server        ${milliseconds(ready.empty)}`,
    `  svc-mcp                     ${milliseconds(ready.ours)}`,
    ratio('ratio', ready.ratio, 1.5),
  ]
}

async function describeOverhead(): Promise<string[]> {
  const { bare, ours, ratio } = await measureOverhead()
  return [
    'PCE client: one GET of 20 labels and its JSON, in turn through both',
    `  bare got                    ${milliseconds(bare, 3)}`,
    `  PCE client                  ${milliseconds(ours, 3)}`,
    `  ratio                       ${ratio.toFixed(2)}   ${judge(ratio, { atMost: 1.3 }, 2)}`,
  ]
}

async function describeStream(): Promise<string[]> {
  const { bare, bareMemory, ours, memory, worstMemory, ratio } = await measureStream()
  return [
    'PCE client: 200,000 traffic flows parsed, each reading in a fresh process; memory as peak (maxRSS) above idle',
    `  bare got, one JSON.parse    ${milliseconds(bare)}  ${bareMemory.toFixed(0).padStart(6)} MiB`,
    `  streamTrafficFlows          ${milliseconds(ours)}  ${memory.toFixed(0).padStart(6)} MiB   worst ${worstMemory.toFixed(0)} MiB`,
    `  ratio of the times          ${ratio.toFixed(2)}   ${judge(ratio, { atMost: 1.3 }, 2)}`,
    `  memory above idle           ${worstMemory.toFixed(0).padStart(4)} MiB   ${judge(worstMemory, { atMost: 150 })}`,
  ]
}

async function describeAnswers(): Promise<string[]> {
  const answers = await measureAnswers()
  const sizes = answers.map(({ bytes }) => bytes)
  const largest = Math.max(...sizes)
  const long = sizes.filter((bytes) => bytes > LONG_ANSWER)
  const usual = median(long)
  const line = (what: string, bytes: number, requests: number) =>
    `  ${what.padEnd(32)}${bytes.toFixed(0).padStart(7)}${requests.toFixed(0).padStart(5)}`
  return [
    'answers in bytes, and requests to the PCE: a usual call of each tool on the estate of npm run demo',
    ...answers.map(({ tool, bytes, requests }) => line(tool, bytes, requests)),
    `  largest answer${' '.repeat(18)}${String(largest).padStart(7)}       ${judge(largest, { atMost: 24_000 })}`,
    `  median of ${long.length} above 2 kB`.padEnd(34) +
      `${usual.toFixed(0).padStart(7)}       ${judge(usual, { atMost: HALF_OF_LONG })}`,
    line('median', median(sizes), median(answers.map(({ requests }) => requests))),
  ]
}

function rate(perSecond: number): string {
  return `${perSecond.toFixed(0).padStart(7)} req/s`
}

function milliseconds(ms: number, digits = 0): string {
  return `${ms.toFixed(digits).padStart(7)} ms`
}

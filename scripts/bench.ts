/**
 * `npm run bench` measures the figures that this project promises, as ratios within one run, so that they mean the same
 * on any machine. It needs a build (which `npm run bench` makes), sends traffic to loopback only, and takes some
 * minutes.
 */
import { describeFlows } from './bench/describe-flows.js'
import { measureAuthenticated } from './bench/measure-authenticated.js'
import { measureCalls } from './bench/measure-calls.js'
import { measureConfirm } from './bench/measure-confirm.js'
import { describeCrowd, measureCrowd } from './bench/measure-crowd.js'
import { describeWatched } from './bench/measure-watched.js'
import { describeDrawing, measureDrawing } from './bench/measure-drawing.js'
import { measureFlows } from './bench/measure-flows.js'
import { describeGraph, measureGraph } from './bench/measure-graph.js'
import { describeKeystore, measureKeystore } from './bench/measure-keystore.js'
import { measureAnswers } from './bench/measure-answers.js'
import { measureList } from './bench/measure-list.js'
import { isInDefault } from '../tools/define.js'
import { tools } from '../tools/index.js'
import { measureOverhead } from './bench/measure-overhead.js'
import { describeReplicas, measureReplicas } from './bench/measure-replicas.js'
import { describeSimulator, measureSimulator } from './bench/measure-simulator.js'
import { median } from './bench/statistics.js'
import { describeParts, measureParts } from './bench/measure-parts.js'
import { measureStart } from './bench/measure-start.js'
import { describeLists, measureLists } from './bench/measure-lists.js'
import { measureStream } from './bench/measure-stream.js'

const TOOLS_WHEN_COMPLETE = 50
const KIB = 1024

const verdict = (met: boolean) => (met ? 'met' : 'MISSED')

console.log('tools/call over HTTP: get-server-changelog, 20 connections, server log and audit log to files')
const calls = await measureCalls()
console.log(`  bare Fastify JSON route     ${calls.bareRoute.toFixed(0).padStart(7)} req/s`)
console.log(`  bare SDK stateless server   ${calls.bareSdk.toFixed(0).padStart(7)} req/s`)
console.log(`  svc-mcp                     ${calls.ours.toFixed(0).padStart(7)} req/s   failures: ${calls.failures}`)
console.log(`  ratio to the bare route     ${calls.toBareRoute.toFixed(2)}`)
console.log(
  `  ratio to the bare SDK       ${calls.toBareSdk.toFixed(2)}   target at least 0.80: ${verdict(calls.toBareSdk >= 0.8)}`,
)

console.log(
  '\ntools/call over HTTP with access tokens of 20 callers (RS256), against a bare route and the same call in dev-insecure mode',
)
const authenticated = await measureAuthenticated()
console.log(`  bare Fastify JSON route     ${authenticated.bareRoute.toFixed(0).padStart(7)} req/s`)
console.log(
  `  the same with our duties    ${authenticated.dutifulRoute.toFixed(0).padStart(7)} req/s   token, headers, two lines of log, two audit entries; nothing of MCP`,
)
console.log(
  `  dev-insecure                ${authenticated.insecure.toFixed(0).padStart(7)} req/s   p99 ${authenticated.insecureP99.toFixed(0)} ms`,
)
console.log(
  `  authenticated               ${authenticated.authenticated.toFixed(0).padStart(7)} req/s   p99 ${authenticated.authenticatedP99.toFixed(0)} ms   failures: ${authenticated.failures}`,
)
console.log(
  `  ratio to the bare route     ${authenticated.toBareRoute.toFixed(2)}   target at least 0.35: ${verdict(authenticated.toBareRoute >= 0.35)}`,
)
console.log(`  ratio to that with duties   ${authenticated.toDutifulRoute.toFixed(2)}`)
console.log(
  `  ratio to dev-insecure       ${authenticated.ratio.toFixed(2)}   target at least 0.90: ${verdict(authenticated.ratio >= 0.9)}`,
)
console.log(
  `  further p99                 ${authenticated.p99More.toFixed(1)} ms   target at most 2: ${verdict(authenticated.p99More <= 2)}`,
)

console.log(`\n${(await describeWatched()).join('\n')}`)

console.log('\nPOST /confirm, and the call it is for, with access tokens of 20 callers')
const confirmed = await measureConfirm()
console.log(`  tokens handed out           ${confirmed.mints.toFixed(0).padStart(7)} /s`)
console.log(
  `  round trips                 ${confirmed.roundTrips.toFixed(0).padStart(7)} /s      p50 ${confirmed.p50.toFixed(1)} ms, p99 ${confirmed.p99.toFixed(1)} ms   failures: ${confirmed.failures}`,
)

console.log(`\n${describeKeystore(await measureKeystore()).join('\n')}`)

console.log(`\n${describeReplicas(await measureReplicas()).join('\n')}`)

console.log('\nstdio: spawn to the first tools/list')
const start = await measureStart()
const startRatio = start.ours / start.empty
console.log(`  empty SDK server            ${start.empty.toFixed(0).padStart(7)} ms`)
console.log(`  svc-mcp                     ${start.ours.toFixed(0).padStart(7)} ms`)
console.log(
  `  ratio                       ${startRatio.toFixed(2)}   target at most 1.50: ${verdict(startRatio <= 1.5)}`,
)

console.log('\nPCE client: one GET of 20 labels and its JSON, in turn through both')
const overhead = await measureOverhead()
console.log(`  bare got                    ${overhead.bare.toFixed(3).padStart(7)} ms`)
console.log(`  PCE client                  ${overhead.ours.toFixed(3).padStart(7)} ms`)
console.log(
  `  ratio                       ${overhead.ratio.toFixed(2)}   target at most 1.30: ${verdict(overhead.ratio <= 1.3)}`,
)

console.log(
  '\nPCE client: 200,000 traffic flows parsed, each reading in a fresh process; memory as peak (maxRSS) above idle',
)
const stream = await measureStream()
console.log(
  `  bare got, one JSON.parse    ${stream.bare.toFixed(0).padStart(7)} ms  ${stream.bareMemory.toFixed(0).padStart(6)} MiB`,
)
console.log(
  `  streamTrafficFlows          ${stream.ours.toFixed(0).padStart(7)} ms  ${stream.memory.toFixed(0).padStart(6)} MiB   worst ${stream.worstMemory.toFixed(0)} MiB`,
)
console.log(
  `  ratio of the times          ${stream.ratio.toFixed(2)}   target at most 1.30: ${verdict(stream.ratio <= 1.3)}`,
)
console.log(
  `  memory above idle           ${stream.worstMemory.toFixed(0).padStart(4)} MiB   target at most 150: ${verdict(stream.worstMemory <= 150)}`,
)

console.log(`\n${describeFlows(await measureFlows()).join('\n')}`)

console.log(`\n${describeParts(await measureParts()).join('\n')}`)

console.log(`\n${describeGraph(await measureGraph()).join('\n')}`)

console.log(`\n${describeDrawing(measureDrawing()).join('\n')}`)

console.log(`\n${describeCrowd(await measureCrowd()).join('\n')}`)

console.log(`\n${describeLists(await measureLists()).join('\n')}`)

console.log(`\n${describeSimulator(await measureSimulator()).join('\n')}`)

console.log('\ntools/list in bytes: what a model reads (name, description, input schema) and the whole entry')
const list = measureList(tools.filter(isInDefault))
for (const tool of list) {
  console.log(`  ${tool.name.padEnd(28)}${String(tool.model).padStart(7)}${String(tool.whole).padStart(8)}`)
}
const model = list.reduce((sum, tool) => sum + tool.model, 0)
const whole = list.reduce((sum, tool) => sum + tool.whole, 0)
console.log(`  ${`all ${list.length} tools`.padEnd(28)}${String(model).padStart(7)}${String(whole).padStart(8)}`)
printBudget('model reads', model, 40 * KIB)
printBudget('whole list', whole, 120 * KIB)

console.log('\nanswers in bytes, and requests to the PCE: a usual call of each tool on the estate of npm run demo')
const answers = await measureAnswers()
const printAnswer = (what: string, bytes: number, requests: number) =>
  console.log(`  ${what.padEnd(32)}${bytes.toFixed(0).padStart(7)}${requests.toFixed(0).padStart(5)}`)
for (const { tool, bytes, requests } of answers) printAnswer(tool, bytes, requests)
printAnswer('median', median(answers.map(({ bytes }) => bytes)), median(answers.map(({ requests }) => requests)))

function printBudget(what: string, bytes: number, budget: number): void {
  const share = (budget * list.length) / TOOLS_WHEN_COMPLETE
  console.log(
    `  ${what.padEnd(12)} ${(bytes / KIB).toFixed(1)} KiB of ${budget / KIB} KiB for ${TOOLS_WHEN_COMPLETE} tools` +
      ` (${((100 * bytes) / share).toFixed(0)} % of the share of ${list.length}): ${verdict(bytes <= budget)}`,
  )
}

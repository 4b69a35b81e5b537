/**
 * Every kind of call under every fault: nothing is written twice, nothing that failed is reported as done or as not there, nothing
 * that was done is reported as failed, and whatever is thrown is a PceError of a known code. Calls that send alike requests share the
 * code that sends them: the first of them meets every fault, the others one of each effect, and every body that is no answer.
 */
import t, { type Test } from 'tap'
import { PceApiError, PceError } from '../../pce-client/index.js'
import { startContractPce, type ContractPce } from './contract/start-contract-pce.js'
import { CALLS, type Call } from './faults/calls.js'
import { FAULTS } from './faults/faults.js'
import { startGateway, type Fault, type Gateway, type Strike } from './faults/faulty-gateway.js'
import { clientOf } from './support.js'

const LEAST_FAULTS = 1000
const AT_ONCE = 8
/** Connections to it are refused. */
const NOBODY_LISTENS = 1
/** The requests of one call that a fault begins at. */
const MOST_POSITIONS = 5

const CODES = new Set([
  'api_error',
  'outcome_unknown',
  'unreachable',
  'deadline',
  'job_failed',
  'traffic_query_failed',
  'traffic_query_timeout',
  'body_too_large',
  'invalid_response',
])

let runs = 0
const unhandled: unknown[] = []
const note = (reason: unknown) => void unhandled.push(reason)
process.on('unhandledRejection', note)
t.teardown(() => process.off('unhandledRejection', note))

interface Outcome {
  result?: unknown
  error?: unknown
  /** The requests that reached the gateway, those that a fault struck, and the writes that the PCE carried out. */
  requests: number
  struck: number
  writes: { line: string; body: string }[]
}

interface Bench {
  pce: ContractPce
  gateway: Gateway
}

async function run({ pce, gateway }: Bench, call: Call, strike: Strike | null, port = gateway.port): Promise<Outcome> {
  const number = ++runs
  const given = (await call.arrange?.(pce, number)) as never
  const { key, secret } = pce.simulator.credentials
  // Only a fault that stalls is waited for, so that a slow machine makes no other call late.
  const limits = strike?.fault.stalls === true ? { requestTimeout: 1, idleTimeout: 0.3 } : {}
  const client = clientOf({ port }, limits)
  client.setCredentials(key, secret)
  gateway.begin(strike, call.answered)
  const ended = await call.act(client, given, number).then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  )
  client.close()
  return { ...ended, requests: gateway.requests(), struck: gateway.struck(), writes: gateway.handledWrites() }
}

/** What is not true of an outcome, given the outcome of the same call without a fault. */
function judge(call: Call, clean: Outcome, { fault }: Strike, outcome: Outcome): string[] {
  const { error } = outcome
  // A query or job that failed is deleted, so that the PCE is rid of it.
  const writes = outcome.writes.filter(({ line }) => call.asks !== true || !line.startsWith('DELETE '))
  const isWrite = writesOf(call, clean)
  const distinct = new Set(writes.map(({ line, body }) => `${line} ${body}`)).size
  const wrong: string[] = []
  if ((call.repeatable === true || call.computes === true ? distinct : writes.length) > clean.writes.length)
    wrong.push(`was carried out ${writes.length} times: ${writes.map(({ line }) => line).join(', ')}`)
  if (!('error' in outcome)) {
    if (isWrite && writes.length < clean.writes.length) wrong.push('reported as done, but was not')
    if (!saysTheSame(call, clean, outcome) && !(fault.misshapes === true && call.open === true))
      wrong.push(`resolved with something else: ${clip(outcome.result)}`)
    return wrong
  }
  if (fault.usable === true) wrong.push(`refused an answer that can be used: ${String(error)}`)
  if (!(error instanceof PceError)) return [...wrong, `threw no PceError: ${String((error as Error).stack ?? error)}`]
  if (!CODES.has(error.code)) wrong.push(`threw the code ${error.code}`)
  if (isWrite && writes.length > 0 && error.code !== 'outcome_unknown' && fault.deniesHandling !== true)
    wrong.push(`was done, but is reported as ${error.code}: ${error.message}`)
  if (!isWrite && call.asks !== true && error.code === 'outcome_unknown')
    wrong.push('a read cannot have changed anything')
  if (error instanceof PceApiError && error.isGone) wrong.push(`reported as not there: ${error.message}`)
  return wrong
}

/** A read answers what it answers without a fault, a write something of the same shape. */
function saysTheSame(call: Call, clean: Outcome, { result }: Outcome): boolean {
  const show = (value: unknown) => {
    if (call.shows !== undefined) return call.shows(value as never)
    return writesOf(call, clean) ? shapeOf(value) : value
  }
  return JSON.stringify(show(result)) === JSON.stringify(show(clean.result))
}

const writesOf = (call: Call, clean: Outcome) => clean.writes.length > 0 && call.asks !== true && call.computes !== true

function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return typeof value
  return Object.keys(value).sort()
}

const clip = (value: unknown) => String(JSON.stringify(value)).slice(0, 200)

/** A simulator and the gateway in front of it, and what the call does without a fault. */
async function startCall(t: Test, call: Call): Promise<{ bench: Bench; clean: Outcome }> {
  // What a fault does to an answer does not depend on how many flows are in it.
  const pce = await startContractPce(t, {
    flows: 40,
    ...(call.workloads !== undefined && { workloads: call.workloads }),
  })
  const bench = { pce, gateway: await startGateway(t, Number(new URL(pce.simulator.url).port)) }
  return { bench, clean: await run(bench, call, null) }
}

interface Report {
  clean: Outcome
  faults: number
  wrong: string[]
}

/** The requests of a call, as far as the code that sends them can tell them apart. */
const sentBy = ({ repeatable, asks, computes, open }: Call, { requests, writes }: Outcome) =>
  JSON.stringify([requests, writes.map(({ line }) => line.split(' ')[0]), repeatable, asks, computes, open])

const effectOf = ({ handled, deniesHandling, stalls, usable }: Fault) =>
  JSON.stringify([handled, deniesHandling, stalls, usable])
const EFFECTS = FAULTS.filter(
  (fault, at) => fault.misshapes === true || FAULTS.findIndex((one) => effectOf(one) === effectOf(fault)) === at,
)

async function tryFaults(
  call: Call,
  { bench, clean }: { bench: Bench; clean: Outcome },
  faults: readonly Fault[],
): Promise<Report> {
  if ('error' in clean) return { clean, faults: 0, wrong: [`without a fault: ${String(clean.error)}`] }
  const report: Report = { clean, faults: 1, wrong: [] }
  const { error } = await run(bench, call, null, NOBODY_LISTENS)
  if (!(error instanceof PceError) || error.code !== 'unreachable')
    report.wrong.push(`nobody listens: ${error instanceof Error ? error.message : 'a success'}`)
  for (let from = 0; from < Math.min(clean.requests, MOST_POSITIONS); from++) {
    for (const fault of faults) {
      // Where no request follows the one that is struck, it makes no difference whether the next would be struck as well.
      let isLast = false
      for (const once of fault.stalls === true ? [true] : [true, false]) {
        if (isLast) continue
        const strike = { fault, from, once }
        const outcome = await run(bench, call, strike)
        isLast = outcome.requests <= from + 1
        report.faults += outcome.struck > 0 ? 1 : 0
        const where = `${fault.name}, ${once ? 'at' : 'from'} request ${from + 1}${once ? '' : ' on'}`
        report.wrong.push(...judge(call, clean, strike, outcome).map((what) => `${where}: ${what}`))
      }
    }
  }
  return report
}

t.test('every kind of call under every fault', async (t) => {
  const names = Object.keys(CALLS)
  const reports = new Map<string, Report>()
  const atOnce = async (work: (name: string) => Promise<void>) => {
    const left = [...names]
    const worker = async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) await work(name)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  }
  const started = new Map<string, { bench: Bench; clean: Outcome }>()
  await atOnce(async (name) => void started.set(name, await startCall(t, CALLS[name]!)))
  const sent = names.map((name) => sentBy(CALLS[name]!, started.get(name)!.clean))
  await atOnce(async (name) => {
    const at = names.indexOf(name)
    const faultsOf = sent.indexOf(sent[at]!) === at ? FAULTS : EFFECTS
    reports.set(name, await tryFaults(CALLS[name]!, started.get(name)!, faultsOf))
  })
  let faults = 0
  for (const [name, report] of reports) {
    t.strictSame(report.wrong, [], `${name}: ${report.faults} faults`)
    faults += report.faults
  }
  t.ok(faults >= LEAST_FAULTS, `${faults} faults in ${names.length} kinds of calls`)
  t.comment(`${faults} faults in ${reports.size} kinds of calls`)
  t.strictSame(unhandled, [], 'no rejection is left unhandled')
})

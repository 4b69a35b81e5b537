import type { Test } from 'tap'
import { fixedCredentials } from '../../programs/composition/compose-unauthenticated.js'
import { createPceClient, type PceClient } from '../../pce-client/index.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import type { WriteOrder } from '../../plugins/dispatcher/write-order.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { renderError } from '../../plugins/errors/render-errors.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'
import type { ProgressUpdate } from '../../domain/call.js'
import { tools } from '../../tools/index.js'
import { createPceSimulator, type PceSimulator, type RecordedRequest } from '../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'

/** The instant at which every test of the tools takes place. */
export const NOW = Date.parse('2026-06-15T12:00:00Z')
export const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are read as they come off the wire
export type Json = any

/** Of a caller whose PCE nobody can change. */
export const noCredentials = fixedCredentials(true, 'Of the test.', {
  code: 'keystore_unavailable',
  message: 'There is no keystore in this test.',
})

export interface Bench {
  simulator: PceSimulator
  pce: PceClient
  /** Progress of the last call. */
  progress: ProgressUpdate[]
  /** Moves the clock that the tools see. */
  advance(ms: number): void
  /** The answer of a call that must succeed. */
  ok: (name: string, args?: object) => Promise<Json>
  /** What a call answers, which is an error body if it fails. */
  answer: (name: string, args?: object) => Promise<Json>
  /** The error body of a call that must fail with this code. */
  fails: (name: string, args: object, code: string) => Promise<Json>
  /** The error body of a call that is cancelled as soon as a report of its progress is the one waited for. */
  cancelled(name: string, args: object, when: (update: ProgressUpdate) => boolean): Promise<Json>
  /** Aborts what is running, as a server that stops does. */
  stop(): void
  /** Aborts the last call, as its client does that leaves. */
  leave(): void
  /** Writes the PCE has seen since the last call of this function. */
  writes: () => RecordedRequest[]
}

export interface BenchOptions extends PceSimulatorOptions {
  /** Tools beside those of the list. */
  tools?: readonly AnyTool[]
  budget?: number
  /** Default 64. */
  maxParts?: number
  /** Seconds that pass until a traffic query is given up; default 600. */
  queryTimeout?: number
  changelog?: () => Promise<string | null>
  writeOrder?: WriteOrder
}

/**
 * A PCE as the guide describes it, which no recording confirms: selective mode reports "allowed" where no rule covers a
 * flow (P52).
 */
export const AS_GUIDED = { reality: 'lab' } as const

/** Every tool behind the dispatcher, with the real client, against a simulated PCE over HTTP. Waits take no time. */
export async function startBench(t: Test, options: BenchOptions = {}): Promise<Bench> {
  const simulator = await createPceSimulator({
    seed: 3,
    workloads: 120,
    flows: 500,
    totalCount: 'all',
    now: () => NOW,
    ...options,
  })
  t.teardown(() => simulator.close())
  return benchOf(t, simulator, await simulator.listen(), options)
}

/** Finds the name of a tool other than this one. */
const otherThan = (own: string) =>
  new RegExp(`(?<![\\w-])(?:${tools.flatMap(({ name }) => (name === own ? [] : [name])).join('|')})(?![\\w-])`)

/** Leaves out what a deny rule says of workloads that do not enforce it, which a random estate has in any number. */
export const withoutModes = (warnings: readonly string[] = []): string[] =>
  warnings.filter((text) => !/ with a VEN|^Kubernetes workloads were not looked at/.test(text))

/** What a bench needs of the test that owns it. */
interface Owner {
  teardown(close: () => unknown): void
  equal(found: unknown, wanted: unknown, message: string): unknown
}

/** As startBench, for a PCE that listens already (a scripted server, a dead port). */
export function benchOf(t: Owner, simulator: PceSimulator, url: string, options: BenchOptions = {}): Bench {
  const pce = connect(simulator, url)
  t.teardown(() => pce.close())

  let now = NOW
  const progress: ProgressUpdate[] = []
  const silent = () => undefined
  const start = () =>
    createDispatcher({
      tools: catalogueOf([...tools, ...(options.tools ?? [])]),
      gates: [],
      audit: null,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      limits: {
        responseBudgetBytes: options.budget ?? 24_000,
        trafficQueryTimeoutSeconds: options.queryTimeout ?? 600,
        trafficMaxParts: options.maxParts ?? 64,
      },
      callTracker: createCallTracker(),
      ...(options.writeOrder !== undefined && { writeOrder: options.writeOrder }),
      server: { name: 'svc-mcp', version: '0.1.0', changelog: options.changelog ?? (async () => null) },
      now: () => now,
    })
  let dispatcher = start()
  let controller = new AbortController()
  const call = (name: string, args: object, cancel: (update: ProgressUpdate) => boolean = () => false) => {
    progress.length = 0
    const own = new AbortController()
    controller = own
    const report = (update: ProgressUpdate) => {
      progress.push(update)
      if (cancel(update)) own.abort()
    }
    return dispatcher.dispatch(
      { name, arguments: args as Json, requestId: 'r1', sender: own, progress: report },
      {
        caller: { mode: 'insecure', role: 'admin', iss: null, sub: null },
        transport: 'http',
        credentials: noCredentials,
        pce,
      },
    )
  }
  let seen = 0
  return {
    simulator,
    pce,
    progress,
    advance: (ms) => (now += ms),
    stop() {
      const stopped = dispatcher
      dispatcher = start()
      stopped.abortAll()
    },
    leave: () => controller.abort(),
    async ok(name, args = {}) {
      const result = await call(name, args)
      if (!result.ok) throw new Error(`${name} failed: ${JSON.stringify(renderError(result.error, 'r1'))}`)
      return result.value
    },
    async answer(name, args = {}) {
      const result = await call(name, args)
      return result.ok ? result.value : renderError(result.error, 'r1')
    },
    async fails(name, args, code) {
      const result = await call(name, args)
      if (result.ok) throw new Error(`${name} should have failed: ${JSON.stringify(result.value).slice(0, 500)}`)
      t.equal(result.error.code, code, `${name} fails with ${code}: ${result.error.message}`)
      const led = otherThan(name).exec(result.error.message)?.[0]
      if (led !== undefined && code !== 'unknown_tool')
        t.equal(led, undefined, 'only a hint may name another tool, which a caller may not have')
      return renderError(result.error, 'r1')
    },
    async cancelled(name, args, when) {
      const result = await call(name, args, when)
      if (result.ok) throw new Error(`${name} was not cancelled: ${JSON.stringify(progress)}`)
      return renderError(result.error, 'r1')
    },
    writes() {
      const fresh = simulator.requests.slice(seen)
      seen = simulator.requests.length
      const reading = /\/(?:async_queries|dependencies|impact|rule_search)(?:\/|$)/
      return fresh.filter(({ method, path }) => method !== 'GET' && !reading.test(path))
    },
  }
}

/** A client of a simulated PCE, whose retries take no time. Who makes it closes it. */
export function connect({ orgId, credentials }: Pick<PceSimulator, 'orgId' | 'credentials'>, url: string): PceClient {
  const { protocol, hostname, port } = new URL(url)
  const sleep = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      signal?.throwIfAborted()
      setImmediate(() => (signal?.aborted ? reject(new Error('aborted')) : resolve()))
    })
  const timers = { now: Date.now, random: () => 0.5, sleep }
  const pce = createPceClient({ url: `${protocol}//${hostname}`, port, orgId, timers, requestTimeout: 60 })
  pce.setCredentials(credentials.key, credentials.secret)
  return pce
}

import type { Test } from 'tap'
import { PceError } from '../../../pce-client/index.js'
import type { PceClientOptions } from '../../../pce-client/types.js'
import { createCaller } from '../../pce-simulator/call-pce.js'
import { createPceSimulator } from '../../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../../pce-simulator/options.js'
import { clientOf } from '../support.js'
import { project } from './project.js'

export type Json = Record<string, unknown>

/** One request as it must have reached the PCE. What is not named must not have been there: no query, no body. */
export interface Wire {
  method: string
  /** Below `/api/v2`, as sent. */
  path: string
  query?: Record<string, string>
  body?: unknown
  /** The PCE's answer; 200 unless named. Several where no source says which. */
  status?: number | readonly number[]
}

export interface Refused {
  status: number
  method: string
  /** Below `/api/v2`. */
  path: string
  /** The PCE's token; absent where no source names one. */
  token?: string
}

export type ContractPce = Awaited<ReturnType<typeof startContractPce>>

/** What metrics and traces call the requests of every client so far. */
export const operationNames = new Set<string>()

/** A simulator with a generated organisation, the real client on it, and the assertions about what went over the wire. */
export async function startContractPce(t: Test, options: PceSimulatorOptions = {}) {
  const simulator = await createPceSimulator({
    seed: 7,
    workloads: 60,
    flows: 400,
    pollsUntilDone: 1,
    now: () => Date.UTC(2026, 2, 1, 12),
    ...options,
  })
  await simulator.listen()
  t.teardown(() => simulator.close())
  const call = createCaller(simulator)
  const { key, secret } = simulator.credentials
  const connect = (more: Partial<PceClientOptions> = {}) => {
    const onRequest: PceClientOptions['onRequest'] = ({ operation }) => {
      operationNames.add(operation)
      return { ended: () => {} }
    }
    const client = clientOf({ port: Number(new URL(simulator.url).port) }, { onRequest, ...more })
    client.setCredentials(key, secret)
    t.teardown(() => client.close())
    return client
  }
  let wires = 0
  let refusals = 0

  return {
    simulator,
    connect,
    client: connect(),

    /** A plain HTTP request that prepares the ground; nothing of it counts as the client's. */
    ask: async <T = Json>(method: string, path: string, json?: unknown): Promise<T> => {
      const answer = await call(method, path, json)
      if (answer.status > 399) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
      simulator.clearRequests()
      return answer.body as T
    },

    /** What a collection holds now, for bodies that point at something; empty where there is no such collection. */
    list: async (path: string): Promise<(Json & { href: string })[]> => {
      const { body } = await call('GET', path)
      simulator.clearRequests()
      return Array.isArray(body) && body.every(({ href }) => href) ? body : []
    },

    /** Every request since the last look was one of these, in this order, exactly. */
    wire: (t: Test, expected: Wire | readonly Wire[], message: string): void => {
      const list = (Array.isArray(expected) ? expected : [expected]) as readonly Wire[]
      const seen = simulator.requests.map(({ method, path, query, body, status }) => ({
        method,
        path: path.replace(/^\/api\/v2/, ''),
        query: { ...query },
        body,
        status,
      }))
      simulator.clearRequests()
      wires++
      t.strictSame(
        seen,
        list.map(({ query = {}, body, status = 200, ...rest }, index) => {
          const answered = seen[index]?.status ?? null
          const isOneOf = Array.isArray(status) && answered !== null && status.includes(answered)
          return { ...rest, query, body, status: isOneOf ? answered : status }
        }),
        message,
      )
    },

    /** Every request since the last look, for what a list of literals cannot say. */
    look: () => {
      const seen = simulator.requests.map((request) => ({
        ...request,
        line: `${request.method} ${request.path.replace(/^\/api\/v2/, '')}`,
        query: { ...request.query },
      }))
      simulator.clearRequests()
      wires++
      return seen
    },

    /** What the client refuses by itself: nothing may reach the PCE. */
    refusedHere: async (t: Test, attempt: () => Promise<unknown>, code: string, message: string): Promise<void> => {
      simulator.clearRequests()
      const error = await failureOf(attempt)
      t.ok(error instanceof PceError && error.code === code, `${message}: ${describe(error)}`)
      t.strictSame(simulator.requests.length, 0, `${message}: before any request`)
    },

    /** What the PCE refuses, as the client maps it. */
    refused: async (t: Test, attempt: () => Promise<unknown>, expected: Refused, message: string): Promise<void> => {
      const { token, ...facts } = expected
      simulator.clearRequests()
      const error = (await failureOf(attempt)) as { errors?: unknown } | undefined
      const last = simulator.requests.at(-1)
      t.strictSame(
        { method: last?.method, path: last?.path },
        { method: facts.method, path: `/api/v2${facts.path}` },
        `${message}: the request that was refused`,
      )
      simulator.clearRequests()
      refusals++
      const wanted = { name: 'PceApiError', code: 'api_error', ...facts }
      t.strictSame(project(error, wanted), wanted, `${message}: ${describe(error)}`)
      t.ok(Array.isArray(error?.errors), `${message}: with the PCE's errors`)
      if (token !== undefined) {
        t.strictSame((error?.errors as Json[] | undefined)?.[0]?.token, token, `${message}: with its token`)
      }
    },

    /** The next matching request is refused with a body of the PCE's form. */
    refuseNext: (method: string, path: string, status: number, token: string): void => {
      simulator.faults.add({
        kind: 'status',
        method,
        path: new RegExp(`^/api/v2${path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`),
        times: 1,
        status,
        body: [{ token, message: 'Said the PCE' }],
      })
    },

    /** The next matching request gets this answer: for operations that the simulator does not carry out. */
    answerNext: (method: string, path: string, body: unknown, status = 200): void => {
      simulator.faults.add({ kind: 'answer', method, path, times: 1, status, body })
    },

    /** How many assertions about the wire and about refusals there were. */
    tally: () => ({ wires, refusals }),
  }
}

/** What a call that must fail failed with; undefined when it did not. */
export async function failureOf(attempt: () => Promise<unknown>): Promise<unknown> {
  try {
    await attempt()
    return undefined
  } catch (error) {
    return error
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message.split('\n').join(' | ') : 'nothing failed'
}

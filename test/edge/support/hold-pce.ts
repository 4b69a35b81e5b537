/** A simulated PCE that speaks https, and keeps chosen requests waiting for as long as the test likes. */
import { createServer } from 'node:https'
import { request as requestHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPceSimulator, type PceSimulator } from '../../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../../pce-simulator/options.js'
import type { Certificate } from './make-certificate.js'

interface Test {
  teardown(fn: () => unknown): void
}

/** What waits: the first request that matches. */
export interface Hold {
  /** Resolves once the request is there. */
  reached: Promise<void>
  /** Resolves once whoever asked has given up. */
  gone: Promise<void>
  /** Lets it, and whatever matches later, pass. */
  release(): void
}

export interface HeldPce {
  simulator: PceSimulator
  port: number
  hold(matches: (request: { method: string; path: string }) => boolean): Hold
  /** What register-pce-credentials takes for this PCE. */
  registration: {
    pce_host: string
    pce_port: number
    pce_org_id: number
    api_key: string
    api_secret: string
  }
}

interface Waiting extends Hold {
  matches: (request: { method: string; path: string }) => boolean
  wait(response: ServerResponse): Promise<void>
}

export async function startPce(
  t: Test,
  { cert, key }: Certificate,
  options: PceSimulatorOptions = {},
): Promise<HeldPce> {
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 50, ...options })
  const behind = new URL(await simulator.listen({ port: 0 }))
  const holds: Waiting[] = []

  const front = createServer({ cert, key }, (request, response) => void pass(request, response))
  async function pass(request: IncomingMessage, response: ServerResponse) {
    const { method = 'GET', url = '/', headers } = request
    const held = holds.find(({ matches }) => matches({ method, path: url.split('?', 1)[0]! }))
    if (held !== undefined) await held.wait(response)
    const onward = requestHttp({ host: behind.hostname, port: behind.port, method, path: url, headers, agent: false })
    onward.on('error', () => response.destroy())
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  }
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const { port } = front.address() as AddressInfo
  t.teardown(async () => {
    front.closeAllConnections()
    front.close()
    await simulator.close()
  })

  function hold(matches: Waiting['matches']): Hold {
    const [reached, gone, released] = [defer(), defer(), defer()]
    const held: Waiting = {
      matches,
      reached: reached.promise,
      gone: gone.promise,
      release() {
        holds.splice(holds.indexOf(held), 1)
        released.resolve()
      },
      wait(response) {
        reached.resolve()
        response.once('close', () => response.writableFinished || gone.resolve())
        return released.promise
      },
    }
    holds.push(held)
    return held
  }

  return {
    simulator,
    port,
    hold,
    registration: {
      pce_host: '127.0.0.1',
      pce_port: port,
      pce_org_id: Number(simulator.orgId),
      api_key: simulator.credentials.key,
      api_secret: simulator.credentials.secret,
    },
  }
}

function defer() {
  let resolve!: () => void
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

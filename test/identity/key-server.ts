import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JWK } from 'jose'
import { freePort } from '../free-port.js'
import type { ForgedKey } from './forge.js'

/** What can be wrong with a key endpoint. */
export const KEY_FAULTS = {
  /** Accepts and says nothing. */
  hang: () => {},
  /** Says 200 and one byte, then nothing. */
  stall: (response) => void response.writeHead(200, JSON_TYPE).write('{'),
  /** The status alone tells that these are not to be trusted. */
  error: (response, keys) => void response.writeHead(500, JSON_TYPE).end(keys),
  html: (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>'),
  half: (response) => void response.writeHead(200, JSON_TYPE).end('{"keys":[{"kty":"RSA","n":"'),
  empty: (response) => void response.writeHead(200, JSON_TYPE).end('{"keys":[]}'),
  nothing: (response) => void response.writeHead(200, JSON_TYPE).end(),
  'wrong type': (response) => void response.writeHead(200, JSON_TYPE).end('{"keys":{"kid":"a"}}'),
  'no object': (response) => void response.writeHead(200, JSON_TYPE).end('[1,null]'),
  'odd keys': (response) =>
    void response.writeHead(200, JSON_TYPE).end('{"keys":[null,1,"a",[],{},{"kty":"RSA","kid":5},{"kty":"OKP"}]}'),
  drop: (response) => void response.socket?.destroy(),
  /** 50 MB, good keys at the end. */
  huge(response, keys) {
    const block = Buffer.alloc(1024 * 1024, 32)
    response.writeHead(200, JSON_TYPE)
    let left = 50
    const write = () => {
      while (left > 0) if ((left--, !response.write(block))) return void response.once('drain', write)
      response.end(keys)
    }
    write()
  },
} satisfies Record<string, (response: ServerResponse, keys: string) => void>

export type KeyFault = keyof typeof KEY_FAULTS | { redirectTo: string }

const JSON_TYPE = { 'content-type': 'application/json' }

interface Test {
  teardown(fn: () => unknown): void
}

/** A key endpoint on loopback that publishes what the test tells it to, or fails as told, and counts who asks. */
export async function startKeyServer(t: Test, ...keys: (ForgedKey | JWK)[]) {
  let port = await freePort()
  const knobs = {
    /** What is published. */
    keys: keys as readonly (ForgedKey | JWK)[],
    fault: null as KeyFault | null,
    /** Requests so far. */
    fetches: 0,
    /** Requests that are neither answered nor given up. */
    open: 0,
    url: '',
    stop,
    start,
  }
  const server = createServer((_request, response) => {
    knobs.fetches++
    knobs.open++
    response.once('close', () => knobs.open--)
    response.setHeader('connection', 'close')
    const { fault } = knobs
    const body = JSON.stringify({ keys: knobs.keys.map(published) })
    if (fault === null) response.writeHead(200, JSON_TYPE).end(body)
    else if (typeof fault === 'object') response.writeHead(302, { location: fault.redirectTo }).end()
    else KEY_FAULTS[fault](response, body)
  })
  await start()
  knobs.url = `http://127.0.0.1:${port}/keys?tenant=1`
  t.teardown(stop)
  return knobs

  /** Listens again, at the same address. */
  async function start(): Promise<void> {
    port = await listen(server, port)
  }

  /** Nobody listens any more. */
  async function stop(): Promise<void> {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
}

/** A server nobody should ever call; `calls` says whether someone did, with so much as a connection. */
export async function startCanary(t: Test): Promise<{ url: string; calls: number }> {
  const canary = { url: '', calls: 0 }
  const server = createServer((_request, response) => response.end('{}'))
  server.on('connection', () => canary.calls++)
  canary.url = `http://127.0.0.1:${await listen(server, 0)}/canary`
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return canary
}

const published = (key: ForgedKey | JWK): JWK => (isForged(key) ? key.jwk : key)

// A set may hold anything.
const isForged = (key: unknown): key is ForgedKey => typeof key === 'object' && key !== null && 'privateKey' in key

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve())
  })
  return (server.address() as AddressInfo).port
}

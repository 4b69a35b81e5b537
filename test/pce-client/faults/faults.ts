import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Answer, Fault } from './faulty-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const TOKEN = (token: string) => JSON.stringify([{ token, message: 'Something went wrong' }])
const PAGE = '<html><head><title>Log in</title></head><body><form action="/login"></form></body></html>'

const reset = (response: ServerResponse) => void (response.socket as { resetAndDestroy(): void }).resetAndDestroy()
const close = (response: ServerResponse) => void response.socket!.destroy()
/** What the PCE would have said, or a plausible success where it was not asked. */
const statusOf = ({ status }: Answer) => (status === 0 ? 200 : status)
/** A status that can have a body. */
const bodyStatus = (answer: Answer) => (statusOf(answer) === 204 ? 200 : statusOf(answer))

const says =
  (status: number, headers: Record<string, string> = {}, body = TOKEN('some_error')) =>
  (response: ServerResponse) =>
    void response.writeHead(status, { ...JSON_TYPE, ...headers }).end(body)

/** Half of the body under the length of the whole; of an empty one, nothing under a length. */
function half(response: ServerResponse, answer: Answer, then: () => void): void {
  const whole = answer.body.length === 0 ? Buffer.from('[{"href":"/orgs/1/labels/1"}]') : answer.body
  response.writeHead(bodyStatus(answer), { ...answer.headers, ...JSON_TYPE, 'content-length': String(whole.length) })
  response.write(whole.subarray(0, Math.floor(whole.length / 2)), then)
}

function packedHalf(response: ServerResponse, answer: Answer): void {
  const whole = gzipSync(answer.body.length === 0 ? Buffer.from('[{"href":"/orgs/1/labels/1"}]') : answer.body)
  const cut = whole.subarray(0, Math.floor(whole.length / 2))
  response.writeHead(bodyStatus(answer), { ...answer.headers, ...JSON_TYPE, 'content-encoding': 'gzip' }).end(cut)
}

/** The fault twice: the PCE has handled the request, or never saw it. */
const both = (name: string, fault: Omit<Fault, 'name' | 'handled'>): Fault[] => [
  { ...fault, name: `${name} before it is handled`, handled: false },
  { ...fault, name: `${name} after it is handled`, handled: true },
]

const STATUSES = [500, 502, 503, 504]
const RETRY_AFTER: Record<string, Record<string, string>> = {
  '': {},
  ' with Retry-After': { 'retry-after': '2' },
  ' with a Retry-After of nonsense': { 'retry-after': 'soon' },
  ' with a Retry-After of days': { 'retry-after': '999999' },
}

/** Every fault between the client and the PCE that is tried on every kind of call. */
export const FAULTS: readonly Fault[] = [
  ...both('the connection is reset', { strike: reset }),
  ...both('the connection is closed', { strike: close }),
  ...both('no answer comes', { strike: () => undefined, stalls: true }),
  ...both('what comes is not HTTP', { strike: (response) => void response.socket!.end('SSH-2.0-OpenSSH_9.6\r\n') }),
  {
    name: 'the body breaks off',
    handled: true,
    strike: (response, answer) => half(response, answer, () => close(response)),
  },
  {
    name: 'the body stalls',
    handled: true,
    stalls: true,
    strike: (response, answer) => half(response, answer, () => undefined),
  },
  { name: 'the gzip is cut off', handled: true, strike: packedHalf },
  {
    name: 'the gzip is damaged',
    handled: true,
    strike: (response, answer) =>
      void response
        .writeHead(bodyStatus(answer), { ...JSON_TYPE, 'content-encoding': 'gzip' })
        .end(Buffer.concat([gzipSync('').subarray(0, 10), Buffer.from('[{"a":1}]')])),
  },
  {
    // The first bytes of a body decide, whatever is announced (P11).
    name: 'plain text is announced as gzip',
    handled: true,
    usable: true,
    strike: (response, answer) =>
      void response
        .writeHead(statusOf(answer), { ...answer.headers, ...JSON_TYPE, 'content-encoding': 'gzip' })
        .end(answer.body),
  },
  {
    name: 'the type is text',
    handled: true,
    usable: true,
    strike: (response, answer) =>
      void response.writeHead(statusOf(answer), { ...answer.headers, 'content-type': 'text/plain' }).end(answer.body),
  },
  ...both('a page comes with 200', {
    strike: (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE),
  }),
  ...[302, 307].flatMap((status) =>
    both(`a redirect (${status}) comes`, { strike: says(status, { location: 'http://127.0.0.1:1/login' }, '') }),
  ),
  ...Object.entries(RETRY_AFTER).map(([with_, headers]) => ({
    name: `429${with_}`,
    handled: false,
    strike: says(429, headers, TOKEN('too_many_requests_error')),
  })),
  { name: '406 comes', handled: false, strike: says(406, {}, TOKEN('not_acceptable')) },
  ...STATUSES.flatMap((status) =>
    Object.entries(RETRY_AFTER)
      .slice(0, status === 503 ? 4 : 1)
      .flatMap(([with_, headers]) =>
        both(`${status}${with_} comes`, { strike: says(status, headers), deniesHandling: status === 503 }),
      ),
  ),
  ...both('500 comes as a page', {
    strike: (response) => void response.writeHead(500, { 'content-type': 'text/html' }).end(PAGE),
  }),
  ...['', 'null', '7', '"x"', 'true', '{"x":1}', '{"error":"x"}', '[null]', '[[]]', '[{"a":', '\u0000'].map(
    (body): Fault => ({
      name: `the body is ${JSON.stringify(body)}`,
      handled: true,
      misshapes: true,
      strike: (response, answer) =>
        void response.writeHead(bodyStatus(answer), { ...answer.headers, ...JSON_TYPE }).end(body),
    }),
  ),
]

/** A collector that takes spans over OTLP/HTTP in protobuf, and reads of them what the tests look at. */
import { createServer } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { listen } from '../pce-client/support.js'
import type { Test } from 'tap'

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentId: string
  name: string
  /** 1 internal, 2 server, 3 client. */
  kind: number
  attributes: Record<string, string | number | undefined>
  isError: boolean
  /** The ids of the spans that it is linked with. */
  links: string[]
}

/** The fields of a protobuf message by number, in their order: numbers, or bytes (https://protobuf.dev/programming-guides/encoding/). */
function fieldsOf(bytes: Buffer): Map<number, (number | Buffer)[]> {
  const fields = new Map<number, (number | Buffer)[]>()
  let at = 0
  const varint = () => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++]!
      value += (byte & 0x7f) * shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => bytes.subarray(at, (at += length))
  while (at < bytes.length) {
    const tag = varint()
    const wire = tag % 8
    const value = wire === 0 ? varint() : take(wire === 1 ? 8 : wire === 5 ? 4 : varint())
    const number = Math.floor(tag / 8)
    fields.set(number, [...(fields.get(number) ?? []), value])
  }
  return fields
}

const messages = (fields: Map<number, (number | Buffer)[]>, number: number) =>
  (fields.get(number) ?? []).map((value) => fieldsOf(value as Buffer))
const bytesOf = (fields: Map<number, (number | Buffer)[]>, number: number) =>
  (fields.get(number)?.[0] as Buffer | undefined) ?? Buffer.alloc(0)

function attributesOf(fields: Map<number, (number | Buffer)[]>, number: number) {
  return Object.fromEntries(
    messages(fields, number).map((pair) => {
      const value = fieldsOf(bytesOf(pair, 2))
      const text = value.get(1)?.[0] as Buffer | undefined
      return [bytesOf(pair, 1).toString(), text?.toString() ?? (value.get(3)?.[0] as number | undefined)]
    }),
  )
}

function spanOf(fields: Map<number, (number | Buffer)[]>): ReceivedSpan {
  return {
    traceId: bytesOf(fields, 1).toString('hex'),
    spanId: bytesOf(fields, 2).toString('hex'),
    parentId: bytesOf(fields, 4).toString('hex'),
    name: bytesOf(fields, 5).toString(),
    kind: (fields.get(6)?.[0] as number | undefined) ?? 0,
    attributes: attributesOf(fields, 9),
    isError: fieldsOf(bytesOf(fields, 15)).get(3)?.[0] === 2,
    links: messages(fields, 13).map((link) => bytesOf(link, 2).toString('hex')),
  }
}

/** Listens on loopback. `raw` is everything that was received, as text. */
export async function startCollector(t: Test) {
  const received = {
    url: '',
    spans: [] as ReceivedSpan[],
    resources: [] as Record<string, string | number | undefined>[],
    headers: [] as Record<string, unknown>[],
    raw: '',
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const sent = Buffer.concat(chunks)
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent
      received.raw += body.toString('latin1')
      received.headers.push({ path: request.url, ...request.headers })
      for (const ofResource of messages(fieldsOf(body), 1)) {
        received.resources.push(attributesOf(fieldsOf(bytesOf(ofResource, 1)), 1))
        for (const ofScope of messages(ofResource, 2)) received.spans.push(...messages(ofScope, 2).map(spanOf))
      }
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  received.url = `http://127.0.0.1:${await listen(t, server)}`
  return received
}

/** A span with what is below it, by their names, in the order in which they ended. */
export interface Tree {
  [name: string]: Tree
}

export function treeOf(spans: readonly ReceivedSpan[], parentId: string): Tree {
  const below = spans.filter((span) => span.parentId === parentId)
  return Object.fromEntries(below.map(({ name, spanId }) => [name, treeOf(spans, spanId)]))
}

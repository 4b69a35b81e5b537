/**
 * A program that asks /healthz of a server every 20 ms, in a process of its own, so that the test's work delays no
 * question. Its argument is the origin of the server. Each line on its input is answered by the waits since the last
 * one.
 */
import { Agent, get } from 'node:http'
import { createInterface } from 'node:readline'

/** How long answers took, in milliseconds. */
export interface Waits {
  p50: number
  p99: number
  max: number
}

const EACH_MS = 20

const origin = process.argv[2]!
const agent = new Agent({ keepAlive: true })
let waits: Promise<number>[] = []

function ask(): Promise<number> {
  const began = performance.now()
  return new Promise((resolve, reject) => {
    const ended = () => resolve(performance.now() - began)
    get(`${origin}/healthz`, { agent }, (response) => response.resume().once('end', ended)).once('error', reject)
  })
}

setInterval(() => waits.push(ask()), EACH_MS).unref()
createInterface(process.stdin).on('line', async () => {
  const asked = waits
  waits = []
  const sorted = (await Promise.all(asked)).sort((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0)
  console.log(JSON.stringify({ p50: at(0.5), p99: at(0.99), max: at(1) } satisfies Waits))
})

/**
 * Loaded into a server before its program: measures how long its main thread computes without answering anybody. What
 * counts is the processor time of that thread alone, so that neither other programs nor the threads of the server
 * itself are measured (Linux). Each line that is written to the socket in WATCH_TURNS is answered by the figures since
 * the last one.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { isMainThread } from 'node:worker_threads'

/** What a main thread did, in milliseconds. */
export interface Turns {
  /** The longest times without a pause, longest first. */
  longest: number[]
  /** How long all took. */
  computed: number
  /** What `doOneUnit` took in the same thread, before the turns and after them: a mean of many. */
  unit: number
}

const EACH_MS = 5
const MOST_KEPT = 5
const NS_PER_MS = 1e6
const UNITS = 20

function computedMs(): number {
  const [ns] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
  return Number(ns) / NS_PER_MS
}

/** A piece of work of the kind that a server does: objects become text, and text objects. */
function doOneUnit(): void {
  const rows = Array.from({ length: 6000 }, (_, at) => ({
    href: `/orgs/1/objects/${at}`,
    names: [`${at}.example.com`],
  }))
  const read = JSON.parse(JSON.stringify(rows)) as typeof rows
  read.sort((a, b) => (a.href < b.href ? -1 : 1))
}

/**
 * The mean time of a unit, which is measured again and again, because a busy machine has slower processors. Many units
 * are measured at once: Linux may count the time of a running thread only at each tick, which is every 4 ms.
 */
function measureUnit(): number {
  const began = computedMs()
  for (let at = 0; at < UNITS; at++) doOneUnit()
  return (computedMs() - began) / UNITS
}

if (isMainThread) {
  let before = measureUnit()
  let longest: number[] = []
  let last = computedMs()
  let first = last
  setInterval(() => {
    const now = computedMs()
    longest = [...longest, now - last].sort((a, b) => b - a).slice(0, MOST_KEPT)
    last = now
  }, EACH_MS).unref()
  createServer((socket) =>
    socket.on('data', () => {
      const computed = computedMs() - first
      const after = measureUnit()
      const unit = (before + after) / 2
      socket.write(`${JSON.stringify({ longest, computed, unit } satisfies Turns)}\n`)
      before = after
      longest = []
      last = first = computedMs()
    }),
  )
    .listen(process.env.WATCH_TURNS)
    .unref()
}

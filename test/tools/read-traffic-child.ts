/**
 * One tool call in a process of its own, so that its memory is its own. Argument: JSON {url, orgId, credentials, name, args}. Prints the
 * answer, the seconds until it, and the bytes of the process: resident when idle, and the most it ever had.
 */
import { benchOf } from './harness.js'

const { url, orgId, credentials, name, args } = JSON.parse(process.argv[2] ?? '{}')
const owner = { teardown: () => undefined, equal: () => undefined }
const bench = benchOf(owner, { orgId, credentials } as Parameters<typeof benchOf>[1], url)
await bench.ok('get-labels', { max_results: 1 })
const idle = process.memoryUsage.rss()
const started = performance.now()
const answer = await bench.ok(name, args)
const seconds = (performance.now() - started) / 1000
process.stdout.write(JSON.stringify({ answer, seconds, idle, peak: process.resourceUsage().maxRSS * 1024 }))
bench.pce.close()

/**
 * `npm run conformance` runs the official conformance suite of MCP against the built server, once for each revision of
 * MCP that the server supports. scripts/conformance.yaml lists the checks that cannot pass here, with the reasons. It
 * is a failure if a check fails that is not listed, or if a listed check passes. The last line is `N passed, N failed`.
 * The suite is fetched from the registry and needs Node.js 22.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { inScratch } from './bench/in-scratch.js'
import { startServer } from './bench/start-server.js'
import { summaryLine } from './summary-line.js'

const NODE = 'node@22.23.3'
const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const REVISIONS = ['2025-11-25', '2026-07-28'] as const
type Revision = (typeof REVISIONS)[number]
const PATIENCE_MS = 5 * 60_000

interface Exception {
  why: string
  /** The checks by revision and scenario. */
  checks: Partial<Record<Revision, Record<string, string[]>>>
}

const BASELINE = fileURLToPath(new URL('conformance.yaml', import.meta.url))
const exceptions = parse(readFileSync(BASELINE, 'utf8')) as Exception[]

const totals = await inScratch(async (scratch) => {
  const { url } = await startServer(scratch, 'conformance', () => ({ MCP_DEV_INSECURE: '1' }))
  const counts = { passed: 0, failed: 0 }
  for (const revision of REVISIONS) {
    const results = runSuite(revision, url, join(scratch.directory, revision))
    const expected = expectedFailures(revision)
    for (const [check, isFailure] of results) {
      const isAsExpected = isFailure === expected.delete(check)
      counts[isAsExpected ? 'passed' : 'failed']++
      if (!isAsExpected)
        console.log(`${revision}: ${check} ${isFailure ? 'fails' : 'passes, and conformance.yaml says otherwise'}`)
    }
    for (const check of expected) console.log(`${revision}: ${check} is in conformance.yaml, and was not run`)
    counts.failed += expected.size
    console.log(`${revision}: ${results.size} checks`)
    if (results.size === 0) counts.failed++
  }
  return counts
})
console.log(summaryLine(totals))
process.exitCode = totals.failed === 0 ? 0 : 1

/** Lists all checks that cannot pass, as `scenario check`. */
function expectedFailures(revision: Revision): Set<string> {
  const scenarios = exceptions.flatMap(({ checks }) => Object.entries(checks[revision] ?? {}))
  return new Set(scenarios.flatMap(([scenario, checks]) => checks.map((check) => `${scenario} ${check}`)))
}

/** Runs the suite. Returns, for every check, whether it failed in at least one of its cases. */
function runSuite(revision: Revision, url: string, folder: string): Map<string, boolean> {
  const command = ['conformance', 'server', '--url', `${url}/mcp`, '--requirements', revision, '-o', folder]
  const { error, stderr } = spawnSync('npx', ['-y', '-p', NODE, '-p', SUITE, ...command], {
    encoding: 'utf8',
    timeout: PATIENCE_MS,
  })
  if (error) console.log(`${error.message}\n${stderr}`)
  const results = new Map<string, boolean>()
  for (const run of readdirSync(folder)) {
    const scenario = run.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '')
    const checks = JSON.parse(readFileSync(join(folder, run, 'checks.json'), 'utf8')) as {
      id: string
      status: string
    }[]
    for (const { id, status } of checks) {
      const check = `${scenario} ${id}`
      results.set(check, status === 'FAILURE' || results.get(check) === true)
    }
  }
  return results
}

/**
 * `npm test`: runs tap on the Node.js that runs this script (arguments are passed on, so `npm test -- test/x.test.ts` runs one
 * file), tells each file as it ends and each failure with its details, and ends with the plain line `N passed, N failed`.
 * tap's own reporters swallow what a crashing test file wrote to standard error; here it passes through.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Result } from 'tap-parser'
import { summaryLine, watchRun } from './count-assertions.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const TAP = 'node_modules/tap/dist/esm/run.mjs'

console.log(`Node.js ${process.version}`)
const started = Date.now()
// tap makes itself anew for our choice of plugins, but would still load those it came with into every file of that first run.
if (!existsSync(join(root, '.tap', 'plugins')))
  spawnSync(process.execPath, [TAP, 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
const { parser, total } = watchRun({
  failure: (result) => console.log(`\nFAILED  ${result.fullname}\n${detailsOf(result)}\n`),
  file: ({ name, time }, { passed, failed, skipped }) => {
    const tally = `${passed} passed${failed === 0 ? '' : `, ${failed} failed`}${skipped === 0 ? '' : `, ${skipped} skipped`}`
    console.log(
      `${failed === 0 ? 'ok    ' : 'FAILED'}  ${name.padEnd(44)} ${(Number(time) / 1000).toFixed(1).padStart(6)} s  ${tally}`,
    )
  },
})
const tap = spawn(process.execPath, [TAP, 'run', '--reporter=tap', ...process.argv.slice(2)], {
  cwd: root,
  stdio: ['inherit', 'pipe', 'inherit'],
})
// Ctrl-C reaches tap from the terminal as well; this process only waits for it to tidy up.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tap.kill(signal))
tap.stdout.pipe(parser)
const [[status]] = (await Promise.all([once(tap, 'close'), once(parser, 'complete')])) as [[number | null], unknown]

const counts = total()
// What tap itself calls a failure is never reported as none, whatever the count says.
if (status !== 0 && counts.failed === 0) counts.failed++
console.log(
  `${Math.round((Date.now() - started) / 1000)} s${counts.skipped === 0 ? '' : `, ${counts.skipped} skipped`}`,
)
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

/** What tap knows about a failure, without the lines about how the test file was started. */
function detailsOf({ diag }: Result): string {
  if (diag === null || typeof diag !== 'object') return '        no details; see standard error above'
  const { at, source, diff, stack, ...rest } = diag as Record<string, unknown>
  const { fileName, lineNumber } = (at ?? {}) as { fileName?: string; lineNumber?: number }
  const kept = Object.entries(rest).filter(
    ([key]) => !['stdio', 'cwd', 'externalID', 'command', 'args', 'jobId'].includes(key),
  )
  const parts = [
    fileName === undefined ? '' : `${fileName}:${lineNumber}`,
    source,
    diff,
    stack,
    ...kept.map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
  ]
  return parts
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .map((part) => part.trimEnd().replace(/^/gm, '        '))
    .join('\n')
}

/**
 * `npm run examples`: runs the operator's jobs of examples/jobs.ts on the simulated estate of the demo and writes docs/examples/;
 * `--check` only says what is stale. Fails where a call of a job fails.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { JOBS } from './examples/jobs.js'
import { renderExamples } from './examples/render-examples.js'
import { runJob, type DoneJob } from './examples/run-job.js'
import { syncFiles } from './sync-files.js'

const FOLDER = 'docs/examples'

const root = fileURLToPath(new URL('..', import.meta.url))
const done: DoneJob[] = []
for (const job of JOBS) done.push(await runJob(job))
const wanted = renderExamples(done)
const surplus = readdirSync(join(root, FOLDER))
  .map((name) => `${FOLDER}/${name}`)
  .filter((path) => !wanted.has(path))
const fine = syncFiles(wanted, {
  root,
  check: process.argv.includes('--check'),
  command: '`npm run examples`',
  surplus,
})
process.exit(fine ? 0 : 1)

import { JOBS } from '../examples/jobs.js'
import { renderExamples } from '../examples/render-examples.js'
import { runJob, type DoneJob } from '../examples/run-job.js'
import type { Generator } from './generator.js'

/**
 * Generates docs/examples: the operator's jobs, run on the simulated estate of the demo. Rejects if a call of a job
 * fails.
 */
export const examples: Generator = {
  folders: ['docs/examples'],
  async files() {
    const done: DoneJob[] = []
    for (const job of JOBS) done.push(await runJob(job))
    return renderExamples(done)
  },
}

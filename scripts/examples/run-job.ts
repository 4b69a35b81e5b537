import assert from 'node:assert/strict'
import { createPceSimulator, type PceSimulator } from '../../pce-simulator/index.js'
import { benchOf, NOW, type Json } from '../../test/tools/harness.js'

/** A tool call in a job. Its arguments may depend on the answers of earlier calls. */
export interface Step {
  tool: string
  arguments?: object | ((answers: readonly Json[]) => object)
}

/** A job: an operator's request, the calls that fulfil it, and the answer in one or two sentences. */
export interface Job {
  /** The name of the page below docs/examples/. */
  name: string
  request: string
  steps: readonly Step[]
  /** Extracts the values on which the answer is based, each with a short name. */
  facts: (answers: readonly Json[]) => Record<string, Json>
  /** Formulates the answer to the operator. */
  answer: (facts: Record<string, Json>) => string
  /** The cost of the same job at commit e91f273, before the tools had all the features that its calls use now. */
  before: { calls: number; bytes: number }
}

export interface DoneJob {
  job: Job
  calls: { tool: string; arguments: object; bytes: number }[]
  facts: Record<string, Json>
}

/** Creates the estate of `npm run demo` at a fixed time. */
export const demoEstate = (): Promise<PceSimulator> =>
  createPceSimulator({ seed: 7, workloads: 400, flows: 20_000, totalCount: 'all', now: () => NOW })

/** Runs the calls of a job one after the other, with the role admin. Every call must succeed. */
export async function runJob(job: Job): Promise<DoneJob> {
  const simulator = await demoEstate()
  const closing: (() => unknown)[] = [() => simulator.close()]
  const bench = benchOf(
    { teardown: (close) => void closing.unshift(close), equal: assert.equal },
    simulator,
    await simulator.listen(),
  )
  try {
    const answers: Json[] = []
    const calls: DoneJob['calls'] = []
    for (const step of job.steps) {
      const args = typeof step.arguments === 'function' ? step.arguments(answers) : (step.arguments ?? {})
      const answer = await bench.ok(step.tool, args)
      answers.push(answer)
      calls.push({ tool: step.tool, arguments: args, bytes: Buffer.byteLength(JSON.stringify(answer)) })
    }
    return { job, calls, facts: job.facts(answers) }
  } finally {
    for (const close of closing) await close()
  }
}

import assert from 'node:assert/strict'
import { createPceSimulator, type PceSimulator } from '../../pce-simulator/index.js'
import { benchOf, NOW, type Json } from '../../test/tools/harness.js'

/** One tool call of a job; its arguments may rest on the answers before it. */
export interface Step {
  tool: string
  arguments?: object | ((answers: readonly Json[]) => object)
}

/** What an operator asks, the calls that answer it, and the answer in one or two sentences. */
export interface Job {
  /** The page's name below docs/examples/. */
  name: string
  request: string
  steps: readonly Step[]
  /** What the answer rests on, by a few words each: values read from the answers. */
  facts: (answers: readonly Json[]) => Record<string, Json>
  /** The answer to the operator. */
  answer: (facts: Record<string, Json>) => string
  /** What the same job took at commit e91f273, before its tools had all that the calls use today. */
  before: { calls: number; bytes: number }
}

export interface DoneJob {
  job: Job
  calls: { tool: string; arguments: object; bytes: number }[]
  facts: Record<string, Json>
}

/** The estate of `npm run demo`, at a fixed instant. */
export const demoEstate = (): Promise<PceSimulator> =>
  createPceSimulator({ seed: 7, workloads: 400, flows: 20_000, totalCount: 'all', now: () => NOW })

/** Runs a job's calls one after the other, as the role admin. Every call must succeed. */
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

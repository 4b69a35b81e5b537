import { renderTable } from '../docs/markdown.js'
import type { DoneJob } from './run-job.js'

const GENERATED = '<!-- Generated from scripts/examples/jobs.ts by `npm run generate`. -->'

const bytesOf = ({ calls }: DoneJob): number => calls.reduce((sum, { bytes }) => sum + bytes, 0)
const json = (value: unknown): string => JSON.stringify(value, null, 2)
const inThousands = (bytes: number): string => bytes.toLocaleString('en-US')

/** Renders the pages of docs/examples/, by path: one for each job, and a table of all jobs. */
export function renderExamples(jobs: readonly DoneJob[]): Map<string, string> {
  const pages = jobs.map((done): [string, string] => [`docs/examples/${done.job.name}.md`, renderJob(done)])
  return new Map([['docs/examples/README.md', renderOverview(jobs)], ...pages])
}

function renderOverview(jobs: readonly DoneJob[]): string {
  const rows = jobs.map((done) => [
    `[${done.job.request}](${done.job.name}.md)`,
    String(done.job.before.calls),
    inThousands(done.job.before.bytes),
    String(done.calls.length),
    inThousands(bytesOf(done)),
  ])
  const sum = (of: (done: DoneJob) => number) => inThousands(jobs.reduce((total, done) => total + of(done), 0))
  const total = [
    '**All**',
    sum(({ job }) => job.before.calls),
    sum(({ job }) => job.before.bytes),
    sum(({ calls }) => calls.length),
    sum(bytesOf),
  ]
  return [
    '# Worked examples',
    '',
    GENERATED,
    '',
    `${jobs.length} jobs of an operator on the simulated estate of \`npm run demo\`: the calls, what the answers say, and the answer to the`,
    'question. Each is run as it stands here when the pages are generated and checked. Bytes are those of the answers. Before: the same',
    'question at commit e91f273, which had not all of the arguments used here; some answers then left the reader more to sift.',
    '',
    renderTable(['Job', 'Calls before', 'Bytes before', 'Calls', 'Bytes'], [...rows, total]),
    '',
  ].join('\n')
}

function renderJob(done: DoneJob): string {
  const { job, calls, facts } = done
  const steps = calls.flatMap(({ tool, arguments: args, bytes }, at) => [
    `${at + 1}. \`${tool}\`, answered with ${inThousands(bytes)} bytes:`,
    '',
    '   ```json',
    ...json({ name: tool, arguments: args })
      .split('\n')
      .map((line) => `   ${line}`),
    '   ```',
    '',
  ])
  return [
    `# ${job.request}`,
    '',
    GENERATED,
    '',
    ...steps,
    'What the answer rests on:',
    '',
    '```json',
    json(facts),
    '```',
    '',
    `**Answer.** ${job.answer(facts)}`,
    '',
  ].join('\n')
}

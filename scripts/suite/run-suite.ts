import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Counts, type RunListener, watchRun } from '../count-assertions.js'
import { NEXT, type Order, SUITE_FOLDER } from './current-test.js'

interface SuiteOptions extends RunListener {
  root: string
  /** Of the compiled files. */
  folder: string
  /** URL of the compiled run-test-files. */
  worker: string
  /** Processes side by side. */
  jobs: number
  /** The process of a file ended, or had to be ended, before the file did. */
  lost: (name: string, how: string) => void
}

type TestFile = NonNullable<Order>

/** Beyond the time that a file may take: tap itself ends a file that only waits, and says where it stood. */
const GRACE_MS = 5000

/**
 * Runs the files in processes that take the next one when they are done with one, and adds up what they counted. A file whose process
 * ends counts as a failure, and another process goes on with the rest. On SIGINT or SIGTERM the processes are ended with this one.
 */
export async function runSuite(files: readonly TestFile[], options: SuiteOptions): Promise<Counts> {
  const queue = [...files]
  const processes = new Set<ChildProcess>()
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  const stop = (signal: NodeJS.Signals) => {
    queue.length = 0
    for (const child of processes) child.kill(signal)
  }
  process.on('SIGINT', stop).on('SIGTERM', stop)
  await Promise.all(Array.from({ length: options.jobs }, work))
  process.off('SIGINT', stop).off('SIGTERM', stop)
  return total

  async function work(): Promise<void> {
    while (queue.length > 0) {
      const child = startProcess(options)
      processes.add(child)
      const counts = await feed(child, queue, options)
      processes.delete(child)
      total.passed += counts.passed
      total.failed += counts.failed
      total.skipped += counts.skipped
    }
  }
}

function startProcess({ root, folder, worker }: SuiteOptions): ChildProcess {
  return fork(fileURLToPath(worker), {
    cwd: root,
    // Room for what a test throws away (in MB): the collector would run all the time in the little that Node gives it.
    execArgv: ['--enable-source-maps', '--max-semi-space-size=64', '--single-threaded-gc'],
    // A file has a time limit, the process has none.
    env: { ...process.env, TAP_TIMEOUT: '0', [SUITE_FOLDER]: folder },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
}

/** Gives the process one file after the other, until the queue is empty or the process ends by itself. */
async function feed(child: ChildProcess, queue: TestFile[], { lost, ...listener }: SuiteOptions): Promise<Counts> {
  const run = watchRun(listener)
  let current: TestFile | null = null
  let isDone = false
  let ran = 0
  let overdue: NodeJS.Timeout | undefined
  child.on('message', (message) => {
    // tap itself tells its parent of its time limits.
    if (message !== NEXT) return
    clearTimeout(overdue)
    current = queue.shift() ?? null
    // A process that has just died is noticed by its end.
    child.send(current!, () => {})
    if (current === null) {
      isDone = true
      return
    }
    ran += 1
    overdue = setTimeout(() => child.kill('SIGKILL'), current.timeoutMs + GRACE_MS)
  })
  child.stdout!.pipe(run.parser)
  const [[status, signal]] = (await Promise.all([once(child, 'close'), once(run.parser, 'complete')])) as [
    [number | null, NodeJS.Signals | null],
    unknown,
  ]
  clearTimeout(overdue)

  if (ran === 0 && isDone) return { passed: 0, failed: 0, skipped: 0 }
  const counts = run.total()
  // One that dies before it asks for a file must not be started for ever.
  const unfinished = current ?? (isDone ? undefined : queue.shift())
  if (unfinished) lost(unfinished.name, status === null ? `was ended by ${signal}` : `exited with ${status}`)
  if (unfinished || (status !== 0 && counts.failed === 0)) counts.failed += 1
  return counts
}

/**
 * A tap program that runs the test files in the variable TEST_FILES one after the other, each as a subtest with a limit
 * of FILE_LIMIT milliseconds. It skips files that another process of the run has taken; the folder in TAKEN_FILES
 * records which were taken. A file without an assertion is a failure.
 */
import './follow-no-promises.js'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { TestBase } from 'tap'
import { loadInto } from './file-test.js'

const files = JSON.parse(process.env.TEST_FILES!) as { name: string; url: string }[]
const timeout = Number(process.env.FILE_LIMIT)
let running: TestBase = t

process.once('disconnect', () => process.exit(1))
process.on('uncaughtException', (error) => innermost(running).threw(error))
for (const { name, url } of files) {
  if (!isFree(name)) continue
  const results = await t.test(name, { timeout }, (test) => {
    running = test
    return loadInto(test, url)
  })
  running = t
  if (results?.count === 0) t.fail(`${name} asserts nothing`)
}
// Handles that tests leave open must not keep the process alive, but tap must first write all output that has not been
// read yet.
t.on('end', () => process.stdout.write('', () => process.exit()))
t.end()

/** Returns the innermost running subtest, which may be waiting for an event that never comes. */
function innermost(test: TestBase): TestBase {
  const [active] = test.activeSubtests
  return active instanceof TestBase ? innermost(active) : test
}

/**
 * Tries to take the file for this process by creating a folder. If several processes try, only one of them succeeds.
 */
function isFree(name: string): boolean {
  try {
    mkdirSync(join(process.env.TAKEN_FILES!, encodeURIComponent(name)))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

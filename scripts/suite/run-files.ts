/**
 * A tap program that runs the test files in the variable TEST_FILES one after the other, each as a subtest with a limit
 * of FILE_LIMIT milliseconds. A file without an assertion is a failure.
 */
import t from 'tap'
import { loadInto } from './file-test.js'

const files = JSON.parse(process.env.TEST_FILES!) as { name: string; url: string }[]
const timeout = Number(process.env.FILE_LIMIT)

process.once('disconnect', () => process.exit(1))
for (const { name, url } of files) {
  const results = await t.test(name, { timeout }, (test) => loadInto(test, url))
  if (results?.count === 0) t.fail(`${name} asserts nothing`)
}
// Handles that tests leave open must not keep the process alive, but tap must first write what a slow reader has not
// read yet.
t.on('end', () => process.stdout.write('', () => process.exit()))
t.end()

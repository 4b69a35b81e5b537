/**
 * A tap program that runs the test files of the variable TEST_FILES one after the other, each as a subtest, for at most FILE_LIMIT
 * milliseconds each. A file that asserts nothing is a failure.
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
// What a test has left open must not keep the suite waiting; but first tap hands over what a slow reader has not taken yet.
t.on('end', () => process.stdout.write('', () => process.exit()))
t.end()

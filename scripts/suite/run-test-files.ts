/**
 * One process of the suite: runs the test files that its parent names, one after the other, each as a subtest of its own, and writes
 * TAP to standard output. Ends when it is told that there are no more.
 */
import t from 'tap'
import { NEXT, openTest, type Order } from './current-test.js'

process.on('message', (order: Order) => {
  if (order === null) {
    // What a test file has left open must not keep the suite waiting; but first tap hands over what a slow reader has not taken yet.
    t.on('end', () => process.stdout.write('', () => process.exit()))
    t.end()
    return
  }
  const { name, url, timeoutMs } = order
  void t
    .test(name, { timeout: timeoutMs }, async (test) => {
      openTest(test)
      await import(url)
    })
    .then(() => process.send!(NEXT))
  // tap, at its first test, lets the channel no longer keep the process alive; between two files nothing else does.
  process.channel!.ref()
})
process.send!(NEXT)

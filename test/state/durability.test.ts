/** Whether what is acknowledged was really handed to the disk: seen from outside, in the system calls of a process. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { directoryOf, startWorker } from './support.js'

const CLAIMS = 50
/** Not everywhere installed, and not allowed in every container. */
const canTrace = spawnSync('strace', ['-qq', '-e', 'trace=none', 'true']).status === 0

t.test('every write is synced to disk', { skip: !canTrace && 'strace cannot be used here' }, async (t) => {
  const directory = directoryOf(t)
  const trace = join(directory, 'trace')
  const kek = randomBytes(32).toString('base64')
  const worker = startWorker(
    t,
    'claim',
    { path: join(directory, 'keystore.db'), kek, first: 0, count: CLAIMS },
    { shell: `exec strace -f -qq -e trace=fsync,fdatasync -o '${trace}' "$@"` },
  )
  await worker.until(({ ready }) => ready === true)
  worker.go()
  await worker.until(({ claimed }) => claimed === `token-${CLAIMS - 1}`)
  worker.child.stdin!.end()
  await worker.ended
  const syncs = readFileSync(trace, 'utf8').match(/\b(fsync|fdatasync)\(\d+\)?.*/g) ?? []
  t.ok(syncs.length >= CLAIMS, `${syncs.length} for ${CLAIMS} writes`)
  t.ok(worker.said.filter(({ claimed }) => claimed !== undefined).length === CLAIMS)
})

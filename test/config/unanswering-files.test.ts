/** Files that never answer: pipes that nobody writes to, mounts that are gone. A start is refused in time, with a clear line. */
import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readWhole } from '../../config/read-whole.js'
import { pathsIn } from '../../config/index.js'
import { checkPathsAnswer, HungPathError } from '../../programs/process/check-paths-answer.js'

function makePipe(t: Test): string {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

t.test('a pipe', async (t) => {
  const path = makePipe(t)
  const writer = spawn('sh', ['-c', `(printf begin; printf end) > '${path}'`])
  t.equal(readWhole(path).toString(), 'beginend', 'is read to its end')
  await new Promise((resolve) => writer.on('close', resolve))
  t.throws(() => readWhole(path, 50), { code: 'ETIMEDOUT' }, 'and is given up where nobody writes to it')
})

t.test('a path that does not answer', async (t) => {
  const paths = [
    { variable: 'MCP_KEYSTORE_PATH', path: '/gone/keystore.db' },
    { variable: 'PCE_CA_FILE', path: '/nowhere/ca.pem' },
  ]
  const look = (path: string) =>
    path.startsWith('/gone') ? new Promise(() => {}) : Promise.reject(new Error('ENOENT'))
  const error = await checkPathsAnswer(paths, { patienceMs: 20, look }).catch((error: unknown) => error)
  t.type(error, HungPathError)
  t.same((error as HungPathError).faults, [
    {
      problem: "MCP_KEYSTORE_PATH '/gone/keystore.db' does not respond: the file system has been silent for 0.02 s",
      remedy: 'The mount point is probably gone. Mount it again or use another path.',
    },
  ])
  await checkPathsAnswer(paths, { look: () => Promise.reject(new Error('ENOENT')) })
  await checkPathsAnswer([])
  t.same(
    pathsIn({ MCP_KEYSTORE_PATH: '/k', MCP_KEK_FILE: '/f', PCE_CA_FILE: '', MCP_OAUTH_ISSUER: 'x', OTHER_FILE: '/o' }),
    [
      { variable: 'MCP_KEYSTORE_PATH', path: '/k' },
      { variable: 'MCP_KEK_FILE', path: '/f' },
    ],
    'those of the variables that name files',
  )
})

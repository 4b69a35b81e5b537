/** The image, as far as that can be seen without a container engine: its folder, its user and its defaults are enough to start on. */
import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { freePort } from '../free-port.js'
import { createWorld, untilReady } from './support/authenticated-world.js'
import { callTool } from './support/call-tool.js'
import { found } from './support/within.js'
import { partial } from '../partial.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The instructions of the last stage, with lines that go on joined. */
function lastStage(): [instruction: string, rest: string][] {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
    .replace(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
  const lines = text.slice(text.lastIndexOf('\nFROM ') + 1).split('\n')
  return lines.flatMap((line) => {
    const [, instruction, rest] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? []
    return instruction === undefined ? [] : [[instruction, rest!] as [string, string]]
  })
}

const isRoot = process.getuid?.() === 0

t.test('per_user starts with the defaults of the image', { skip: !isRoot && 'takes another user' }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'image-'))
  chmodSync(folder, 0o755)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const image = { workdir: '/', user: '', volumes: [] as string[], env: {} as Record<string, string> }
  const inside = (path: string) => join(folder, path)
  mkdirSync(inside('/usr/local/bin'), { recursive: true })
  for (const [instruction, rest] of lastStage()) {
    if (instruction === 'WORKDIR') mkdirSync(inside((image.workdir = rest)), { recursive: true })
    if (instruction === 'USER') image.user = rest
    if (instruction === 'VOLUME') image.volumes.push(rest)
    if (instruction === 'ENV') Object.assign(image.env, Object.fromEntries([rest.split('=')]))
    if (instruction === 'RUN') {
      const command = rest.replaceAll(/(?<=\s)\/(?=app|usr)/g, `${folder}/`)
      execFileSync('bash', ['-euc', command], { cwd: inside(image.workdir) })
    }
  }
  t.same(image.volumes, ['/app/data'])
  const [user, group] = image.user.split(':')
  t.not(user, '0')

  const world = await createWorld(t)
  const { MCP_KEYSTORE_PATH: _default, PCE_CA_FILE: caFile, ...rest } = world.env
  // Readable for everybody, as a mounted file has to be.
  for (const path of [join(world.folder), caFile!, join(caFile!, '..')]) chmodSync(path, 0o755)
  const asUser = ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups', '--no-new-privs']
  const through = [...asUser, 'bash', '-c', `cd '${inside(image.workdir)}' && exec "$@"`, 'bash']
  const env = { ...rest, PCE_CA_FILE: caFile, ...image.env }
  const { target, stop } = await world.serve({ through, env: { ...env, MCP_KEYSTORE_PATH: undefined } })
  partial(t, await callTool(target, await world.tokenOf('alice'), 'register-pce-credentials', world.pce.registration), {
    connection: { ok: true },
  })
  const { mode, uid } = statSync(inside('/app/data/keystore.db'))
  t.same([mode & 0o777, uid], [0o600, Number(user)])
  t.equal((await stop()).code, 0)
})

/** The packages that `npm ci --omit=dev` leaves. */
function productionPackages(): string[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>
  }
  return Object.entries(packages).flatMap(([path, { dev }]) => (dev ? [] : [path]))
}

/** The shared libraries that a program or a native module loads. */
const librariesOf = (path: string): string[] =>
  Array.from(execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g), ([, library]) => library!)

t.test('its file system is enough by itself, for its user', { skip: !isRoot && 'needs chroot' }, async (t) => {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'pipe' })
  const folder = mkdtempSync(join(tmpdir(), 'image-root-'))
  chmodSync(folder, 0o755)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const inside = (path: string) => join(folder, path)
  const put = (from: string, to: string) => {
    mkdirSync(dirname(inside(to)), { recursive: true })
    copyFileSync(realpathSync(from), inside(to))
  }

  // The base image, as far as anything needs it: Node.js, libc, and what the native module loads.
  put(process.execPath, '/usr/local/bin/node')
  chmodSync(inside('/usr/local/bin/node'), 0o755)
  const [native] = productionPackages().filter((path) => path.startsWith('node_modules/@libsql/linux-'))
  for (const file of [process.execPath, join(ROOT, native!, 'index.node')])
    for (const library of librariesOf(file)) put(library, library)
  mkdirSync(inside('/tmp'), { mode: 0o1777 })

  // Then what the instructions of the last stage copy, run and set.
  const image = { user: '', env: {} as Record<string, string>, entry: [] as string[], args: [] as string[] }
  for (const [instruction, rest] of lastStage()) {
    if (instruction === 'USER') image.user = rest
    if (instruction === 'ENV') Object.assign(image.env, Object.fromEntries([rest.split('=')]))
    if (instruction === 'ENTRYPOINT') image.entry = JSON.parse(rest)
    if (instruction === 'CMD') image.args = JSON.parse(rest)
    if (instruction === 'RUN') {
      mkdirSync(inside('/usr/local/bin'), { recursive: true })
      execFileSync('bash', ['-euc', rest.replaceAll(/(?<=-g 1000 )\/app|(?<= )\/usr/g, (path) => `${folder}${path}`)])
    }
    if (instruction === 'COPY') {
      const words = rest.split(' ').filter((word) => !word.startsWith('--from='))
      const to = words.pop()!
      for (const word of words) {
        const name = word.replace(/^\/app\//, '')
        if (name === 'node_modules')
          for (const path of productionPackages())
            cpSync(join(ROOT, path), inside(join('/app', path)), {
              recursive: true,
              // A package inside another has an entry of its own.
              filter: (from) => !from.slice(join(ROOT, path).length).includes('/node_modules'),
            })
        else cpSync(join(ROOT, name), inside(join('/app', to === './' ? name : to)), { recursive: true })
      }
    }
  }
  rmSync(inside('/app/dist/pce-simulator'), { recursive: true })

  const world = await createWorld(t)
  put(world.env.PCE_CA_FILE!, '/etc/pce-ca.pem')
  chmodSync(inside('/etc/pce-ca.pem'), 0o644)
  const port = String(await freePort())
  const [user, group] = image.user.split(':')
  const words = [...image.entry, ...image.args.map((arg) => (arg === '8080' ? port : arg))]
  const { MCP_KEYSTORE_PATH: _default, ...env } = world.env
  const child = spawn(
    '/usr/bin/unshare',
    [`--root=${folder}`, '--wd=/app', `--setuid=${user}`, `--setgid=${group}`, ...words],
    {
      env: { ...env, ...image.env, PATH: '/usr/local/bin', PCE_CA_FILE: '/etc/pce-ca.pem' },
      stdio: 'pipe',
    },
  )
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.teardown(() => child.kill('SIGKILL'))
  const target = { origin: `http://127.0.0.1:${port}` }
  await Promise.race([
    found(
      () =>
        untilReady(target).then(
          () => true,
          () => false,
        ),
      'it is ready',
    ),
    ended.then(() => {
      throw new Error(said)
    }),
  ])
  partial(t, await callTool(target, await world.tokenOf('alice'), 'register-pce-credentials', world.pce.registration), {
    connection: { ok: true },
  })
  t.equal(statSync(inside('/app/data/keystore.db')).uid, Number(user))
  child.kill('SIGTERM')
  t.equal(await ended, 0)
})

/** The image, as far as that can be seen without a container engine: its folder, its user and its defaults are enough to start on. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createWorld } from './support/authenticated-world.js'
import { callTool } from './support/call-tool.js'
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

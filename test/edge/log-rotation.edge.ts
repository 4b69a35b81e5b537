/** The configuration of logrotate that operators copy, with the real program, while a server writes its audit log. */
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { emptyFolder, pretend } from '../docs/commands.js'
import { createWorld, entriesOf } from './support/authenticated-world.js'
import { callTool } from './support/call-tool.js'
import { found } from './support/within.js'

const CONFIGURATION = fileURLToPath(new URL('../../deploy/systemd/svc-mcp.logrotate', import.meta.url))
const LOGROTATE = '/usr/sbin/logrotate'
const WRITERS = 4
/** Whether systemd tells the server of each rotation. If nobody does, the server notices. */
const ROTATIONS = [true, false, true, true]
const isRoot = process.getuid?.() === 0

t.test('puts every entry into exactly one file, whole', async (t) => {
  const world = await createWorld(t)
  const [folder, own] = [join(world.folder, 'log'), emptyFolder(t)]
  mkdirSync(folder, { mode: 0o700 })
  const path = join(folder, 'audit-1.log')
  // As the unit has it: a user, and a group that is not the user's own.
  const asUser = ['setpriv', '--reuid=nobody', '--regid=www-data', '--clear-groups', '--no-new-privs']
  if (isRoot) {
    execFileSync('chown', ['-R', 'nobody:www-data', world.folder])
    chmodSync(join(world.certificate.certPath, '..'), 0o755)
  }
  const through = [...(isRoot ? asUser : []), 'bash', '-c', 'cd "$0" && exec "$@"', world.folder]
  const { target, pid, stop } = await world.serve({ through, env: { MCP_AUDIT_LOG_PATH: path } })

  const configuration = join(own, 'svc-mcp')
  const text = readFileSync(CONFIGURATION, 'utf8')
    .replace('/var/log/svc-mcp', folder)
    .replace(/^ +su svc-mcp www-data$/m, isRoot ? 'su nobody www-data' : '')
  writeFileSync(configuration, text, { mode: 0o644 })
  const systemctl = pretend(t, 'systemctl', `test -e '${own}/untold' || kill -HUP ${pid}`)
  const rotate = (isTold: boolean) => {
    execFileSync(isTold ? 'rm' : 'touch', isTold ? ['-f', join(own, 'untold')] : [join(own, 'untold')])
    const args = ['--force', '--state', join(own, 'state'), configuration]
    return promisify(execFile)(LOGROTATE, args, { env: { PATH: systemctl.path } })
  }

  const answered: string[] = []
  let isOver = false
  const writers = Array.from({ length: WRITERS }, async (_, writer) => {
    const token = await world.tokenOf(`writer-${writer}`)
    for (let call = 0; !isOver; call++) {
      const id = `${writer}-${call}`
      await callTool(target, token, 'get-server-changelog', {}, { headers: { 'x-request-id': id } })
      answered.push(id)
    }
  })
  for (const isTold of ROTATIONS) {
    const [before, second] = [answered.length, Math.floor(Date.now() / 1000)]
    // Files are named by the second.
    await found(() => answered.length > before + 20 && Math.floor(Date.now() / 1000) > second, 'entries to rotate')
    t.same(await rotate(isTold), { stdout: '', stderr: '' })
    const at = answered.length
    await found(() => answered.length > at + WRITERS, 'the server goes on')
  }
  isOver = true
  await Promise.all(writers)
  t.equal((await stop()).code, 0)

  const names = readdirSync(folder).toSorted()
  t.same(
    names.map((name) => name.replace(/\d{8}-\d{6}/, 'WHEN')),
    ['audit-1.log', ...Array(ROTATIONS.length - 1).fill('audit-1.log-WHEN.gz'), 'audit-1.log-WHEN'],
  )
  t.same(
    systemctl.calls(),
    ROTATIONS.map(() => ['reload', 'svc-mcp@*.service']),
  )
  const files = names.map((name) => {
    const bytes = readFileSync(join(folder, name))
    return entriesOf((name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8'))
  })
  t.ok(
    files.every((entries) => entries.length > 0),
    'it wrote into every one of them',
  )
  const phases = new Map<unknown, unknown[]>()
  for (const { request_id: id, phase } of files.flat()) phases.set(id, [...(phases.get(id) ?? []), phase].toSorted())
  const known = new Set(answered)
  t.same(
    [...new Set([...answered, ...phases.keys()])].filter(
      (id) => !known.has(id as string) || phases.get(id)?.join() !== 'decision,outcome',
    ),
    [],
    'nothing is lost, nothing is there twice, and nothing else is there',
  )
  t.same(
    names.map((name) => statSync(join(folder, name)).mode & 0o777),
    names.map(() => 0o600),
  )
})

/**
 * Runs the image as docs/operations.md says, in a network of its own, and looks at it from outside. build-and-try.ts
 * starts this program in that network. Arguments: the folder of the engine, and the version of the image.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, promisify } from 'node:util'
import { createWorld } from '../../test/edge/support/authenticated-world.js'
import { callTool } from '../../test/edge/support/call-tool.js'
import { until } from '../../test/until.js'
import { BASE } from './engine.js'
import { reportStep } from './report-step.js'

const [, , folder, version] = process.argv as [string, string, string, string]
const root = fileURLToPath(new URL('../..', import.meta.url))
const target = { origin: 'http://127.0.0.1:8080' }
const LABELS = ['prod', 'staging', 'test', 'dev'].map((value) => ({ value }))
const CA = '/etc/pce-ca.pem'

const endings: (() => unknown)[] = []
const world = await createWorld({ teardown: (end) => void endings.unshift(end) })
const { certPath } = world.certificate
// The user of the image reads it.
chmodSync(certPath, 0o644)
const env = {
  PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
  RUN_OPTIONS: `--volume ${certPath}:${CA}:ro`,
  ENGINE: 'podman',
}
const podman = (...args: string[]) => execFileSync('podman', args, { env, encoding: 'utf8', stdio: 'pipe' })
const labels = async (more: object = {}) => {
  const answer: unknown = await callTool(target, await world.tokenOf('alice'), 'get-labels', {
    key: 'env',
    fields: ['value'],
    ...more,
  })
  return (answer as { labels?: unknown }).labels
}
const ask = (script: string) => podman('exec', 'svc-mcp', 'node', '-e', script).trim()

await reportStep(
  'the server starts in the network of its proxy, by the script and with the settings of the page',
  async () => {
    const words = ['run', '--detach', '--name', 'svc-mcp-proxy', '--network', 'host', BASE, 'node', '-e']
    podman(...words, "process.on('SIGTERM', () => process.exit()); setInterval(() => {}, 1e6)")
    const settings = { ...world.env, MCP_KEYSTORE_PATH: undefined, PCE_CA_FILE: CA, MCP_LOG_LEVEL: 'info' }
    const lines = Object.entries(settings).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${value}\n`],
    )
    writeFileSync(join(folder, 'env'), lines.join(''), { mode: 0o600 })
    const script = readFileSync(join(root, 'deploy/container/run-container'), 'utf8')
    writeFileSync(join(folder, 'run-container'), script.replaceAll('/etc/svc-mcp/env', join(folder, 'env')))
    execFileSync('sh', [join(folder, 'run-container'), version], { env, stdio: 'pipe' })
    await untilAnswers()
  },
)
await reportStep('it is user 1000, with no right beyond, and can write to its volume and to nothing else', () => {
  const pid = podman('inspect', 'svc-mcp', '--format', '{{.State.Pid}}').trim()
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const found = Object.fromEntries(
    ['Uid', 'Gid', 'CapEff', 'CapBnd', 'NoNewPrivs'].map((name) => [
      name,
      new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1],
    ]),
  )
  const none = '0000000000000000'
  expect(found, { Uid: '1000', Gid: '1000', CapEff: none, CapBnd: none, NoNewPrivs: '1' })
  const write = (path: string) =>
    ask(`try { fs.writeFileSync('${path}', ''); console.log('ok') } catch (error) { console.log(error.code) }`)
  expect(['/app/dist/x', '/x', '/app/data/x', '/tmp/x'].map(write), ['EROFS', 'EROFS', 'ok', 'ok'])
})
await reportStep('its health check is the one of the Dockerfile, and passes', () => {
  podman('healthcheck', 'run', 'svc-mcp')
  expect(podman('inspect', 'svc-mcp', '--format', '{{.State.Health.Status}}').trim(), 'healthy')
})
await reportStep('a person registers a PCE, and reads its labels', async () => {
  const registered: unknown = await callTool(
    target,
    await world.tokenOf('alice'),
    'register-pce-credentials',
    world.pce.registration,
  )
  expect((registered as { connection?: { ok: boolean } }).connection?.ok, true)
  expect(await labels(), LABELS)
})
await reportStep('a call that is under way when it is stopped gets its answer, and the server ends well', async () => {
  const hold = world.pce.hold(({ path }) => path.endsWith('/labels'))
  const answer = labels({ max_results: 1 })
  // If the call is cut off, that is reported when its answer is looked at.
  answer.catch(() => undefined)
  await hold.reached
  const stopped = promisify(execFile)('podman', ['stop', 'svc-mcp'], { env })
  await until(async () => !(await isReady()))
  hold.release()
  expect(await answer, LABELS.slice(0, 1))
  await stopped
  expect(podman('inspect', 'svc-mcp', '--format', '{{.State.ExitCode}} {{.State.OOMKilled}}').trim(), '0 false')
})
await reportStep('what it kept is there when it is started again', async () => {
  podman('start', 'svc-mcp')
  await untilAnswers()
  expect(await labels(), LABELS)
  podman('stop', 'svc-mcp')
})

for (const end of endings) await end()
process.exit(0)

/** Waits until the server is ready; until it listens, nobody answers. Throws Error with its log if it has ended. */
async function untilAnswers(): Promise<void> {
  await until(async () => {
    if (await isReady()) return true
    if (podman('inspect', 'svc-mcp', '--format', '{{.State.Running}}').trim() === 'true') return false
    throw new Error(spawnSync('podman', ['logs', 'svc-mcp'], { env, encoding: 'utf8' }).stderr)
  })
}

/** Returns whether the server takes calls: neither starting nor draining. */
async function isReady(): Promise<boolean> {
  const answer = await fetch(`${target.origin}/readyz`).catch(() => undefined)
  return answer?.status === 200
}

function expect(found: unknown, wanted: unknown): void {
  if (!isDeepStrictEqual(found, wanted))
    throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`)
}

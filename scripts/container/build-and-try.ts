/**
 * `node scripts/container.mjs` builds the image with podman and runs it. There is no registry of images
 * here, so the base image is made of parts of this machine, under the name that the Dockerfile gives to it. The registry
 * of packages is one as a company has it: with a certificate of its own authority and a token, both of which the build
 * is given as secrets and keeps nowhere. The image is run by deploy/container/run-container in a network of its own.
 * Where containers do not run or the registry cannot be reached, a line says so. The last line is `N passed, N failed`.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { makeCertificate } from '../../test/edge/support/make-certificate.js'
import { SUITE_FOLDER } from '../../test/suite-folder.js'
import { BASE, writeEngine } from './engine.js'
import { makeBase } from './make-base.js'
import { reportStep } from './report-step.js'
import { startRegistry } from './start-registry.js'
import { run } from '../run-command.js'
import { runOnline } from '../run-online.js'
import { summaryLine } from '../summary-line.js'

/** The folder in memory, where layers are written and removed quickly, and the space that they take. */
const MEMORY = '/dev/shm'
const SPACE = 4 * 2 ** 30
const VERSION = 'tried'
const TOKEN = 'npm-token-that-no-layer-may-have'

const root = fileURLToPath(new URL('../..', import.meta.url))
const endings: (() => void)[] = []
const counts = { passed: 0, failed: 0 }
try {
  const obstacle = await tryAll()
  if (obstacle !== undefined) console.log(`${obstacle}, so the image was not built.`)
} finally {
  for (const end of endings.reverse()) end()
}
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

/** Makes the base image, builds on it and runs the image. Returns what kept it from beginning, if anything did. */
async function tryAll(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'Only root starts containers here'
  const installed = spawnSync('which', ['podman', 'runc', 'unshare', 'ip'], { encoding: 'utf8' })
  if (installed.status !== 0) return 'podman, runc, unshare or ip is not installed (.ci/install-packages)'
  const node = runOnline('npx', ['-y', '-p', 'node@24', 'node', '-p', 'process.execPath'], root)?.trim()
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], { cwd: root, encoding: 'utf8' }).trim()
  if (node === undefined || runOnline('npm', ['view', 'npm', 'version'], root) === undefined)
    return 'The package registry cannot be reached'

  const folder = mkdtempSync(join(hasSpace(MEMORY) ? MEMORY : tmpdir(), 'svc-mcp-image-'))
  const program = installed.stdout.split('\n')[0]!
  endings.push(() => rmSync(folder, { recursive: true, force: true }))
  const base = join(folder, 'base')
  makeBase(base, node)
  const failure = startBase(folder, base, program, 'overlay') && startBase(folder, base, program, 'vfs')
  if (failure !== undefined) return `Containers do not run here (${failure})`
  rmSync(base, { recursive: true })
  const path = join(folder, 'bin/podman')
  const podman = (...args: string[]) => run(path, args, root)
  endings.push(() => {
    // What shares the network of another is removed before it, which is why the names stand in this order.
    for (const name of ['svc-mcp', 'svc-mcp-proxy']) spawnSync(path, ['rm', '--force', '--ignore', name])
    // This takes what is mounted below the folder.
    spawnSync(path, ['rm', '--all', '--force'])
    spawnSync(path, ['rmi', '--all', '--force'])
  })

  await step('it is built with the authority and the registry of a company, which are secrets', async () => {
    const certificate = makeCertificate({ teardown: (end) => void endings.push(() => void end()) })
    const registry = await startRegistry(certificate, upstream, TOKEN)
    endings.push(() => registry.close())
    const host = `127.0.0.1:${registry.port}`
    writeFileSync(join(folder, 'npmrc'), `registry=https://${host}/\n//${host}/:_authToken=${TOKEN}\n`)
    const secrets = [`id=ca,src=${certificate.certPath}`, `id=npmrc,src=${join(folder, 'npmrc')}`]
    const options = ['--format', 'docker', '--network', 'host', '--pull=never', '--layers=false']
    const words = ['build', ...options, ...secrets.flatMap((secret) => ['--secret', secret])]
    await runBeside(path, [...words, '--tag', `svc-mcp:${VERSION}`, '.'])
    if (registry.served.answered === 0) throw new Error('the registry was not asked')
    const found = spawnSync(
      'grep',
      ['--recursive', '--files-with-matches', '--fixed-strings', TOKEN, join(folder, 'root')],
      {
        encoding: 'utf8',
      },
    )
    const history = podman('history', '--no-trunc', `svc-mcp:${VERSION}`)
    const inspected = podman('inspect', `svc-mcp:${VERSION}`)
    const body = readFileSync(certificate.certPath, 'utf8').split('\n')[1]!
    const told = [found.stdout, history, inspected].filter(
      (text) => text.includes(TOKEN) || text.includes(host) || text.includes(body),
    )
    if (found.status !== 1 || told.length > 0) throw new Error(`a secret stayed: ${found.stdout}${told.join('\n')}`)
  })
  await step('it has the user, the volume, the health check and the command of the Dockerfile', () => {
    const [image] = JSON.parse(podman('inspect', `svc-mcp:${VERSION}`)) as [
      { Config: Record<string, unknown>; Healthcheck?: { Test: string[] } },
    ]
    const { User, Volumes, WorkingDir, Entrypoint, Cmd } = image.Config
    const found = { User, Volumes, WorkingDir, Entrypoint, Cmd, health: image.Healthcheck?.Test.slice(0, 3) }
    const wanted = {
      User: '1000:1000',
      Volumes: { '/app/data': {} },
      WorkingDir: '/app',
      Entrypoint: ['node', 'dist/http.js'],
      Cmd: ['--host', '127.0.0.1', '--port', '8080'],
      health: ['CMD', 'node', '-e'],
    }
    if (!isDeepStrictEqual(found, wanted)) throw new Error(JSON.stringify(found))
  })
  if (counts.failed === 0) await runImage(folder)
  return undefined
}

/** Makes the base image, and starts a container of it. Returns why it did not start. */
function startBase(folder: string, base: string, program: string, driver: 'overlay' | 'vfs'): string | undefined {
  const podman = writeEngine(folder, program, driver)
  const archive = join(folder, 'base.tar')
  try {
    run('tar', ['-C', base, '-cf', archive, '.'], root)
    run(podman, ['import', '--quiet', '--change', 'ENV PATH=/usr/local/bin:/bin', archive, BASE], root)
    run(podman, ['run', '--rm', '--network', 'host', BASE, 'node', '--version'], root)
    return undefined
  } catch (error) {
    rmSync(join(folder, 'root'), { recursive: true, force: true })
    return (error as Error).message.trim().split('\n').at(-1)
  } finally {
    rmSync(archive, { force: true })
  }
}

/** Runs scripts/container/try-image.ts in a network that has nothing but loopback, and counts its checks. */
async function runImage(folder: string): Promise<void> {
  const inNetwork = ['--net', 'sh', '-euc', 'ip link set lo up; exec "$@"', 'sh', process.execPath]
  const child = spawn('unshare', [...inNetwork, '--import', 'tsx', 'scripts/container/try-image.ts', folder, VERSION], {
    cwd: root,
    // Of the tests' own files only such are used as need no folder of a suite, which they name all the same.
    env: { ...process.env, [SUITE_FOLDER]: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line)
    if (line.startsWith('ok ')) counts.passed++
    if (line.startsWith('FAILED ')) counts.failed++
  }
  const [code] = (await closed) as [number | null]
  if (code !== 0) {
    counts.failed++
    console.log(`FAILED  the image was not tried to the end: exit code ${code}`)
  }
}

/** Runs a command while this process goes on. Throws Error with its output if it fails. */
async function runBeside(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${said}`)
}

async function step(name: string, check: () => void | Promise<void>): Promise<void> {
  counts[(await reportStep(name, check)) ? 'passed' : 'failed']++
}

function hasSpace(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize > SPACE
  } catch {
    return false
  }
}

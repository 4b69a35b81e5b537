/**
 * docker as far as docs/operations.md uses it: containers of our image are processes in a folder that stands for /app, with the folder of
 * a volume as `data`; what the image is made of has a test of its own (test/edge/image.edge.ts). Other images are only looked at.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { logOf, place, readVariables, ROOT, start, stop } from './places.mjs'

const [, verb, ...args] = process.argv.slice(2)
const { PATH, STAND_IN_PORT: port, STAND_IN_SERVER: server } = process.env
const SWITCHES = new Set(['--detach', '--rm', '--interactive', '--read-only'])
const folderOf = (name) => join(ROOT, 'containers', name)
const appOf = (name) => join(folderOf(name), 'app')

function fail(message) {
  console.error(`docker: ${message}`)
  process.exit(1)
}

function readOptions() {
  const options = {}
  let at = 0
  for (; args[at]?.startsWith('-'); at++) {
    const name = args[at].slice(2)
    options[name] = SWITCHES.has(args[at]) ? [] : [...(options[name] ?? []), args[++at]]
  }
  return { options, rest: args.slice(at) }
}

function run() {
  const { options, rest } = readOptions()
  const [image, ...command] = rest
  const name = options.name?.[0] ?? 'passing'
  if (existsSync(folderOf(name))) fail(`The container name "${name}" is already in use`)
  const [, network] = /^container:(.+)$/.exec(options.network?.[0] ?? '') ?? []
  if (network !== undefined && !existsSync(folderOf(network))) fail(`No such container: ${network}`)
  const volumes = (options.volume ?? []).map((volume) => volume.split(':'))
  mkdirSync(folderOf(name), { recursive: true })
  writeFileSync(join(folderOf(name), 'run.json'), JSON.stringify({ options, rest }))
  if (!image.startsWith('svc-mcp:')) {
    for (const [path] of volumes) if (!existsSync(path)) fail(`${path} does not exist`)
    return
  }
  if (!existsSync(join(ROOT, 'images', image))) fail(`Unable to find image ${image}`)
  mkdirSync(appOf(name))
  for (const [volume, path] of volumes) {
    mkdirSync(join(ROOT, 'volumes', volume), { recursive: true, mode: 0o700 })
    symlinkSync(join(ROOT, 'volumes', volume), join(folderOf(name), path))
  }
  if (options.entrypoint === undefined) return startContainer(name)
  const { status } = spawnSync(options.entrypoint[0], command, { cwd: appOf(name), env: { PATH }, stdio: 'inherit' })
  rmSync(folderOf(name), { recursive: true })
  process.exit(status ?? 1)
}

function envOf(name) {
  const { options } = JSON.parse(readFileSync(join(folderOf(name), 'run.json'), 'utf8'))
  const given = Object.fromEntries((options.env ?? []).map((variable) => variable.split(/=(.*)/s).slice(0, 2)))
  const env = { ...readVariables(place(options.settings[0])), ...given }
  return Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value.replace(/^\/app/, appOf(name))]))
}

function startContainer(name) {
  const program = [process.execPath, server, '--host', '127.0.0.1', '--port', port]
  start(name, program, { env: { PATH, ...envOf(name) }, cwd: appOf(name) })
}

const inside = (path) => path.replace(/^([^:/]+):/, (_match, name) => folderOf(name))

if (verb === 'build') {
  if (!existsSync('Dockerfile')) fail('no Dockerfile')
  writeFileSync(join(ROOT, 'images', args[args.indexOf('--tag') + 1]), '')
}
if (verb === 'run') run()
if (verb === 'stop') stop(args[0])
if (verb === 'start') startContainer(args[0])
if (verb === 'rm') rmSync(folderOf(args[0]), { recursive: true })
if (verb === 'rename') renameSync(folderOf(args[0]), folderOf(args[1]))
if (verb === 'cp') cpSync(inside(args[0]), args[1])
if (verb === 'logs') process.stderr.write(readFileSync(logOf(args.at(-1)), 'utf8'))
if (verb === 'exec') {
  const [name, command, ...rest] = args
  const { status } = spawnSync(command, rest, { cwd: appOf(name), env: { PATH, ...envOf(name) }, stdio: 'inherit' })
  process.exit(status ?? 1)
}

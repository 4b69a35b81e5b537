/** systemctl, systemd-run and journalctl as far as docs/operations.md uses them, with the unit file as it is installed. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { logOf, place, readVariables, ROOT, running, signal, start, stop } from './places.mjs'

const [program, ...args] = process.argv.slice(2)
const { PATH } = process.env

async function startUnit(unit) {
  const instance = unit.replace(/^svc-mcp@|\.service$/g, '')
  const text = place(readFileSync(join(ROOT, 'units/svc-mcp@.service'), 'utf8'))
    .replaceAll('%i', instance)
    .replaceAll('\\\n', ' ')
  const all = (name) => Array.from(text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value]) => value)
  const words = (line) => Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, bare]) => quoted ?? bare)
  const set = Object.fromEntries(all('Environment').map((line) => line.split(/=(.*)/s).slice(0, 2)))
  const env = { PATH, ...set, ...readVariables(all('EnvironmentFile')[0]) }
  process.umask(Number.parseInt(all('UMask')[0], 8))
  const pid = start(instance, words(all('ExecStart')[0]), { env, cwd: all('WorkingDirectory')[0] })
  const [post, ...more] = words(all('ExecStartPost')[0])
  // Not spawnSync: a process that has ended is gone only when its parent takes note.
  const waiting = spawn(post, more, { env: { PATH, MAINPID: String(pid) }, stdio: 'ignore' })
  const [code] = await once(waiting, 'exit')
  if (code === 0) return
  stop(instance)
  console.error(`Job for ${unit} failed.`)
  process.exit(1)
}

const stopUnit = (unit) => stop(unit.replace(/^svc-mcp@/, ''))

async function systemctl(verb, units) {
  if (verb === 'daemon-reload') return
  if (verb === 'reload') for (const instance of running()) signal(instance, 'SIGHUP')
  if (verb === 'stop' || verb === 'restart') for (const unit of units) stopUnit(unit)
  if (verb === 'start' || verb === 'restart' || verb === 'enable')
    for (const unit of units) if (unit.startsWith('svc-mcp@')) await startUnit(unit)
}

function systemdRun() {
  const at = args.findIndex((arg) => !arg.startsWith('-'))
  const options = args.slice(0, at)
  const valuesOf = (name) =>
    options.filter((option) => option.startsWith(`--${name}=`)).map((option) => place(option.slice(name.length + 3)))
  const env = Object.fromEntries(valuesOf('setenv').map((variable) => variable.split(/=(.*)/s).slice(0, 2)))
  const [file] = valuesOf('property').map((property) => property.replace(/^EnvironmentFile=/, ''))
  const [command, ...rest] = args.slice(at)
  const { status } = spawnSync(command, rest, {
    env: { PATH, ...env, ...readVariables(file) },
    cwd: valuesOf('working-directory')[0],
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}

if (program === 'systemctl') await systemctl(args[0], args.slice(1))
if (program === 'systemd-run') systemdRun()
if (program === 'journalctl')
  process.stdout.write(readFileSync(logOf(args[args.indexOf('--unit') + 1].replace(/^svc-mcp@/, '')), 'utf8'))

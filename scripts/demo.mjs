// `npm run demo` installs and builds what is missing, then runs `svc-mcp demo` in the same terminal. It is plain
// JavaScript, because nothing is installed yet in a fresh clone.
import { spawnSync, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

run(process.execPath, ['scripts/ensure-install.mjs'])
run(process.execPath, ['scripts/build.mjs', '--quiet'])

const demo = spawn(process.execPath, ['dist/stdio.js', 'demo', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
})
// The child also receives Ctrl-C from the terminal, so this process only waits until the child has cleaned up.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => demo.kill(signal))
endWithNpm(() => demo.kill('SIGTERM'))
demo.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 0)))

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}

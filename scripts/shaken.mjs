/**
 * `npm run test:shaken` runs the tests, or the named ones, with random delays on sockets, files and timers in every
 * process that they start. `-- --seed=N` repeats the delays of an earlier run, and `--loops=N` keeps N processes busy
 * at the same time; all other arguments are the same as for `npm test`.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const own = { seed: { type: 'string' }, loops: { type: 'string', default: '0' } }
const { values, tokens } = parseArgs({ options: own, strict: false, tokens: true, allowPositionals: true })
const passedOn = process.argv
  .slice(2)
  .filter((_, index) => !tokens.some((token) => token.index === index && token.name in own))
const seed = values.seed ?? String(randomInt(1_000_000))
const preload = new URL('./suite/shake.mjs', import.meta.url).href

console.log(`seed ${seed}: repeat with npm run test:shaken -- --seed=${seed}`)
const loops = Array.from({ length: Number(values.loops) }, () => spawn(process.execPath, ['-e', 'for (;;);']))
const stopLoops = () => loops.forEach((loop) => loop.kill('SIGKILL'))
process.once('exit', stopLoops)
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const suite = spawn(process.execPath, [fileURLToPath(new URL('./run-tests.mjs', import.meta.url)), ...passedOn], {
  stdio: 'inherit',
  env: { ...process.env, SHAKE_SEED: seed, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${preload}` },
})
const [status] = await once(suite, 'exit')
process.exit(status ?? 1)

/**
 * `npm run check` checks types, lint, format, walls and generated files, in steps with names. As many steps run at the
 * same time as there are processors; the longest steps start first. All steps run even if one fails, so that one run
 * finds everything. Only the output of failed steps is shown. Caches are in node_modules/.cache: the tools' own caches
 * and, for steps without one, the state of the project for which they last succeeded. `npm run check -- lint types`
 * runs only these steps. The last line is `N passed, N failed`.
 */
import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { summaryLine } from './summary-line.js'
import { hashOfProject, rememberSuccess } from './unchanged.js'

interface Step {
  name: string
  /** The script that Node.js runs, with its arguments. */
  program: readonly string[]
  /** The advice on what a person should do about a failure. */
  remedy: string
  /** True if the program has no cache of its own, and its result depends only on the files of the project. */
  isRemembered?: true
}

const root = fileURLToPath(new URL('..', import.meta.url))
const CACHE = 'node_modules/.cache/check'
const tsx = ['--import', 'tsx']
const walls = (name: string, entry: string) => [
  'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
  ...['--config', `scripts/boundaries/${name}.mjs`, '--cache', `${CACHE}/${name}`, '--cache-strategy', 'content'],
  ...['--output-type', 'err-long', entry],
]
const cached = (name: string) => ['--cache', '--cache-strategy', 'content', '--cache-location', `${CACHE}/${name}`]

/** The steps, longest first, because a run lasts until its last step has ended. */
const STEPS: readonly Step[] = [
  {
    name: 'lint',
    program: ['node_modules/eslint/bin/eslint.js', '--max-warnings=0', ...cached('eslint'), '.'],
    remedy: '`npm run format` fixes what can be fixed automatically',
  },
  {
    name: 'format',
    program: ['node_modules/prettier/bin/prettier.cjs', '--check', ...cached('prettier'), '.'],
    remedy: '`npm run format` writes it',
  },
  // One pass of the compiler finds its own errors and those of the rules that need types, with the tsconfig.json that
  // each file has. The shipped declarations of the PCE client are checked too, because of `declaration` there.
  {
    name: 'types',
    program: ['node_modules/oxlint/bin/oxlint', '--max-warnings=0', '.'],
    remedy: 'the types must check; .oxlintrc.json has the rules that need them',
    isRemembered: true,
  },
  {
    name: 'generated',
    program: [...tsx, 'scripts/generate.ts', '--check'],
    remedy: '`npm run generate` writes it',
    isRemembered: true,
  },
  {
    name: 'boundaries',
    program: walls('walls', '.'),
    remedy: 'scripts/boundaries/walls.mjs says who may import what',
  },
  {
    name: 'stdio',
    program: walls('stdio', 'programs/stdio.ts'),
    remedy: 'what only HTTP needs makes every start slower',
  },
  {
    name: 'catalogue',
    program: [...tsx, 'scripts/check-catalogue.ts'],
    remedy: 'docs/architecture.md says how a tool comes into the catalogue',
    isRemembered: true,
  },
  {
    name: 'knowledge',
    program: [...tsx, 'scripts/check-knowledge.ts'],
    remedy: 'knowledge/README.md says how a text names what exists',
    isRemembered: true,
  },
]

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !STEPS.some((step) => step.name === name))
if (unknown.length > 0) {
  console.error(`There is no step ${unknown.join(', ')}. The steps are ${STEPS.map(({ name }) => name).join(', ')}.`)
  process.exit(1)
}
const state = hashOfProject(root)
const counts = { passed: 0, failed: 0 }
const queue = STEPS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let step = queue.shift(); step !== undefined; step = queue.shift()) await run(step)
  }),
)
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

async function run({ name, program, remedy, isRemembered }: Step): Promise<void> {
  const started = performance.now()
  const memory = isRemembered && rememberSuccess(join(root, CACHE, `${name}.state`), state)
  if (memory?.isKnown()) {
    counts.passed++
    console.log(`ok      ${name.padEnd(10)}   unchanged`)
    return
  }
  const failure = await promisify(execFile)(process.execPath, program, { cwd: root, maxBuffer: 2 ** 26 }).then(
    () => undefined,
    ({ stdout, stderr, message }: Error & { stdout?: string; stderr?: string }) =>
      `${stdout ?? ''}${stderr || message}`,
  )
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(5)
  memory?.note(failure === undefined)
  counts[failure === undefined ? 'passed' : 'failed']++
  if (failure === undefined) console.log(`ok      ${name.padEnd(10)} ${seconds} s`)
  else console.log(`FAILED  ${name.padEnd(10)} ${seconds} s   ${remedy}\n${indent(failure)}`)
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '        ')
}

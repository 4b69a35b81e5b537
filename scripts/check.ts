/**
 * `npm run check`: types (also those of the PCE client alone, as they are shipped), lint, format, walls, generated documents, the
 * documents for assistants, worked examples, pictures and tool snapshots, each as a named step. All of them run, so that one round shows everything; the output of a step is shown
 * where it failed. Ends with `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { summaryLine } from './count-assertions.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = ['node_modules/typescript/bin/tsc']
const tsx = ['--import', 'tsx']
const walls = (config: string) => [
  'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
  ...['--config', config, '--output-type', 'err-long'],
]
const STEPS: readonly [name: string, program: readonly string[], remedy: string][] = [
  ['types', [...tsc, '-p', 'tsconfig.json'], 'the types must check'],
  ['browser', [...tsc, '-p', 'pictures/browser/tsconfig.json'], 'what runs in browsers must check'],
  ['client', [...tsc, '-p', 'tsconfig.build.json', '--noEmit'], 'the PCE client must build with its declarations'],
  [
    'lint',
    ['node_modules/eslint/bin/eslint.js', '--max-warnings=0', '.'],
    '`npm run format` fixes what can be fixed automatically',
  ],
  ['format', ['node_modules/prettier/bin/prettier.cjs', '--check', '.'], '`npm run format` writes it'],
  ['boundaries', [...walls('.dependency-cruiser.mjs'), '.'], '.dependency-cruiser.mjs says who may import what'],
  ['stdio', [...walls('.dependency-cruiser.stdio.mjs'), 'programs/stdio.ts'], 'what only HTTP needs makes every start slower'],
  ['docs', [...tsx, 'scripts/generate-docs.ts', '--check'], '`npm run docs` writes them'],
  ['knowledge', [...tsx, 'scripts/check-knowledge.ts'], 'knowledge/README.md says how a text names what exists'],
  ['examples', [...tsx, 'scripts/examples.ts', '--check'], '`npm run examples` runs the jobs and writes them'],
  ['pictures', [...tsx, 'scripts/pictures.ts', '--check'], '`npm run pictures` bundles their scripts'],
  [
    'map',
    [...tsx, 'scripts/demo-map.ts', '--check'],
    '`npm run demo-map` draws the map of the demo estate for README.md',
  ],
  ['snapshots', [...tsx, 'scripts/snapshots.ts', '--check'], '`npm run snapshots` writes them'],
]

const counts = { passed: 0, failed: 0 }
for (const [name, program, remedy] of STEPS) {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, program, { cwd: root, encoding: 'utf8' })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  if (status === 0) {
    counts.passed++
    console.log(`ok      ${name.padEnd(10)} ${seconds.padStart(5)} s`)
  } else {
    counts.failed++
    console.log(`FAILED  ${name.padEnd(10)} ${seconds.padStart(5)} s   ${remedy}\n${indent(stdout + stderr)}`)
  }
}
console.log(summaryLine(counts))
process.exit(counts.failed === 0 ? 0 : 1)

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '        ')
}

/** A project that is small and has every part the build knows: the real `scripts/build.mjs` makes its dist/. */
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PACKAGE = {
  name: 'small',
  version: '1.0.0',
  type: 'module',
  bin: { small: 'dist/stdio.js', sim: 'dist/pce-simulator/pce-sim.js' },
  exports: { './pce-client': { types: './dist/pce-client/index.d.ts', default: './dist/pce-client/index.js' } },
  files: ['dist'],
  scripts: { prepack: 'node scripts/build.mjs' },
  dependencies: { got: '1' },
}
/** Says which build it is of, then, once it is asked to, loads a part of it and lets that say the same. */
const PROGRAM = [
  '#!/usr/bin/env node',
  "import { release } from '../tools/release.js'",
  'console.log(release)',
  "process.stdin.once('data', async () => {",
  "  const { later } = await import('../tools/later.js')",
  '  console.log(later)',
  '  process.exit(0)',
  '})',
  '',
].join('\n')

/** Arguments of Node.js that say, for each way into dist/, which build it leads to, or why it leads to none. */
export const ASK_RELEASES: readonly string[] = [
  '--input-type=module',
  '--eval',
  [
    'const say = (text) => console.log(text)',
    "await import('./dist/stdio.js').catch(say)",
    "await import('./dist/pce-simulator/pce-sim.js').catch(say)",
    "await import('./dist/pce-client/index.js').then(({ release }) => say(release), say)",
  ].join('\n'),
]

export interface SmallProject {
  dir: string
  /** Gives the sources another content. */
  release(name: string): void
  /** Runs the build to its end; `node` are options of Node.js itself. */
  build(node?: string[], env?: NodeJS.ProcessEnv): { status: number | null; signal: string | null; said: string }
  /** What each way into dist/ says of itself, in the order program, simulator, client. */
  releases(): string[]
  /** Starts the program; `late` has it load the part that it loads late, and answers what that says. */
  start(): Promise<{ early: string; late(): Promise<string> }>
}

export function makeProject(t: Test): SmallProject {
  const dir = t.testdir({
    node_modules: t.fixture('symlink', join(ROOT, 'node_modules')),
    'package.json': JSON.stringify(PACKAGE),
    'package-lock.json': JSON.stringify({ packages: {} }),
    scripts: {},
    programs: {
      'stdio.ts': PROGRAM,
      'http.ts': "import '../tools/release.js'\n",
      'worker.ts': "export { release } from '../tools/release.js'\n",
    },
    tools: {
      catalogue: { 'catalogue-of.ts': 'export const dataOf = () => ({})\n' },
      'index.ts': 'export const tools = []\n',
      'release.ts': '',
      'later.ts': "export { release as later } from './release.js'\n",
    },
    'pce-simulator': { 'pce-sim.ts': "import { release } from '../tools/release.js'\nconsole.log(release)\n" },
    'pce-client': { 'index.ts': "export { release } from '../tools/release.js'\n" },
    knowledge: {
      catalogue: { 'list-knowledge.ts': 'export const listKnowledge = () => ({})\n' },
      documents: { 'one.md': '# One\n' },
    },
    domain: { traffic: { providers: { 'provider-ranges.json': '{}' } } },
    pictures: { browser: { 'app.ts': '', 'page.ts': '' } },
  })
  for (const name of [
    'scripts/build.mjs',
    'scripts/bundle-catalogue.mjs',
    'scripts/bundle-pictures.mjs',
    'scripts/ensure-install.mjs',
    'tsconfig.json',
  ])
    copyFileSync(join(ROOT, name), join(dir, name))
  const recipe = JSON.parse(readFileSync(join(ROOT, 'pce-client/tsconfig.build.json'), 'utf8')) as {
    compilerOptions: object
  }
  // The compiler takes two thirds of its time to read the types of the platform, of which the client of this project uses none.
  const compilerOptions = { ...recipe.compilerOptions, lib: ['ES5'], types: [] }
  writeFileSync(join(dir, 'pce-client/tsconfig.build.json'), JSON.stringify({ ...recipe, compilerOptions }))
  const release = (name: string) =>
    writeFileSync(join(dir, 'tools/release.ts'), `export const release: string = '${name}'\n`)
  release('one')
  return {
    dir,
    release,
    build(node = [], env = {}) {
      const { status, signal, stdout, stderr } = spawnSync(process.execPath, [...node, 'scripts/build.mjs'], {
        cwd: dir,
        encoding: 'utf8',
        env: { ...process.env, ...env },
      })
      return { status, signal, said: stdout + stderr }
    },
    releases() {
      const { stdout, stderr } = spawnSync(process.execPath, ASK_RELEASES, { cwd: dir, encoding: 'utf8', input: '' })
      return `${stdout}${stderr}`.trim().split('\n')
    },
    async start() {
      const child = spawn(process.execPath, ['dist/stdio.js'], { cwd: dir, stdio: ['pipe', 'pipe', 'inherit'] })
      t.teardown(() => child.kill())
      const lines = child.stdout.setEncoding('utf8')[Symbol.asyncIterator]() as AsyncIterator<string>
      const next = async () => ((await lines.next()) as { value?: string }).value?.trim() ?? 'ended'
      return {
        early: await next(),
        late: () => {
          child.stdin.write('now\n')
          return next()
        },
      }
    },
  }
}

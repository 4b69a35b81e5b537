/** What the project's own commands promise: running tests, installing, generating, and adding everything up. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { inScratch } from '../../scripts/bench/in-scratch.js'
import { definedNumbers, findBrokenLinks, findDangling } from '../../scripts/docs/check-citations.js'
import { ERROR_TABLE, type ErrorRow } from '../../plugins/errors/table.js'
import { findCommands, findUntestedCommands } from '../../scripts/docs/find-commands.js'
import { findKnowledgeProblems } from '../../scripts/docs/find-knowledge-problems.js'
import { renderTable, replaceSection } from '../../scripts/docs/markdown.js'
import { renderErrorTables } from '../../scripts/docs/render-errors.js'
import { renderEnvironmentFile, renderEnvironmentTable } from '../../scripts/docs/render-environment.js'
import { renderToolPage } from '../../scripts/docs/render-tools.js'
import { syncFiles } from '../../scripts/generate/sync-files.js'
import { hashOfProject, rememberSuccess } from '../../scripts/unchanged.js'
import { defineTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { contains } from '../partial.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

t.test('the runner', async (t) => {
  const test = (body: string) => `import t from 'tap'\n${body}\n`
  const dir = t.testdir({
    'package.json': JSON.stringify({ type: 'module' }),
    'package-lock.json': JSON.stringify({ packages: {} }),
    node_modules: t.fixture('symlink', join(ROOT, 'node_modules')),
    pictures: { browser: { 'app.ts': '', 'page.ts': '' } },
    scripts: { suite: {} },
    test: {
      good: {
        'good.test.ts': test("t.beforeEach(() => { throw new Error('of this file alone') })\nt.ok(1); t.ok(2)"),
        'last.test.ts': test("t.test('ok', async (t) => { t.ok(1) })"),
        'open.test.ts': test('t.ok(1)\nsetInterval(() => {}, 1000)'),
        'other.long.ts': test('t.ok(1)'),
      },
      bad: {
        'bad.test.ts': test(
          "const one: number = 1\nt.equal(one, 2, 'one is two')\nt.equal('a'.repeat(2e6), 'b', 'huge')",
        ),
      },
      empty: { 'empty.test.ts': test('') },
      throws: { 'throws.test.ts': test("t.ok(1)\nthrow new Error('thrown')") },
      late: {
        'late.test.ts': test(
          "t.test('waits', () => new Promise(() => setTimeout(() => { throw new Error('too late') })))\nt.test('next', async (t) => { t.ok(1) })",
        ),
      },
      exits: { 'exits.test.ts': test('t.ok(1)\nprocess.exit(0)') },
      dies: {
        'apart.test.ts': test(`t.ok(1) ${' '.repeat(200)}`),
        'dies.test.ts': test("t.ok(1)\nprocess.kill(process.pid, 'SIGKILL')"),
        'next.test.ts': test('t.ok(1)'),
      },
      hangs: { 'hangs.test.ts': test("t.test('never', () => new Promise((resolve) => setTimeout(resolve, 600_000)))") },
      'notes.md': '',
    },
  })
  for (const name of [
    ...['bundle-pictures.mjs', 'ensure-install.mjs', 'run-tests.mjs'],
    ...['compile.mjs', 'suites.mjs', 'file-test.ts', 'follow-no-promises.ts', 'run-files.ts'].map(
      (file) => `suite/${file}`,
    ),
  ])
    copyFileSync(join(ROOT, 'scripts', name), join(dir, 'scripts', name))
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/run-tests.mjs', ...args], {
      cwd: dir,
      encoding: 'utf8',
    })
    const told = [...stdout.matchAll(/^(ok|FAILED) +(test\/[\w./]+) +(.*)$/gm)].map(([, verdict, name, words]) =>
      [verdict, name!.slice('test/'.length), words!.replace(/^[\d.]+ s {2}/, '')].join(' '),
    )
    return { status, told: told.sort(), last: stdout.trimEnd().split('\n').at(-1), stdout, stderr }
  }

  const all = run('--jobs=2', 'test/good', 'test/bad', 'test/empty', 'test/throws')
  t.equal(all.status, 1)
  t.same(all.told, [
    'FAILED bad/bad.test.ts 0 passed',
    'FAILED empty/empty.test.ts 0 passed',
    'FAILED throws/throws.test.ts 1 passed',
    ...['good', 'last', 'open'].map((name) => `ok good/${name}.test.ts ${name === 'good' ? 2 : 1} passed`),
  ])
  for (const words of [
    /bad\.test\.ts > one is two[^]*-2\n +\+1[^]*test\/bad\/bad\.test\.ts:3:3/,
    /test\/empty\/empty\.test\.ts asserts nothing/,
    /test\/throws\/throws\.test\.ts > thrown/,
  ])
    t.ok(words.test(all.stdout), String(words))
  t.equal(all.last, '6 passed, 4 failed')
  t.ok(all.stdout.length < 50_000, `${all.stdout.length} characters: a huge difference is cut`)

  // The largest file first, in one process.
  const dies = run('--jobs=1', 'test/dies')
  t.same(dies.told, [
    'FAILED dies/dies.test.ts 1 passed',
    'FAILED dies/next.test.ts not run, because its process had ended',
    'ok dies/apart.test.ts 1 passed',
  ])
  t.match(dies.stdout, /dies\.test\.ts.*\n +SIGKILL ended process 1\n/)
  // One process goes on after an error that comes late, until a file ends it.
  const ends = run('--jobs=1', 'test/late', 'test/exits')
  t.same(ends.told, ['FAILED exits/exits.test.ts 1 passed', 'FAILED late/late.test.ts 1 passed'])
  t.match(ends.stdout, /late\.test\.ts > waits > too late/)
  t.match(ends.stdout, /exits\.test\.ts > test unfinished/)
  const hangs = run('--timeout=1', 'test/hangs')
  t.same([hangs.status, hangs.told], [1, ['FAILED hangs/hangs.test.ts 0 passed']])
  t.match(hangs.stdout, /hangs\.test\.ts > never > timeout!/)

  const some = run('test/good/last.test.ts', 'test/good/other.long.ts')
  t.same(
    [some.status, some.told, some.last],
    [0, ['ok good/last.test.ts 1 passed', 'ok good/other.long.ts 1 passed'], '2 passed, 0 failed'],
  )

  const suite = run('long')
  t.same([suite.status, suite.told], [0, ['ok good/other.long.ts 1 passed']])

  const missing = run('test/gone.test.ts')
  t.same([missing.status, missing.last, missing.stderr], [1, '0 passed, 1 failed', 'There is no test/gone.test.ts\n'])
  for (const [path, words] of [
    ['.', '. is not below test/\n'],
    ['/etc/hosts', '/etc/hosts is not below test/\n'],
    ['test/notes.md', 'test/notes.md is not a test file (.ts)\n'],
  ] as const) {
    const { status, stderr } = run(path)
    t.same([status, stderr], [1, words])
  }
})

t.test('ensure-install', async (t) => {
  const dir = t.testdir({
    scripts: {},
    dep: { 'package.json': JSON.stringify({ name: 'dep', version: '1.0.0' }) },
    'package.json': JSON.stringify({ name: 'fresh', version: '1.0.0', devDependencies: { dep: 'file:dep' } }),
    'package-lock.json': JSON.stringify({
      name: 'fresh',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: {
        '': { name: 'fresh', version: '1.0.0', devDependencies: { dep: 'file:dep' } },
        dep: { version: '1.0.0', dev: true },
        'node_modules/dep': { resolved: 'dep', link: true },
        'node_modules/for-another-platform': { version: '1.0.0', integrity: 'sha512-x', optional: true },
      },
    }),
  })
  copyFileSync(join(ROOT, 'scripts/ensure-install.mjs'), join(dir, 'scripts/ensure-install.mjs'))
  const ensure = (args: string[], env: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, ['scripts/ensure-install.mjs', ...args], {
      cwd: dir,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    })
  const WITHOUT_NPM = { PATH: '/nonexistent' }

  const broken = ensure([], WITHOUT_NPM)
  t.not(broken.status, 0, 'an install that fails fails')
  t.match(broken.stderr, /npm ci failed/)

  const first = ensure([], { NODE_ENV: 'production' })
  t.equal(first.status, 0, first.stderr)
  t.equal(first.stdout, '', 'standard output stays clean')
  t.match(first.stderr, /^Installing dependencies.*\nInstalled in \d+ s\.\n$/, 'it says what it does')
  t.ok(existsSync(join(dir, 'node_modules/dep')), 'development packages too, whatever NODE_ENV says')

  const second = ensure([], WITHOUT_NPM)
  t.same([second.status, second.stdout, second.stderr], [0, '', ''], 'the second time nothing is done or said')

  const lock = readFileSync(join(dir, 'package-lock.json'), 'utf8')
  writeFileSync(join(dir, 'package-lock.json'), lock.replace('"dep":{"version":"1.0.0"', '"dep":{"version":"1.0.1"'))
  t.not(ensure(['--quiet'], WITHOUT_NPM).status, 0, 'a lock file that asks for something else is noticed')
})

const specimen = defineTool({
  name: 'get-things',
  toolset: 'inventory',
  summary: 'List things | all of them.',
  effect: 'read',
  roles: ['reader', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object({
    kind: Type.Unsafe<string>({ type: 'string', enum: ['a', 'b'], default: 'a', description: 'Which' }),
    rules: Type.Optional(
      Type.Array(
        Type.Union([
          Type.String(),
          Type.Object({ port: Type.Integer({ minimum: 1, maximum: 9, description: 'Port' }) }),
        ]),
        { maxItems: 5, description: 'Rules' },
      ),
    ),
  }),
  output: Type.Object({ things: Type.Array(Type.String(), { description: 'Found' }) }),
  example: { kind: 'a' },
  handler: async () => ({ things: [] }),
})

t.test('the generated documents', async (t) => {
  t.equal(renderTable(['a', 'b'], [['x|y', 'two\n  lines']]), '| a | b |\n| --- | --- |\n| x\\|y | two lines |')

  const text = 'before\n<!-- BEGIN generated:x -->\nold\n<!-- END generated:x -->\nafter'
  t.equal(replaceSection(text, 'x', 'new'), text.replace('old', 'new'))
  t.throws(() => replaceSection(text, 'y', ''), /generated:y/, 'a section that is not there')
  t.throws(() => replaceSection(text + text, 'x', ''), 'a section that is there twice')

  const page = renderToolPage([specimen])
  contains(t, page, '| [`get-things`](#get-things) | List things \\| all of them. | reader, admin | reads |')
  contains(t, page, '## get-things')
  contains(t, page, '| `kind` | `"a" \\| "b"` | yes | `"a"` | Which |', 'an enumeration with its default')
  contains(t, page, '| `rules` | `(string \\| object)[]` |  |  | Rules; at most 5 entries |', 'a list with its bound')
  contains(t, page, '| `rules[].port` | `integer` | yes |  | Port; 1 to 9 |', 'a property inside a list')
  contains(t, page, '| `things` | `string[]` | yes | Found |', 'the answer')

  const variables = [
    { name: 'PCE_HOST', appliesTo: 'stdio, HTTP', meaning: 'The PCE', required: 'stdio' },
    { name: 'MCP_LEVEL', appliesTo: 'stdio, HTTP', meaning: 'How much', default: 'info' },
    {
      name: 'MCP_KEY',
      appliesTo: 'authenticated HTTP',
      meaning: 'A key',
      required: 'authenticated HTTP',
      secret: true,
    },
  ] as const
  const example = renderEnvironmentFile(variables)
  t.same({ ...parseEnv(example) }, { PCE_HOST: '' }, 'only what stdio needs stands open')
  t.match(example, /# How much .*\n#MCP_LEVEL=info\n/)
  t.match(example, /# A key .*secret.*\n#MCP_KEY=\n/)
  contains(t, renderEnvironmentTable(variables), '| `MCP_LEVEL` | stdio, HTTP | `info` |  | How much |')
})

t.test('the tables of error codes', async (t) => {
  const row = (turn: ErrorRow['turn'], hint?: string): ErrorRow => ({
    ...{ status: 503, message: 'It fails.', level: 'warn', turn },
    ...(hint !== undefined && { hint }),
  })
  const table = { c: row(['caller']), n: row(['nobody', 'operator'], 'Wait.'), o: row(['operator', 'pce']) }
  t.same(
    renderErrorTables(table, { n: 'Look.', o: 'Mend.' })
      .split('\n')
      .filter((line) => line.startsWith('| `') || line.startsWith('#')),
    [
      '### Where somebody else than the caller may have to act',
      "| `o` | 503 | the operator, then the PCE's administrator | It fails. | Mend. |",
      '| `n` | 503 | nobody: it passes, then the operator | It fails. Wait. | Look. |',
      "### The caller's alone",
      '| `c` | 503 | It fails. |',
    ],
  )
  t.throws(() => renderErrorTables(table, { n: 'Look.' }), { message: 'o has no remedy' })
  t.throws(() => renderErrorTables(table, { c: '', n: '', o: '', gone: '' }), {
    message: 'c needs no remedy, gone needs no remedy',
  })
  t.same(
    Object.entries(ERROR_TABLE).filter(([, { level, turn }]) => level === 'error' && !turn.includes('operator')),
    [],
    "what is logged for the operator is the operator's turn, too",
  )
})

t.test('every number a comment cites must be defined', async (t) => {
  const defined = definedNumbers(['### D1. One\n\n### S2. Two\n', '### P3. Three\n'])
  t.same([...defined], ['D1', 'S2', 'P3'])
  const code = [
    '/** Why (D1, P4). */',
    'const SHA = "P5" // S2, S6, D106',
    '/*',
    ' * T7: as P-256 and D800 are not',
    ' */',
  ].join('\n')
  const sources = new Map([
    ['a.ts', code],
    ['b.md', 'See P3 and D8.'],
  ])
  t.same(findDangling(sources, defined), ['a.ts:1: P4', 'a.ts:2: S6', 'a.ts:2: D106', 'a.ts:4: T7', 'b.md:1: D8'])
  t.throws(() => definedNumbers(['### D1. One', '### D1. Again']), /defined twice: D1/)
})

t.test('every link must have a target', async (t) => {
  const page = 'See [a](a.md#x), [b](../b.md), [web](https://x.example/y), [here](#z), and `test/gone.test.ts`.'
  const pages = new Map([
    ['docs/page.md', page],
    ['code.ts', '// [c](c.md)'],
  ])
  t.same(
    findBrokenLinks(pages, (path) => path === 'docs/a.md'),
    ['docs/page.md: b.md', 'docs/page.md: test/gone.test.ts'],
  )
})

t.test('every command of a page must be run by a test, or say why not', async (t) => {
  // Put together here, because a key between quotes in a test counts as run.
  const at = (anchor: string) => `docs/page.md#${anchor}`
  const fenced = (language: string, ...lines: string[]) => [`\`\`\`${language}`, ...lines, '```', '']
  const page = [
    ...['# The Page', '', ...fenced('sh', 'one'), '## Start `it`: now', '', '<!-- not run: no engine -->'],
    ...[...fenced('bash', 'two \\', '  more'), ...fenced('ts', 'three'), ...fenced('sh', '# four'), '`npm run gone`'],
  ].join('\n')
  t.same(findCommands('docs/page.md', page), [
    { key: at('the-page'), text: 'one' },
    { key: at('start-it-now'), text: 'two \\\n  more', notRun: 'no engine' },
    { key: at('start-it-now:2'), text: '# four' },
  ])
  const named = (...anchors: string[]) => anchors.map((anchor) => `run('${at(anchor)}')`).join('\n')
  const wrongWith = (test: string) =>
    findUntestedCommands(
      new Map([
        ['docs/page.md', page.replace('gone', 'test')],
        ['test/a.test.ts', test],
      ]),
      new Set(['test']),
    )
  const remedy = (anchor: string) =>
    `${at(anchor)}: no test runs this block. Name '${at(anchor)}' in one that does, or write <!-- not run: why --> above it`
  t.same(wrongWith(''), [remedy('the-page'), remedy('start-it-now:2')])
  t.same(wrongWith(named('the-page', 'start-it-now:2')), [])
  t.same(wrongWith(named('the-page', 'start-it-now', 'start-it-now:2', 'gone')), [
    `${at('start-it-now')}: says that it is not run, but test/a.test.ts runs it`,
    `test/a.test.ts: there is no block '${at('gone')}'`,
  ])
  t.same(findUntestedCommands(new Map([['a.md', '`npm run gone` `npm test -- x`']]), new Set(['test'])), [
    "a.md: package.json has no script 'gone'",
  ])
})

t.test('detects stale generated files', async (t) => {
  const root = t.testdir({ 'a.txt': 'one\ntwo\n', 'gone.txt': '' })
  const wanted = new Map([
    ['a.txt', 'one\n2\n'],
    ['new/b.txt', 'b'],
  ])
  const said: string[] = []
  const sync = (check: boolean, surplus: string[] = []) => {
    said.length = 0
    return syncFiles(wanted, { root, check, command: '`npm run x`', surplus, say: (line) => said.push(line) })
  }
  t.equal(sync(true, ['gone.txt']), false, 'a check of stale files fails')
  t.match(
    said.join('\n'),
    /a\.txt:2\n {2}- two\n {2}\+ 2\nnew\/b\.txt: missing\ngone\.txt: .*\n3 stale: run `npm run x`/,
    'and says where they differ',
  )
  t.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'one\ntwo\n', 'and writes nothing')
  t.equal(sync(false, ['gone.txt']), true)
  t.equal(readFileSync(join(root, 'new/b.txt'), 'utf8'), 'b')
  t.notOk(existsSync(join(root, 'gone.txt')))
  t.equal(sync(true), true, 'what was written is up to date')
})

t.test('.ci/run adds up every suite and fails when one of them failed or died', async (t) => {
  // Each command is a shell script that npm starts, or npx for the suite of another Node.js; `npm test NAME` starts that of the suite.
  const runIn = ({ lts, ...commands }: Record<string, string>, installPackages: string) => {
    const scripts = Object.fromEntries(
      ['check', 'demo', 'conformance', 'smoke', 'clients'].map((name) => [name, `sh commands/${name}.sh`]),
    )
    const dir = t.testdir({
      'package.json': JSON.stringify({ name: 'x', scripts: { ...scripts, test: 'sh commands/run-suite.sh' } }),
      scripts: { 'ensure-install.mjs': '', 'container.mjs': `console.log('2 passed, 0 failed')` },
      commands: {
        ...Object.fromEntries(Object.entries(commands).map(([name, text]) => [`${name}.sh`, text])),
        // The suite is the last argument, behind the options.
        'run-suite.sh': 'for suite; do :; done; exec sh "commands/${suite:-test}.sh"',
      },
      bin: {},
    })
    writeFileSync(join(dir, 'bin/npx'), `#!/bin/sh\n${lts}\n`, { mode: 0o755 })
    mkdirSync(join(dir, '.ci'))
    copyFileSync(join(ROOT, '.ci/run'), join(dir, '.ci/run'))
    writeFileSync(join(dir, '.ci/install-packages'), `#!/bin/sh\n${installPackages}\n`, { mode: 0o755 })
    const env = { ...process.env, PATH: `${join(dir, 'bin')}:${process.env.PATH}` }
    const { status, stdout } = spawnSync('bash', [join(dir, '.ci/run')], { encoding: 'utf8', env })
    return { status, lastLine: stdout.split('\n').at(-2) }
  }
  const two = "echo '2 passed, 0 failed'"
  const good = {
    check: two,
    test: two,
    long: two,
    edge: two,
    postgres: two,
    lts: two,
    conformance: two,
    smoke: two,
    clients: two,
    demo: 'true',
  }
  t.same(runIn(good, 'exit 0'), { status: 0, lastLine: '23 passed, 0 failed' })
  const bad = {
    ...good,
    test: "echo '3 passed, 1 failed'; exit 1",
    lts: 'exit 3',
    smoke: "echo '1 passed, 0 failed'; exit 1",
    demo: 'false',
  }
  // The install passed; a suite without a count, one that exits non-zero without a failure, the packages and the demo count as one failure
  // each.
  t.same(runIn(bad, 'exit 1'), { status: 1, lastLine: '19 passed, 5 failed' })
})

t.test('a measurement waits for the end of its processes before it removes what they write', async (t) => {
  const writeOn = `process.on('SIGTERM', () => {})
    let file = 0
    setInterval(() => require('fs').writeFileSync(process.argv[1] + '/' + file++, ''))
    setTimeout(process.exit, 5000)
    console.log('ready')`
  let written = ''
  let writer: ChildProcess | undefined
  const result = await inScratch(async ({ directory, end }) => {
    written = directory
    writer = spawn(process.execPath, ['-e', writeOn, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
    end(writer)
    await once(writer.stdout!, 'data')
    return 'measured'
  })
  t.equal(result, 'measured')
  t.equal(writer?.signalCode, 'SIGKILL')
  t.notOk(existsSync(written))
})

t.test(
  'the image and the tests agree on the Node.js release, and the image runs without root on loopback',
  async (t) => {
    const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    t.match(dockerfile, /^ARG NODE_VERSION=24$/m)
    contains(t, readFileSync(join(ROOT, '.ci/run'), 'utf8'), 'node@24 scripts/run-tests.mjs lts')
    t.equal(engines.node, '>=20.19')
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
    t.match(last, /^USER 1000:1000$/m)
    t.match(last, /^ENTRYPOINT \["node", "dist\/http\.js"\]\nCMD \["--host", "127\.0\.0\.1", "--port", "8080"\]$/m)
    t.match(last, /127\.0\.0\.1:8080\/healthz/)
    t.notMatch(last, /npm (ci|install)/, 'nothing is installed in the last stage')
  },
)

t.test('refuses documents for assistants that name what does not exist', async (t) => {
  const room = join(ROOT, 'knowledge')
  const texts = new Map(
    readdirSync(room, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && name.includes('/'))
      .map((name) => [name, readFileSync(join(room, name), 'utf8')]),
  )
  t.same(findKnowledgeProblems(texts, tools), [])
  const path = 'documents/concepts/labels.md'
  const problemsOf = (line: string) =>
    findKnowledgeProblems(new Map([...texts, [path, `# Labels\n\nAs of 2026-11-24.\n\n${line}\n`]]), tools)
      .filter((problem) => problem.startsWith(path))
      .map((problem) => problem.slice(path.length + 2))
  const unlisted = 'is there and not listed'
  t.same(problemsOf('{{get-labels}} and {{get-labels.key}} exist, see `illumio://changelog`'), [unlisted])
  t.same(problemsOf('{{get-lables}}'), ["there is no tool 'get-lables'", unlisted])
  t.same(problemsOf('{{get-labels.kee}}'), ["get-labels has no argument 'kee'", unlisted])
  t.same(problemsOf('{{@application_name}}'), ["there is no value '@application_name'", unlisted])
  t.same(problemsOf('`illumio://concepts/label`'), ["there is no resource 'illumio://concepts/label'", unlisted])
  t.same(problemsOf('Call get-labels.'), ['write {{get-labels}} for get-labels', unlisted])
  t.same(problemsOf('Call `get-lables`.'), ["there is no tool 'get-lables'; write {{…}} for one", unlisted])
  t.same(findKnowledgeProblems(new Map([...texts].slice(1)), tools), [
    `${[...texts.keys()][0]}: is listed and not there`,
  ])
  t.same(findKnowledgeProblems(new Map([...texts, ['documents/concepts/labels.md', '# Labels\n']]), tools), [
    'documents/concepts/labels.md: is there and not listed',
    'documents/concepts/labels.md: does not say as of when it is true',
  ])
})

t.test('a success is remembered for exactly the files that git keeps or would keep', (t) => {
  const dir = t.testdir({ kept: '1', '.gitignore': 'ignored\n' })
  t.equal(hashOfProject('/'), undefined, 'outside of a repository')
  spawnSync('git', ['init', '--quiet'], { cwd: dir })
  const isKnown = () => rememberSuccess(join(dir, 'ignored/state'), hashOfProject(dir)).isKnown()
  const note = (succeeded: boolean) => rememberSuccess(join(dir, 'ignored/state'), hashOfProject(dir)).note(succeeded)
  const seen = [isKnown()]
  note(true)
  seen.push(isKnown())
  writeFileSync(join(dir, 'ignored/other'), '')
  seen.push(isKnown())
  writeFileSync(join(dir, 'new'), '')
  seen.push(isKnown())
  note(true)
  writeFileSync(join(dir, 'kept'), '2')
  seen.push(isKnown())
  note(false)
  seen.push(isKnown())
  t.same(seen, [false, true, true, false, false, false])
  const unknown = rememberSuccess(join(dir, 'ignored/state'), undefined)
  unknown.note(true)
  t.equal(unknown.isKnown(), false, 'without a repository nothing is remembered')
  t.end()
})

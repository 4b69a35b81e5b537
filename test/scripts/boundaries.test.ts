import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { checkBoundaries, renderViolation } from '../../scripts/boundaries/check.js'
import { readTree } from '../../scripts/boundaries/read-tree.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What the check says of a tree in which only these files exist. */
const judge = (files: Record<string, string>) =>
  checkBoundaries(Object.entries(files).map(([path, text]) => ({ path, text }))).map(renderViolation)

const PLANTED: [string, Record<string, string>, RegExp][] = [
  [
    'schemas import a tool',
    { 'schemas/a.ts': "\nimport x from '../tools/define.js'" },
    /^schemas\/a\.ts:2 imports tools\/define\.ts; schemas may import schemas/,
  ],
  [
    'the PCE client imports the MCP SDK',
    { 'pce-client/a.ts': "import '@modelcontextprotocol/sdk/types.js'" },
    /pce-client may import/,
  ],
  [
    'the PCE client imports Fastify for a type',
    { 'pce-client/a.ts': "import type { FastifyInstance } from 'fastify'" },
    /imports fastify;/,
  ],
  [
    'the PCE client imports an HTTP body shape',
    { 'pce-client/a.ts': "import '../schemas/http/health.js'" },
    /imports schemas\/http\/health\.ts;/,
  ],
  [
    'a tool imports got',
    { 'tools/labels/a.ts': "import got from 'got'" },
    /^tools\/labels\/a\.ts:1 imports got; tools may import/,
  ],
  ['a tool imports got late', { 'tools/labels/a.ts': "const load = () => import('got')" }, /imports got;/],
  ['a tool imports the file system by its old name', { 'tools/labels/a.ts': "import 'fs'" }, /imports node:fs;/],
  ['a tool requires a module', { 'tools/labels/a.ts': "require('node:fs')" }, /imports node:fs;/],
  ['a tool imports another tool', { 'tools/labels/a.ts': "import b from './b.js'" }, /imports tools\/labels\/b\.ts;/],
  [
    'a tool makes a client of its own',
    { 'tools/labels/a.ts': "import { createPceClient } from '../../pce-client/index.js'" },
    /types, PceError, .* of pce-client\/index\.ts/,
  ],
  [
    'a tool takes the whole door of the client',
    { 'tools/labels/a.ts': "import * as pce from '../../pce-client/index.js'" },
    /imports pce-client\/index\.ts;/,
  ],
  [
    'a tool reaches past the door of the client',
    { 'tools/labels/a.ts': "import { kinds } from '../../pce-client/kinds.js'" },
    /imports pce-client\/kinds\.ts;/,
  ],
  ['a helper of tools imports a tool', { 'domain/a.ts': "import '../labels/b.js'" }, /tools\/support may import/],
  [
    'a helper re-exports from a plugin',
    { 'domain/a.ts': "export { x } from '../../plugins/errors/convert.js'" },
    /imports plugins\/errors\/convert\.ts;/,
  ],
  [
    'a helper uses a type of a plugin in place',
    { 'domain/a.ts': "let x: import('../../plugins/errors/convert.js').X" },
    /imports plugins\/errors\/convert\.ts;/,
  ],
  [
    'the inside of a plugin imports Fastify',
    { 'plugins/health/a.ts': "import type { FastifyInstance } from 'fastify'" },
    /plugins\/health may import/,
  ],
  [
    'a plugin imports the files of another',
    { 'plugins/health/a.ts': "import '../request-id/accept.js'" },
    /imports plugins\/request-id\/accept\.ts;/,
  ],
  [
    'a plugin imports the door of errors',
    { 'plugins/health/a.ts': "import '../errors/index.js'" },
    /imports plugins\/errors\/index\.ts;/,
  ],
  [
    'a door imports another plugin',
    { 'plugins/health/index.ts': "import '../request-id/index.js'" },
    /plugins\/health\/index\.ts may import plugins\/health\//,
  ],
  [
    'the SDK outside its room',
    { 'plugins/dispatcher/a.ts': "import '@modelcontextprotocol/sdk/types.js'" },
    /imports @modelcontextprotocol\/sdk\/types\.js;/,
  ],
  [
    'app.ts reaches past a door',
    { 'app.ts': "import './plugins/dispatcher/dispatch.js'" },
    /app\.ts may import plugins\/\*\/index\.ts/,
  ],
  ['config.ts imports logic', { 'config.ts': "import './tools/index.js'" }, /config\.ts may import/],
  ['production imports a test', { 'tools/labels/a.ts': "import '../../test/helper.js'" }, /imports test\/helper\.ts;/],
  [
    'an import nobody can see',
    { 'tools/labels/a.ts': 'const load = (name) => import(name)' },
    /imports something computed/,
  ],
  ['a file in no room', { 'helpers/a.ts': '' }, /^helpers\/a\.ts:1 is in no room/],
  [
    'process.env outside config.ts',
    { 'plugins/mcp/a.ts': '\n\nconst x = process.env.X' },
    /^plugins\/mcp\/a\.ts:3 uses process\.env; only config\.ts/,
  ],
  ['process.env by key', { 'http.ts': "const x = process['env']" }, /uses process\.env;/],
  ['process.env by destructuring', { 'http.ts': 'const { env } = process' }, /uses process\.env;/],
  ['process.env by what is left over', { 'http.ts': 'const { argv, ...rest } = process' }, /uses process;/],
  ['process handed on whole', { 'http.ts': 'read(process)' }, /uses process;/],
  ['process.env through globalThis', { 'http.ts': 'globalThis.process.env' }, /uses process\.env;/],
  ['process.env through its module', { 'http.ts': "import { env } from 'process'" }, /uses process;/],
  ['process.env through its module, late', { 'http.ts': "await import('node:process')" }, /uses process;/],
]

t.test('each sort of crossing is caught and says file, line and what the room may import', async (t) => {
  for (const [title, files, expected] of PLANTED) {
    const said = judge(files)
    t.equal(said.length, 1, `${title}: one violation`)
    t.match(said[0], expected, title)
  }
})

t.test('what stdio.ts loads never writes to standard output and never loads Fastify', async (t) => {
  const stdio = "import { a } from './plugins/mcp/a.js'"
  const chain = { 'stdio.ts': stdio, 'plugins/mcp/a.ts': "export * from './b.js'" }
  const via = /stdio\.ts > plugins\/mcp\/a\.ts > plugins\/mcp\/b\.ts/
  const bad = {
    'console.log(1)': /uses console/,
    'process.stdout.write("x")': /uses process\.stdout/,
    'globalThis.console.info(1)': /uses console/,
  }
  for (const [text, expected] of Object.entries(bad)) {
    const said = judge({ ...chain, 'plugins/mcp/b.ts': text })
    t.equal(said.length, 1, text)
    t.match(said[0], expected, text)
    t.match(said[0], via, 'the way from stdio.ts is told')
  }
  t.match(
    judge({
      'stdio.ts': "await import('./plugins/mcp/index.js')",
      'plugins/mcp/index.ts': "import fp from 'fastify-plugin'",
    }),
    [/must start fast/],
    'lazily too',
  )
  t.same(
    judge({
      'stdio.ts': "import type { A } from './plugins/mcp/a.js'",
      'plugins/mcp/a.ts': 'process.stdout.write("x")',
    }),
    [],
    'a type loads nothing',
  )
  t.same(judge({ 'http.ts': 'process.stdout.write("x")' }), [], 'what stdio.ts does not load may write there')
  t.same(judge({ 'stdio.ts': 'serve(process.stdout)' }), [], 'stdio.ts itself hands it to the transport')
  t.match(judge({ 'stdio.ts': 'console.log("ready")' }), [/uses console/])
})

t.test('what the table allows passes', async (t) => {
  t.same(
    judge({
      'config.ts':
        "import { readFileSync } from 'node:fs'\nimport type { Config } from './schemas/config.js'\nprocess.env.X",
      'tools/labels/a.ts':
        "import { PceApiError, type PceClient } from '../../pce-client/index.js'\nimport { isIP } from 'node:net'\nimport '../support/x.js'",
      'domain/x.ts': 'const f = ({ process }: { process: string }) => ({ process, console: 1 })',
      'plugins/mcp/a.ts':
        "import { Server } from '@modelcontextprotocol/sdk/server/index.js'\nimport { convert } from '../errors/convert.js'",
      'plugins/health/index.ts':
        "import fp from 'fastify-plugin'\nimport type { AnyTool } from '../../tools/define.js'",
      'test/x.test.ts': "import '../plugins/mcp/a.js'\nprocess.env.X",
      'composition/a.ts': 'const { stderr } = process',
      'scripts/x.ts': 'console.log(process.env.X)',
    }),
    [],
  )
})

t.test('the tree of this repository is clean', async (t) => {
  const sources = readTree(ROOT)
  t.ok(sources.some(({ path }) => path === 'tools/define.ts') && sources.length > 100, 'the tree was read')
  t.same(checkBoundaries(sources).map(renderViolation), [])
})

t.test('the command exits 1 and names the crossing', async (t) => {
  const tree = t.testdir({
    tools: { labels: { 'get-labels.ts': "import got from 'got'\n" } },
    node_modules: { x: { 'a.js': '' } },
  })
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'scripts/check-boundaries.ts', tree],
    { cwd: ROOT, encoding: 'utf8' },
  )
  t.equal(status, 1)
  t.match(stderr, /^tools\/labels\/get-labels\.ts:1 imports got; tools may import /m)
  t.match(stdout, /files: 1, violations of the walls: 1/)
})

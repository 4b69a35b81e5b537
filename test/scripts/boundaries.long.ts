import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ESLint } from 'eslint'
import t, { type Test } from 'tap'
import tseslint from 'typescript-eslint'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const WALLS = 'scripts/boundaries/walls.mjs'
const STDIO_WALLS = 'scripts/boundaries/stdio.mjs'

type Tree = { [name: string]: string | Tree }

/** Every violation of the walls in a tree of these files, as `rule: from → to`, sorted; `entry` is where the check starts. */
function cruise(t: Test, files: Record<string, string>, config = WALLS, entry = '.'): string[] {
  const tree: Tree = {}
  for (const [path, text] of Object.entries(files)) {
    const folders = path.split('/')
    const name = folders.pop()!
    let folder = tree
    for (const each of folders) folder = (folder[each] ??= {}) as Tree
    folder[name] = text
  }
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      `${ROOT}node_modules/dependency-cruiser/bin/dependency-cruise.mjs`,
      '--config',
      ROOT + config,
      '-T',
      'json',
      entry,
    ],
    { cwd: t.testdir(tree), encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  )
  if (stdout === '') throw new Error(stderr)
  const { summary } = JSON.parse(stdout) as {
    summary: { violations: { rule: { name: string }; from: string; to: string }[] }
  }
  return summary.violations.map(
    ({ rule, from, to }) => `${rule.name}: ${from} → ${to.replace(/^.*node_modules\/((@[^/]+\/)?[^/]+).*$/, '$1')}`,
  )
}

t.test('names each import across a wall', async (t) => {
  const found = cruise(t, {
    // Between rooms.
    'schemas/a.ts': "import '../pce-client/index.js'",
    'pce-client/index.ts': "import '../schemas/http.js'",
    'schemas/http.ts': '',
    'domain/call.ts': "import { PceError } from '../pce-client/index.js'\nexport { PceError }",
    'tools/index.ts': "import './labels/get-labels.js'\nimport './define.js'",
    'tools/define.ts': "import './labels/get-labels.js'",
    'tools/answers/show.ts': "import '../labels/get-labels.js'",
    'tools/labels/get-labels.ts': "import '../../plugins/health/check.js'\nimport '../../pce-client/kinds.js'",
    'tools/labels/create-label.ts': "import './get-labels.js'\nconst late = () => import('../define.js')",
    'pce-client/kinds.ts': '',
    'config/index.ts': "import '../tools/index.js'\nimport 'node:http'",
    'programs/app.ts': "import '../plugins/health/check.js'",
    'programs/http.ts': "export { x } from '../pce-simulator/index.js'",
    'storage/open.ts': "import '../scripts/build.js'\nimport '../test/support.js'",
    'notifications/tell.ts': "import '../storage/open.js'\nimport '../domain/text/escape.js'\nimport 'node:fs'",
    'pce-simulator/index.ts': "import '../domain/text/clean.js'\nimport '../schemas/a.js'",
    'scripts/build.ts': "import '../storage/open.js'\nimport 'esbuild'",
    'test/support.ts': "import '../plugins/health/check.js'",
    'helpers/a.ts': "import '../schemas/a.js'",
    // Floors of the domain.
    'domain/text/clean.ts': "import '../inventory/find.js'",
    'domain/inventory/find.ts': "import '../text/escape.js'\nlet x: import('../policy/judge.js').X",
    'domain/text/escape.ts': "import '../../tools/define.js'",
    'domain/policy/judge.ts': "import '../traffic/read.js'\nimport type { PceClient } from '../../pce-client/index.js'",
    'domain/traffic/read.ts': "import '../dependency-map/graph.js'\nimport 'node:fs'",
    'domain/dependency-map/graph.ts': "import '../text/escape.js'\nimport '../drafts/plan.js'",
    'domain/drafts/plan.ts': "import '../ringfence/plan.js'",
    'domain/ringfence/plan.ts': "import '../dependency-map/edges.js'\nimport '../readiness/score.js'",
    'domain/dependency-map/edges.ts': '',
    'domain/readiness/score.ts': "import '../compliance/judge.js'",
    'domain/compliance/judge.ts': "import '../ringfence/reach.js'\nimport '../readiness/tally.js'",
    'domain/ringfence/reach.ts': '',
    'domain/readiness/tally.ts': '',
    'knowledge/index.ts':
      "import '../tools/labels/get-labels.js'\nimport '../domain/text/escape.js'\nimport 'node:http'",
    // Plugins: doors, other plugins, the pure files of errors.
    'plugins/health/index.ts': "import '../mcp/index.js'\nimport './check.js'\nimport fp from 'fastify-plugin'",
    'plugins/health/check.ts': "import '../mcp/serve.js'\nimport '../errors/convert.js'\nimport '../errors/index.js'",
    'plugins/mcp/index.ts':
      "import { describe } from '../../tools/define.js'\nimport type { FastifyInstance } from 'fastify'",
    'plugins/mcp/serve.ts':
      "import '@modelcontextprotocol/sdk/types.js'\nimport type { FastifyInstance } from 'fastify'\nimport '../../knowledge/index.js'",
    'plugins/pages/setup/index.ts':
      "import '../../mcp/serve.js'\nimport '../form.js'\nimport type { FastifyInstance } from 'fastify'",
    'plugins/pages/form.ts': "import type { FastifyInstance } from 'fastify'",
    'plugins/errors/index.ts': "import type { AnyTool } from '../../tools/define.js'",
    'plugins/errors/convert.ts': "import '@modelcontextprotocol/sdk/types.js'\nimport 'node:process'",
    // Libraries.
    'pce-client/http.ts': "import got from 'got'\nimport type { FastifyInstance } from 'fastify'",
    'tools/pce/status.ts': "const load = () => import('got')\nimport 'fs'\nimport 'node:crypto'",
    'programs/composition/compose.ts': "import ajv from 'ajv'\nimport '../../storage/open.js'",
  }).filter((line) => !/^(circle|orphan|unreachable)/.test(line))
  t.same(found.sort(), [
    'config: Node: config/index.ts → http',
    'config: config/index.ts → tools/index.ts',
    'domain/call.ts: types: domain/call.ts → pce-client/index.ts',
    'domain/compliance: domain/compliance/judge.ts → domain/readiness/tally.ts',
    'domain/dependency-map: domain/dependency-map/graph.ts → domain/drafts/plan.ts',
    'domain/drafts: domain/drafts/plan.ts → domain/ringfence/plan.ts',
    'domain/inventory: domain/inventory/find.ts → domain/policy/judge.ts',
    'domain/readiness: domain/readiness/score.ts → domain/compliance/judge.ts',
    'domain/ringfence: domain/ringfence/plan.ts → domain/readiness/score.ts',
    'domain/text: domain/text/clean.ts → domain/inventory/find.ts',
    'domain/text: domain/text/escape.ts → tools/define.ts',
    'domain/traffic: Node: domain/traffic/read.ts → fs',
    'domain/traffic: domain/traffic/read.ts → domain/dependency-map/graph.ts',
    'globals by module: plugins/errors/convert.ts → process',
    'knowledge: Node: knowledge/index.ts → http',
    'knowledge: knowledge/index.ts → tools/labels/get-labels.ts',
    'library @modelcontextprotocol/sdk: plugins/errors/convert.ts → @modelcontextprotocol/sdk',
    'library fastify: pce-client/http.ts → fastify',
    'library fastify: plugins/mcp/serve.ts → fastify',
    'library fastify: plugins/pages/form.ts → fastify',
    'library got: tools/pce/status.ts → got',
    'library without a room: programs/composition/compose.ts → ajv',
    'no room: helpers/a.ts → schemas/a.ts',
    'notifications: Node: notifications/tell.ts → fs',
    'notifications: notifications/tell.ts → domain/text/escape.ts',
    'notifications: notifications/tell.ts → storage/open.ts',
    'pce-client: pce-client/index.ts → schemas/http.ts',
    'pce-simulator: pce-simulator/index.ts → domain/text/clean.ts',
    'plugins/<plugin>/<part>/index.ts: plugins/pages/setup/index.ts → plugins/mcp/serve.ts',
    'plugins/<plugin>/index.ts: plugins/health/index.ts → plugins/mcp/index.ts',
    'plugins/<plugin>/index.ts: types: plugins/mcp/index.ts → tools/define.ts',
    'plugins/<plugin>: plugins/health/check.ts → plugins/errors/index.ts',
    'plugins/<plugin>: plugins/health/check.ts → plugins/mcp/serve.ts',
    'plugins/<plugin>: types: plugins/mcp/serve.ts → knowledge/index.ts',
    'programs/app.ts: programs/app.ts → plugins/health/check.ts',
    'programs/http.ts: programs/http.ts → pce-simulator/index.ts',
    'schemas: schemas/a.ts → pce-client/index.ts',
    'storage: storage/open.ts → scripts/build.ts',
    'storage: storage/open.ts → test/support.ts',
    'tools/<area>/<tool>.ts: Node: tools/pce/status.ts → crypto',
    'tools/<area>/<tool>.ts: Node: tools/pce/status.ts → fs',
    'tools/<area>/<tool>.ts: tools/labels/create-label.ts → tools/labels/get-labels.ts',
    'tools/<area>/<tool>.ts: tools/labels/get-labels.ts → pce-client/kinds.ts',
    'tools/<area>/<tool>.ts: tools/labels/get-labels.ts → plugins/health/check.ts',
    'tools/answers: tools/answers/show.ts → tools/labels/get-labels.ts',
    'tools/define.ts and listed-tool.ts: tools/define.ts → tools/labels/get-labels.ts',
  ])
})

t.test('names cycles, orphans and files no program reaches', async (t) => {
  t.same(
    cruise(t, {
      'programs/stdio.ts': "import '../domain/text/a.js'",
      'domain/text/a.ts': "import { b } from './b.js'\nexport interface A { b: typeof b }",
      'domain/text/b.ts': "import type { A } from './a.js'\nexport let b: A",
      'domain/text/alone.ts': 'export const alone = 1',
      'domain/inventory/old.ts': "import '../text/a.js'",
    }).sort(),
    [
      'circle: domain/text/a.ts → domain/text/b.ts',
      'orphan: domain/text/alone.ts → domain/text/alone.ts',
      'programs/stdio.ts: programs/stdio.ts → domain/text/a.ts',
      'unreachable: domain/inventory/old.ts → domain/inventory/old.ts',
      'unreachable: domain/text/alone.ts → domain/text/alone.ts',
    ],
  )
})

t.test('nothing stdio.ts loads leads to Fastify, except types', async (t) => {
  const files = {
    'programs/stdio.ts': "import '../plugins/mcp/a.js'\nimport type { FastifyInstance } from 'fastify'",
    'plugins/mcp/a.ts': "export * from './b.js'\nimport type { C } from './c.js'",
    'plugins/mcp/b.ts': "const late = () => import('libsql')",
    'plugins/mcp/c.ts': "import fp from 'fastify-plugin'\nexport type C = typeof fp",
  }
  t.same(cruise(t, files, STDIO_WALLS, 'programs/stdio.ts'), ['stdio loads: programs/stdio.ts → libsql'])
})

/** What our own rules in eslint.config.js, which all have a name, say of a text, as `line: rule`. */
async function lint(path: string, text: string): Promise<string[]> {
  const { default: config } = (await import(`${ROOT}eslint.config.js`)) as { default: { name?: string }[] }
  const ours = config.filter(({ name }) => name !== undefined && /^(walls|tests)\//.test(name))
  const eslint = new ESLint({
    cwd: ROOT,
    overrideConfigFile: true,
    overrideConfig: [{ files: ['**/*.ts'], languageOptions: { parser: tseslint.parser } }, ...ours] as never,
  })
  const [result] = await eslint.lintText(text, { filePath: ROOT + path })
  return (result?.messages ?? []).map(({ line, ruleId, message }) => `${line}: ${ruleId ?? message}`)
}

/** Which of these lines pass at a path. */
async function passing(path: string, lines: readonly string[]): Promise<string[]> {
  const said = await Promise.all(lines.map((line) => lint(path, `${line}\n`)))
  return lines.filter((_, at) => said[at]!.length === 0)
}

t.test('only config/index.ts may read the environment, in any way', async (t) => {
  const ways = [
    'const x = process.env.X',
    "const x = process['env']",
    'const { env } = process',
    'const { argv, ...rest } = process',
    'read(process)',
    'const held = process',
    'let held; held = process',
    'const held = { process }',
    'global.process.env',
    'globalThis.process.env',
  ]
  for (const path of [
    'domain/text/a.ts',
    'plugins/mcp/a.ts',
    'storage/a.ts',
    'programs/process/a.ts',
    'programs/http.ts',
    'programs/stdio.ts',
  ])
    t.same(await passing(path, ways), [], path)
  t.same(
    await passing('config/index.ts', ways),
    ways.filter((way) => !way.startsWith('global.')),
  )
})

t.test('only the programs may write to standard output', async (t) => {
  const ways = [
    'console.log(1)',
    'globalThis.console.info(1)',
    'process.stdout.write("x")',
    'const { stdout } = process',
  ]
  t.same(await passing('plugins/mcp/a.ts', ways), [])
  t.same(await passing('programs/process/a.ts', ways), [])
  t.same(await passing('programs/stdio.ts', ways), ['process.stdout.write("x")', 'const { stdout } = process'])
  t.same(await passing('scripts/a.ts', ways), ways)
})

t.test(
  'rooms that may use the process may use only named properties; elsewhere a variable may have that name',
  async (t) => {
    const lines = ['const { pid } = process', 'process.exitCode = 1', "process.on('exit', flush)"]
    t.same(await passing('storage/a.ts', lines), lines)
    t.same(await passing('tools/labels/a.ts', lines), [])
    t.same(
      await lint('domain/text/a.ts', 'const f = ({ process }: { process: string }) => ({ process, console: 1 })'),
      [],
    )
  },
)

t.test('a tool may import only types and errors from pce-client', async (t) => {
  const door = "from '../../pce-client/index.js'"
  const types = [
    `import { PceApiError, type PceClient } ${door}`,
    `import type { PceClient } ${door}`,
    `import type * as pce ${door}`,
    `export type { PceClient } ${door}`,
  ]
  const values = [
    `import { createPceClient } ${door}`,
    `import { PceError, createPceClient as create } ${door}`,
    `import * as pce ${door}`,
    `import pce ${door}`,
    `export * ${door}`,
    `export { createPceClient } ${door}`,
    "const pce = import('../../pce-client/index.js')",
  ]
  t.same(await passing('tools/labels/a.ts', [...types, ...values]), types)
  t.same(await passing('domain/drafts/a.ts', [...types, ...values]), types)
  t.same(await passing('programs/composition/a.ts', values), values)
})

t.test('refuses imports that the walls cannot see', async (t) => {
  const lines = ["const load = () => import('got')", 'const load = (name) => import(name)']
  t.same(await passing('pce-client/a.ts', lines), lines.slice(0, 1))
})

t.test('tests compare exactly; t.match is for text with a regular expression', async (t) => {
  const exact = ['t.match(text, /^a$/)', 't.match(text, new RegExp(`^${a}$`), "why")', 'text.match(pattern)']
  const loose = [
    "t.match(text, 'a')",
    't.match(list, [1])',
    't.match(found, { a: 1 })',
    't.match(found, wanted, "why")',
  ]
  t.same(await passing('test/a.test.ts', [...exact, ...loose]), exact)
})

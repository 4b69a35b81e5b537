/**
 * The walls of the house as data. A file lives in the first room whose `files` match it, and may import what its row names and
 * nothing else. In globs `*` is one path segment, `**` any number of them, and `{plugin}` one segment that is put into the row's
 * other globs. A package name covers its subpaths.
 */
export interface Room {
  name: string
  files: readonly string[]
  mayImport: readonly string[]
  /** Files of which types and these values may be imported, and nothing more. */
  mayTake?: Readonly<Record<string, readonly string[]>>
  packages: readonly string[]
  /** Part of what is shipped: never reads process.env (but for the room that exists to). */
  production: boolean
  why: string
}

/** The only file that may read the environment. */
export const ENVIRONMENT_READER = 'config.ts'

/** This program alone hands out its standard output, to JSON-RPC; nothing it loads may write there. Starting fast is one of its features. */
export const STDIO_ENTRY = 'stdio.ts'
export const STDIO_NEVER_LOADS = [
  'fastify',
  'fastify-plugin',
  '@fastify/helmet',
  '@fastify/formbody',
  'libsql',
  'fast-jwt',
  'openid-client',
] as const

const PURE_LIBRARIES = [
  '@sinclair/typebox',
  'fastest-levenshtein',
  'ipaddr.js',
  'longest-prefix-match',
  'semver',
  'node:crypto',
  'node:net',
]
/** A tool is handed its client; it never makes one. */
const PCE_CLIENT_ERRORS = { 'pce-client/index.ts': ['PceError', 'PceApiError', 'PceIntegerError'] }

/** The outside libraries of the concerns that have any. `door` is what index.ts alone may import beside Fastify. */
const PLUGIN_LIBRARIES: Record<string, { door?: readonly string[]; inside?: readonly string[] }> = {
  auth: { inside: ['fast-jwt', 'get-jwks'] },
  context: { inside: ['ipaddr.js', 'lru-cache'] },
  confirm: { inside: ['@sinclair/typebox', 'canonicalize', 'fast-jwt'] },
  dispatcher: { inside: ['@sinclair/typebox', 'fastest-levenshtein'] },
  mcp: { inside: ['@modelcontextprotocol/sdk'] },
  setup: {
    door: ['@fastify/csrf-protection', '@fastify/formbody', '@fastify/secure-session'],
    inside: ['ghtml', 'openid-client'],
  },
  'request-id': { door: ['node:crypto'] },
  'rate-limits': { door: ['@fastify/rate-limit'] },
  'security-headers': { door: ['@fastify/helmet'] },
}

/** The rooms whose pure parts the compositions put together and hand to each other through ports. */
const COMPOSED = ['dispatcher', 'context', 'confirm', 'setup']

/** The two rows of one plugin, or of every plugin that brings no library of its own (`{plugin}`). */
function pluginRooms(plugin: string): Room[] {
  const { door = [], inside = [] } = PLUGIN_LIBRARIES[plugin] ?? {}
  return [
    {
      name: `plugins/${plugin}/index.ts`,
      files: [`plugins/${plugin}/index.ts`],
      mayImport: [`plugins/${plugin}/**`, 'schemas/**'],
      mayTake: { 'tools/define.ts': [], 'pce-client/index.ts': [] },
      packages: ['fastify', 'fastify-plugin', 'node:http', ...door],
      production: true,
      why: 'A door hooks its own room up to Fastify and talks to other plugins by decorator and `dependencies`.',
    },
    {
      name: `plugins/${plugin}`,
      files: [`plugins/${plugin}/**`],
      mayImport: [
        `plugins/${plugin}/**`,
        'schemas/**',
        'domain/call.ts',
        'domain/text/escape-text.ts',
        'tools/define.ts',
        'tools/index.ts',
        'pce-client/index.ts',
        'plugins/errors/convert.ts',
        'plugins/errors/render-*.ts',
        'plugins/errors/table.ts',
      ],
      packages: ['node:*', ...inside],
      production: true,
      why: 'The logic of one concern takes plain arguments and is tested without Fastify or another concern.',
    },
  ]
}

export const ROOMS: readonly Room[] = [
  {
    name: 'schemas',
    files: ['schemas/**'],
    mayImport: ['schemas/**'],
    packages: ['@sinclair/typebox'],
    production: true,
    why: 'The words everyone uses depend on nobody.',
  },
  {
    name: 'pce-client',
    files: ['pce-client/**'],
    mayImport: ['pce-client/**', 'schemas/pce/**', 'schemas/common.ts'],
    packages: ['got', 'hpagent', 'node:*'],
    production: true,
    why: 'It could be published alone: it knows neither MCP nor Fastify nor the tools nor the environment.',
  },
  {
    name: 'tools/index.ts',
    files: ['tools/index.ts'],
    mayImport: ['tools/define.ts', 'tools/*/*.ts'],
    packages: [],
    production: true,
    why: 'The list of tools and nothing else.',
  },
  {
    name: 'tools/define.ts',
    files: ['tools/define.ts'],
    mayImport: ['domain/call.ts', 'schemas/**'],
    packages: ['@sinclair/typebox'],
    production: true,
    why: 'What a tool is depends on no tool.',
  },
  {
    name: 'domain/traffic/providers/read-ranges.ts',
    files: ['domain/traffic/providers/read-ranges.ts'],
    mayImport: [],
    packages: ['node:fs', 'node:path', 'node:url'],
    production: true,
    why: 'Data that ships with the code is read as a file, not compiled into it; no caller has a say in which.',
  },
  {
    name: 'domain',
    files: ['domain/**', 'tools/answers/**'],
    mayImport: ['domain/**', 'tools/answers/**', 'tools/define.ts', 'schemas/**'],
    mayTake: PCE_CLIENT_ERRORS,
    packages: PURE_LIBRARIES,
    production: true,
    why: 'What a segmentation engineer knows touches the outside only through ports.',
  },
  {
    name: 'tools',
    files: ['tools/*/*.ts'],
    mayImport: ['domain/**', 'tools/answers/**', 'tools/define.ts', 'schemas/**'],
    mayTake: PCE_CLIENT_ERRORS,
    packages: PURE_LIBRARIES,
    production: true,
    why: 'One tool a file: it touches the outside only through its context, so it runs the same over stdio, HTTP and in a test.',
  },
  ...Object.keys(PLUGIN_LIBRARIES).flatMap(pluginRooms),
  ...pluginRooms('{plugin}'),
  {
    name: 'config.ts',
    files: [ENVIRONMENT_READER],
    mayImport: ['config/**', 'schemas/config.ts', 'schemas/errors.ts'],
    packages: ['node:fs', 'node:util'],
    production: true,
    why: 'The only reader of the environment turns it into a Config and does nothing else.',
  },
  {
    name: 'config',
    files: ['config/**'],
    mayImport: ['config/**', 'schemas/config.ts', 'schemas/errors.ts', 'schemas/caller.ts'],
    packages: ['node:net'],
    production: true,
    why: 'Reading one group of variables is pure: the environment comes in as an argument.',
  },
  {
    name: 'composition',
    files: ['composition/**'],
    mayImport: [
      'composition/**',
      'pce-client/index.ts',
      ...COMPOSED.map((plugin) => `plugins/${plugin}/**`),
      'process/**',
      'storage/**',
      'tools/define.ts',
      'schemas/**',
    ],
    packages: ['node:*'],
    production: true,
    why: 'Puts the pure parts of the rooms together, for both programs; it knows no transport, and neither Fastify nor the MCP SDK.',
  },
  {
    name: 'storage',
    files: ['storage/**'],
    mayImport: ['storage/**', 'schemas/**'],
    packages: ['libsql', 'node:*'],
    production: true,
    why: 'What outlives a process; nobody else touches its file.',
  },
  {
    name: 'process',
    files: ['process/**'],
    mayImport: ['process/**', 'plugins/dispatcher/**', 'schemas/**'],
    packages: ['pino', 'node:*'],
    production: true,
    why: 'What concerns the process itself: its output, its signals, its sockets, its package.',
  },
  {
    name: 'app.ts',
    files: ['app.ts'],
    mayImport: ['plugins/*/index.ts', 'composition/**', 'tools/define.ts', 'schemas/**'],
    packages: ['fastify', 'node:*'],
    production: true,
    why: 'Composition only: the pipeline in registration order, through doors.',
  },
  {
    name: 'http.ts',
    files: ['http.ts'],
    mayImport: ['app.ts', 'config.ts', 'composition/**', 'process/**', 'tools/index.ts', 'schemas/**'],
    packages: ['close-with-grace', 'commander', 'fastify', 'node:*'],
    production: true,
    why: 'A program: options, configuration, listen, drain.',
  },
  {
    name: 'stdio.ts',
    files: [STDIO_ENTRY],
    mayImport: [
      'config.ts',
      'composition/**',
      'process/**',
      'tools/index.ts',
      'schemas/**',
      'plugins/dispatcher/**',
      'plugins/mcp/**',
    ],
    packages: ['close-with-grace', 'node:*'],
    production: true,
    why: 'A program: the dispatcher and the MCP server on standard input and output, without Fastify.',
  },
  {
    name: 'pce-simulator',
    files: ['pce-simulator/**'],
    mayImport: ['pce-simulator/**', 'schemas/**'],
    packages: ['@sinclair/typebox', 'fastify', 'ipaddr.js', 'node:*'],
    production: false,
    why: 'A PCE that people run; nothing that is shipped with the server depends on it.',
  },
  {
    name: 'scripts',
    files: ['scripts/**'],
    mayImport: ['**'],
    packages: ['*'],
    production: false,
    why: 'Scripts build, check, measure and show; nothing shipped depends on them.',
  },
  {
    name: 'test',
    files: ['test/**'],
    mayImport: ['**'],
    packages: ['*'],
    production: false,
    why: 'Tests may reach anything; nothing shipped depends on them.',
  },
  {
    name: 'eslint.config.js',
    files: ['eslint.config.js'],
    mayImport: [],
    packages: ['@eslint/js', 'typescript-eslint'],
    production: false,
    why: 'Configuration of the linter.',
  },
]

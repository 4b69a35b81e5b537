/**
 * The rules about imports between the rooms, called walls (docs/architecture.md). `npm run check -- boundaries` checks
 * them. They concern the order of the rooms, `schemas ← pce-client ← domain ← tools ← pictures | knowledge ← plugins ←
 * programs`; the order of the parts (floors) of `programs/` (`process ← composition ← app ← http`) and of `domain/`;
 * the use of libraries; and import circles. Imports of types count too. Paths are regular expressions; `$1` stands for
 * the match of the first group of `from`.
 */
import { fileURLToPath } from 'node:url'

/** The entry file of the client. Only its types and errors may be imported. eslint.config.js lists their names. */
const CLIENT_TYPES = '^pce-client/index\\.ts$'
const CALL = '^domain/call\\.ts$'
/** What a tool is, and how it is known before its code is loaded. */
const TOOL = '^tools/(define|listed-tool)\\.ts$'
const CATALOGUE = '^tools/catalogue/index\\.ts$'
/** What a build puts in place of the catalogue imports (scripts/bundle-catalogue.mjs). */
const OF_BUILD = '^tools/catalogue/read-catalogue\\.ts$'
const SCHEMAS = '^schemas/'
const KNOWLEDGE = '^knowledge/index\\.ts$'
/**
 * The file that reads the scripts for browsers. It needs Node.js, whereas all other files of its room also run in
 * browsers.
 */
const PICTURE_SCRIPTS = '^pictures/read-script\\.ts$'
/** The file that reads data shipped with the code. Its callers cannot choose which file it reads. */
const DATA_READER = '^domain/traffic/providers/read-ranges\\.ts$'

/**
 * The floors of domain/ that each floor may import, in addition to itself, the ports of a call, schemas/ and the
 * client's types.
 */
const FLOORS = {
  text: [],
  inventory: ['text'],
  traffic: ['text', 'inventory'],
  policy: ['text', 'inventory', 'traffic'],
  scopes: ['text', 'inventory'],
  guardrails: ['text', 'inventory', 'traffic', 'policy', 'scopes'],
  explain: ['text', 'inventory', 'traffic', 'policy'],
  drafts: ['text', 'inventory', 'traffic', 'policy'],
  history: ['text', 'inventory', 'traffic', 'policy', 'drafts'],
  'policy-files': ['text', 'inventory', 'traffic', 'policy', 'drafts', 'history'],
  'dependency-map': ['text', 'inventory', 'traffic'],
  'rule-search': ['text', 'inventory', 'traffic', 'policy', 'drafts'],
  ringfence: ['text', 'inventory', 'traffic', 'policy', 'drafts', 'dependency-map'],
  hygiene: ['text', 'inventory', 'traffic', 'policy', 'drafts'],
  vens: ['text', 'inventory'],
  readiness: ['text', 'inventory', 'traffic', 'policy', 'drafts', 'ringfence'],
  enforcement: ['text', 'inventory', 'traffic', 'policy', 'drafts', 'ringfence', 'readiness'],
  compliance: ['text', 'inventory', 'traffic', 'policy', 'drafts', 'ringfence'],
  'ven-actions': [
    'text',
    'inventory',
    'traffic',
    'policy',
    'drafts',
    'hygiene',
    'vens',
    'ringfence',
    'readiness',
    'enforcement',
  ],
}

/**
 * The rooms of the shipped code. `files`: the files of the room. `not`: files that match `files` but belong to another
 * room. `may`: the project's own files that the room may import, and no others. `types`: files from which it may import
 * types. `node`: the modules of Node.js that it may import; all of them if absent.
 */
const ROOMS = [
  {
    name: 'schemas',
    files: SCHEMAS,
    may: [SCHEMAS],
    node: [],
    why: 'The words everyone uses depend on nobody.',
  },
  {
    name: 'pce-client',
    files: '^pce-client/',
    may: ['^pce-client/', '^schemas/pce/', '^schemas/common\\.ts$'],
    why: 'It could be published alone: it knows neither MCP nor Fastify nor the tools nor the environment.',
  },
  {
    name: 'domain/call.ts',
    files: CALL,
    may: [SCHEMAS],
    types: [CLIENT_TYPES],
    node: [],
    why: 'The ports of a call are types.',
  },
  ...Object.entries(FLOORS).map(([floor, below]) => ({
    name: `domain/${floor}`,
    files: `^domain/${floor}/`,
    not: DATA_READER,
    may: [`^domain/(${[floor, ...below].join('|')})/`, CALL, CLIENT_TYPES, SCHEMAS],
    node: ['crypto', 'net'],
    why: 'A floor of the domain stands on those below it, and touches the outside through ports alone.',
  })),
  {
    name: 'domain/traffic/providers/read-ranges.ts',
    files: DATA_READER,
    may: [],
    node: ['fs', 'path', 'url'],
    why: 'Data that ships with the code is read as a file, not compiled into it.',
  },
  {
    name: 'tools/define.ts and listed-tool.ts',
    files: TOOL,
    may: [TOOL, CALL, SCHEMAS],
    node: [],
    why: 'What a tool is depends on no tool.',
  },
  {
    name: 'tools/index.ts',
    files: '^tools/index\\.ts$',
    may: [TOOL, '^tools/(?!answers/|catalogue/)[^/]+/[^/]+\\.ts$', '^tools/answers/approval/complete-tool\\.ts$'],
    node: [],
    why: 'The list of tools, and the preview and plan of those that have none of their own.',
  },
  {
    name: 'tools/catalogue',
    files: '^tools/catalogue/',
    may: ['^tools/catalogue/', '^tools/index\\.ts$', TOOL],
    node: [],
    why: 'What is known of the tools before one is called; a build makes it data.',
  },
  {
    name: 'tools/answers/approval/complete-tool.ts',
    files: '^tools/answers/approval/complete-tool\\.ts$',
    may: ['^tools/answers/approval/', TOOL],
    node: [],
    why: 'What every tool has and its file need not say, for the list of tools and for the parts of a build.',
  },
  {
    name: 'tools/answers',
    files: '^tools/answers/',
    not: '^tools/answers/approval/complete-tool\\.ts$',
    may: ['^tools/answers/', '^domain/', CLIENT_TYPES, SCHEMAS],
    node: [],
    why: 'How values are shown, within a byte budget; it knows no tool.',
  },
  {
    name: 'tools/<area>/<tool>.ts',
    files: '^tools/(?!answers/|catalogue/)[^/]+/',
    may: [TOOL, '^tools/answers/', '^domain/', CLIENT_TYPES, SCHEMAS],
    node: [],
    why: 'One tool a file, and no tool knows another: it touches the outside through its context alone, so it runs the same over stdio, HTTP and in a test.',
  },
  {
    name: 'knowledge',
    files: '^knowledge/',
    may: ['^knowledge/', '^domain/(text/|inventory/labels\\.ts$)', TOOL, CALL, SCHEMAS],
    node: ['fs', 'fs/promises', 'path', 'url'],
    why: 'What an engineer would tell an assistant: texts that name tools, and know neither how they are called nor over what.',
  },
  {
    name: 'pictures',
    files: '^pictures/',
    not: PICTURE_SCRIPTS,
    may: ['^pictures/(?!read-script\\.ts$)', SCHEMAS],
    types: ['^tools/'],
    node: [],
    why: 'Draws what tools answer, in the server, in the shell and in browsers; it analyses nothing and reaches nothing.',
  },
  {
    name: 'pictures/read-script.ts',
    files: PICTURE_SCRIPTS,
    may: [],
    node: ['fs/promises', 'path', 'url'],
    why: 'What browsers run ships as files beside the code.',
  },
  {
    name: 'plugins/<plugin>/index.ts',
    files: '^plugins/([^/]+)/index\\.ts$',
    may: ['^plugins/$1/', SCHEMAS],
    types: [TOOL, KNOWLEDGE],
    node: ['crypto', 'http', 'net'],
    why: 'A door hooks its own room up to Fastify and talks to other plugins by decorator and `dependencies`.',
  },
  {
    name: 'plugins/<plugin>/<part>/index.ts',
    files: '^plugins/([^/]+)/[^/]+/index\\.ts$',
    may: ['^plugins/$1/', SCHEMAS],
    types: [TOOL],
    node: [],
    why: 'The door of a part hooks it up to Fastify for the door of the room.',
  },
  {
    name: 'plugins/<plugin>',
    files: '^plugins/([^/]+)/(?!index\\.ts$)',
    not: '^plugins/[^/]+/[^/]+/index\\.ts$',
    may: [
      '^plugins/$1/',
      '^plugins/errors/(convert|table|render-[^/]+)\\.ts$',
      '^domain/text/(escape-text|compare-texts|leave-out-named)\\.ts$',
      CALL,
      TOOL,
      '^pictures/(?!browser/)',
      '^pce-client/index\\.ts$',
      SCHEMAS,
    ],
    types: [KNOWLEDGE],
    why: 'The logic of one concern takes plain arguments and is tested without Fastify or another concern.',
  },
  {
    name: 'storage',
    files: '^storage/',
    may: ['^storage/', SCHEMAS],
    why: 'What outlives a process; nobody else touches its file.',
  },
  {
    name: 'notifications',
    files: '^notifications/',
    may: ['^notifications/', '^domain/text/escape-text\\.ts$', SCHEMAS],
    node: ['crypto', 'https', 'net', 'tls'],
    why: 'What is told to people outside; it knows neither who decides nor how.',
  },
  {
    name: 'programs/process',
    files: '^programs/process/',
    may: ['^programs/process/', '^plugins/dispatcher/', '^domain/text/escape-text\\.ts$', SCHEMAS],
    why: 'What concerns the process itself: its output, its signals, its sockets, its package.',
  },
  {
    name: 'programs/composition',
    files: '^programs/composition/',
    may: [
      '^programs/composition/',
      '^plugins/(dispatcher|context|confirm|offer)/',
      '^programs/process/',
      '^domain/(scopes|guardrails)/',
      '^domain/text/escape-text\\.ts$',
      '^notifications/',
      '^storage/',
      TOOL,
      SCHEMAS,
    ],
    types: ['^pce-client/index\\.ts$'],
    why: 'Puts the pure parts of the rooms together at the start, for both programs; it knows neither Fastify nor the MCP SDK.',
  },
  {
    name: 'programs/app.ts',
    files: '^programs/app\\.ts$',
    may: ['^plugins/[^/]+/index\\.ts$', '^programs/composition/', KNOWLEDGE, TOOL, SCHEMAS],
    types: ['^pce-client/index\\.ts$'],
    why: 'The pipeline in registration order, through doors.',
  },
  {
    name: 'config',
    files: '^config/',
    may: ['^config/', '^schemas/(config|errors|caller|guardrails)\\.ts$'],
    node: ['fs', 'util', 'net'],
    why: 'The only reader of the environment turns it into a Config and does nothing else.',
  },
  {
    name: 'programs/http.ts',
    files: '^programs/http\\.ts$',
    may: [
      '^programs/app\\.ts$',
      '^config/index\\.ts$',
      '^programs/composition/',
      '^programs/process/',
      CATALOGUE,
      SCHEMAS,
    ],
    why: 'A program: options, configuration, listen, drain.',
  },
  {
    name: 'programs/draw.ts',
    files: '^programs/draw\\.ts$',
    may: [
      '^config/index\\.ts$',
      '^programs/composition/',
      '^programs/process/',
      '^plugins/dispatcher/',
      '^pictures/(?!browser/)',
      CATALOGUE,
      SCHEMAS,
    ],
    why: 'A command of the stdio program: a tool call, and its answer as a file.',
  },
  {
    name: 'programs/policy.ts',
    files: '^programs/policy\\.ts$',
    may: [
      '^config/index\\.ts$',
      '^programs/commands/policy-files/',
      '^programs/composition/',
      '^programs/process/',
      '^plugins/dispatcher/',
      '^domain/(policy-files|text)/',
      CALL,
      TOOL,
      SCHEMAS,
    ],
    why: 'A command of the stdio program: the policy as files, each question to the PCE a tool call.',
  },
  {
    name: 'programs/worker.ts',
    files: '^programs/worker\\.ts$',
    may: ['^plugins/dispatcher/', CATALOGUE],
    why: 'What a worker thread loads: the tools and what runs them.',
  },
  {
    name: 'programs/commands',
    files: '^programs/commands/',
    may: [
      '^programs/commands/',
      '^plugins/context/connect-pce\\.ts$',
      '^domain/policy-files/',
      '^domain/text/(escape-text|describe-numbers)\\.ts$',
      '^pce-client/index\\.ts$',
      '^programs/process/choose-port\\.ts$',
      SCHEMAS,
    ],
    why: 'What the stdio program does for a person at a terminal instead of serving; loaded when it is asked for.',
  },
  {
    name: 'programs/stdio.ts',
    files: '^programs/stdio\\.ts$',
    may: [
      '^programs/commands/',
      '^programs/(draw|policy)\\.ts$',
      '^config/index\\.ts$',
      '^programs/composition/',
      '^programs/process/',
      '^plugins/(dispatcher|mcp)/',
      '^plugins/tracing/open-tracing\\.ts$',
      CATALOGUE,
      KNOWLEDGE,
      SCHEMAS,
    ],
    why: 'A program: the dispatcher and the MCP server on standard input and output, without Fastify.',
  },
]

/**
 * The rooms that are not part of the server, but contain programs for its development. No rule above names them, so no
 * room above may import them.
 */
const WORKSHOPS = '^(scripts|test|deploy)/|^eslint\\.config\\.js$'
const SIMULATOR = '^pce-simulator/'

/**
 * The rooms that may import each library, in addition to the rooms for development. A library that is not listed is not
 * used in shipped code.
 */
const DOORS = '^plugins/[^/]+/index\\.ts$'
const PART_DOORS = '^plugins/[^/]+/[^/]+/index\\.ts$'
const LIBRARIES = {
  '@fastify/csrf-protection': ['^plugins/pages/index\\.ts$'],
  '@fastify/formbody': ['^plugins/pages/index\\.ts$'],
  '@fastify/helmet': ['^plugins/security-headers/index\\.ts$'],
  '@fastify/rate-limit': ['^plugins/rate-limits/index\\.ts$'],
  '@fastify/secure-session': ['^plugins/pages/index\\.ts$'],
  '@modelcontextprotocol/sdk': ['^plugins/mcp/(?!index\\.ts$)', '^programs/commands/demo/'],
  '@streamparser/json': ['^pce-client/'],
  '@sinclair/typebox': [
    SCHEMAS,
    '^domain/',
    '^tools/(?!index\\.ts$)',
    '^plugins/(confirm|dispatcher)/(?!index\\.ts$)',
    SIMULATOR,
  ],
  canonicalize: ['^plugins/confirm/(?!index\\.ts$)'],
  'close-with-grace': ['^programs/(http|stdio)\\.ts$'],
  commander: ['^programs/(draw|http|policy|commands/demo)\\.ts$', '^pce-simulator/pce-sim\\.ts$'],
  'csv-parse': ['^domain/'],
  'd3-force': ['^pictures/layout/'],
  'fast-jwt': ['^plugins/auth/(?!index\\.ts$)', '^plugins/confirm/token-seal\\.ts$'],
  'fastest-levenshtein': ['^config/', '^domain/', '^plugins/dispatcher/(?!index\\.ts$)'],
  fastify: [DOORS, PART_DOORS, '^programs/app\\.ts$', '^programs/http\\.ts$', SIMULATOR],
  'fastify-plugin': [DOORS],
  'find-my-way': [SIMULATOR],
  'get-jwks': ['^plugins/auth/(?!index\\.ts$)'],
  ghtml: ['^plugins/pages/(?!index\\.ts$)'],
  got: ['^pce-client/'],
  hpagent: ['^pce-client/'],
  'ipaddr.js': ['^domain/', '^plugins/(context|client-address)/(?!index\\.ts$)', SIMULATOR],
  libsql: ['^storage/'],
  'longest-prefix-match': ['^domain/'],
  'lru-cache': [
    '^plugins/(confirm|context|pages)/(?!index\\.ts$)',
    '^storage/postgres/',
    '^pce-simulator/estate/generate\\.ts$',
  ],
  'openid-client': ['^plugins/pages/(?!index\\.ts$)'],
  pg: ['^storage/postgres/'],
  '@opentelemetry': ['^plugins/tracing/(?!index\\.ts$)'],
  pino: ['^programs/process/'],
  piscina: ['^plugins/dispatcher/heavy/'],
  'prom-client': ['^plugins/metrics/(?!index\\.ts$)'],
  semver: ['^tools/'],
  yaml: ['^programs/commands/policy-files/'],
}

const PROGRAMS = '^(programs/(stdio|http|worker)\\.ts|pce-client/index\\.ts|pictures/browser/(app|page)\\.ts)$'
const DECLARATIONS = '\\.d\\.ts$'

const OURS = '^(?!\\.\\./)(?!node_modules/)'
const packagePath = (name) => `(^|/node_modules/|^node_modules/)${name.replaceAll('.', '\\.')}(/|$)`
const EVERY_ROOM = [...ROOMS.map(({ files }) => files), SIMULATOR, WORKSHOPS]
const NOT_LOCAL = ['core', 'npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-no-pkg', 'npm-unknown', 'unknown']

/** Creates the rules of a room: one for imports of the project's own files, and one for modules of Node.js. */
function roomRules({ name, files, not, may, types = [], node, why }) {
  const from = { path: files, ...(not !== undefined && { pathNot: not }) }
  return [
    {
      name,
      comment: why,
      severity: 'error',
      from,
      to: { path: OURS, pathNot: [...may, ...types], dependencyTypesNot: NOT_LOCAL },
    },
    ...(types.length === 0
      ? []
      : [
          {
            name: `${name}: types`,
            comment: `Of ${types.join(', ')} it may import types. ${why}`,
            severity: 'error',
            from,
            to: { path: types, pathNot: may, dependencyTypesNot: ['type-only'] },
          },
        ]),
    ...(node === undefined
      ? []
      : [
          {
            name: `${name}: Node`,
            comment: `Of Node it may import ${node.join(', ') || 'nothing'}. ${why}`,
            severity: 'error',
            from,
            to: { dependencyTypes: ['core'], ...(node.length > 0 && { pathNot: `^(node:)?(${node.join('|')})$` }) },
          },
        ]),
  ]
}

const libraryRule = ([name, rooms]) => ({
  name: `library ${name}`,
  comment: 'Each library is used in the one room it belongs to.',
  severity: 'error',
  from: { path: OURS, pathNot: [...rooms, WORKSHOPS] },
  to: { path: packagePath(name) },
})

export default {
  forbidden: [
    ...ROOMS.flatMap(roomRules),
    ...roomRules({
      name: 'pce-simulator',
      files: SIMULATOR,
      may: [SIMULATOR, SCHEMAS],
      why: 'A PCE that people run: it shares words with the server, and nothing else in either direction.',
    }),
    ...Object.entries(LIBRARIES).map(libraryRule),
    {
      name: 'library without a room',
      comment: 'LIBRARIES in scripts/boundaries/walls.mjs says who may import which library.',
      severity: 'error',
      from: { path: OURS, pathNot: WORKSHOPS },
      to: {
        pathNot: Object.keys(LIBRARIES).map(packagePath),
        dependencyTypes: NOT_LOCAL.filter((type) => type !== 'core'),
      },
    },
    {
      name: 'globals by module',
      comment: 'ESLint watches `process` and `console`; a module must not be the way around it.',
      severity: 'error',
      from: { path: ROOMS.map(({ files }) => files) },
      to: { dependencyTypes: ['core'], path: '^(node:)?(process|console)$' },
    },
    {
      name: 'no room',
      comment: 'Every file lives in a room that scripts/boundaries/walls.mjs names.',
      severity: 'error',
      from: { path: OURS, pathNot: EVERY_ROOM },
      to: {},
    },
    {
      name: 'circle',
      comment:
        'What imports itself in the end, types included, can only be understood together: one file, or a third one below both.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'orphan',
      comment: 'It imports nothing and nobody imports it.',
      severity: 'error',
      from: {
        orphan: true,
        pathNot: ['^test/.*\\.(test|long|edge|browser)\\.ts$', '^scripts/', '^test/clients/programs/', DECLARATIONS],
      },
      to: {},
    },
    {
      name: 'unreachable',
      comment: 'No program of what is shipped leads there.',
      severity: 'error',
      from: { path: PROGRAMS },
      to: {
        path: ROOMS.map(({ files }) => files),
        pathNot: [PROGRAMS, DECLARATIONS, OF_BUILD],
        reachable: false,
      },
    },
  ],
  options: {
    doNotFollow: { path: '(^|/)node_modules(/|$)' },
    exclude: { path: '^(dist|pictures/generated|\\.[^./][^/]*)(/|$)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)) },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}

import js from '@eslint/js'
import regexp from 'eslint-plugin-regexp'
import tseslint from 'typescript-eslint'

// The rules that need types are in .oxlintrc.json, because oxlint asks the native compiler, which is many times faster.

/** What is shipped (scripts/boundaries/walls.mjs has its rooms). */
const SHIPPED = [
  ...[
    'schemas',
    'pce-client',
    'domain',
    'tools',
    'knowledge',
    'notifications',
    'plugins',
    'storage',
    'programs/process',
    'programs/composition',
    'config',
    'pictures',
  ],
].map((room) => `${room}/**/*.ts`)
const PROGRAMS = ['app', 'draw', 'http', 'stdio'].map((name) => `programs/${name}.ts`)

const CONSOLE = { name: 'console', message: 'Standard output is for JSON-RPC; write to the log that you are given.' }
const PROCESS = { name: 'process', message: 'Take what you need as an argument.' }
const GLOBAL = { name: 'global', message: 'Write globalThis, which the other rules understand.' }
const noGlobals = (...globals) => ['error', { globals: [...globals, GLOBAL], checkGlobalObject: true }]

const ENVIRONMENT = { object: 'process', property: 'env', message: 'Only config/index.ts reads the environment.' }
const BY_GLOBAL_THIS = { object: 'globalThis', property: 'process', message: 'Write process.' }
const STDOUT = { object: 'process', property: 'stdout', message: 'Standard output is for JSON-RPC.' }

/** `process` whole is the environment too, out of sight of the rule for `process.env`. */
const WHOLE_PROCESS = [
  ':not(MemberExpression, VariableDeclarator, Property) > Identifier.arguments[name="process"]',
  'VariableDeclarator[init.name="process"] > Identifier.id',
  'VariableDeclarator[init.name="process"] RestElement',
  'AssignmentExpression > Identifier.right[name="process"]',
  'Property > Identifier.value[name="process"]',
].map((selector) => ({ selector, message: 'Take the properties that you need; `process` whole has the environment.' }))

/** Texts of a PCE or a caller that become an expression may take for ever to match. */
const BUILT_EXPRESSION = {
  selector: ':matches(NewExpression, CallExpression)[callee.name="RegExp"]',
  message: 'Compare texts without an expression that is built from them.',
}

/** Node.js 20 holds such a signal only weakly, and may collect it before it fires. */
const WEAK_TIMEOUT = {
  selector:
    'CallExpression[callee.object.name="AbortSignal"][callee.property.name="any"] CallExpression[callee.property.name="timeout"]',
  message: 'Hold the timer: abort a controller with setTimeout.',
}

const UNSEEN_IMPORT = {
  selector: 'ImportExpression:not([source.type="Literal"])',
  message: 'No wall can see what a computed import loads.',
}

/** tap's match lets longer lists, longer texts and missing types pass. */
const LOOSE_MATCH = {
  selector:
    'CallExpression[callee.property.name="match"][arguments.length>1]:not([arguments.1.regex], [arguments.1.callee.name="RegExp"])',
  message:
    'Compare exactly (t.same, t.equal, hasFields); t.match is for a text and the regular expression it must fit.',
}

/** A domain value or a tool is handed its client and never makes one. */
const CLIENT_ERRORS = ['PceError', 'PceApiError', 'PceIntegerError']
const FROM_CLIENT = '[source.value=/pce-client\\u002Findex\\.js$/]'
const CLIENT_VALUES = [
  `ImportDeclaration[importKind!="type"]${FROM_CLIENT} > ImportSpecifier[importKind!="type"][imported.name!=/^(${CLIENT_ERRORS.join('|')})$/]`,
  `ImportDeclaration[importKind!="type"]${FROM_CLIENT} > :matches(ImportDefaultSpecifier, ImportNamespaceSpecifier)`,
  `:matches(ExportAllDeclaration, ExportNamedDeclaration)[exportKind!="type"]${FROM_CLIENT}`,
  `ImportExpression${FROM_CLIENT}`,
].map((selector) => ({ selector, message: `Of the PCE client, import types and ${CLIENT_ERRORS.join(', ')}.` }))

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', '.coverage/', '.suite/', 'pictures/generated/'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-imports': 'error',
      'no-console': 'error',
    },
  },
  {
    // Plain JavaScript at the edges (bootstrap, configuration) is not part of the TypeScript project.
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        Request: 'readonly',
        setInterval: 'readonly',
      },
    },
  },
  { files: ['scripts/**', 'test/**', 'pce-simulator/**'], rules: { 'no-console': 'off' } },
  {
    name: 'walls/shipped',
    files: [...SHIPPED, ...PROGRAMS],
    rules: {
      'no-restricted-globals': noGlobals(CONSOLE, PROCESS),
      'no-restricted-syntax': ['error', UNSEEN_IMPORT, BUILT_EXPRESSION, WEAK_TIMEOUT],
    },
  },
  {
    // What a caller, a PCE or a proxy sends must not be able to hold the event loop.
    name: 'bounds/expressions',
    files: [...SHIPPED, 'programs/**/*.ts'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential' }],
    },
  },
  {
    name: 'walls/process',
    files: [
      'pce-client/**/*.ts',
      'storage/**/*.ts',
      'programs/process/**/*.ts',
      'programs/draw.ts',
      'programs/http.ts',
      'programs/stdio.ts',
    ],
    rules: {
      'no-restricted-globals': noGlobals(CONSOLE),
      'no-restricted-properties': ['error', ENVIRONMENT, BY_GLOBAL_THIS, STDOUT],
      'no-restricted-syntax': ['error', UNSEEN_IMPORT, BUILT_EXPRESSION, WEAK_TIMEOUT, ...WHOLE_PROCESS],
    },
  },
  {
    name: 'walls/programs',
    files: ['programs/draw.ts', 'programs/http.ts', 'programs/stdio.ts'],
    rules: { 'no-restricted-properties': ['error', ENVIRONMENT, BY_GLOBAL_THIS] },
  },
  {
    name: 'walls/environment',
    files: ['config/index.ts'],
    rules: { 'no-restricted-globals': noGlobals(CONSOLE) },
  },
  {
    name: 'walls/client',
    files: ['domain/**/*.ts', 'tools/**/*.ts', 'knowledge/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', UNSEEN_IMPORT, BUILT_EXPRESSION, WEAK_TIMEOUT, ...CLIENT_VALUES] },
  },
  {
    name: 'tests/exact',
    files: ['test/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', LOOSE_MATCH] },
  },
)

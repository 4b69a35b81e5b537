/** server.json against what the MCP registry demands of it (its schema of 2025-12-11), as far as we use it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import t from 'tap'
import { VARIABLES } from '../../config/variables.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const server = read('deploy/mcp-registry/server.json')
const project = read('package.json')

const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength })
/** Fields that we do not use are refused, so that using one means looking up what it may be. */
const exactly = (properties: Record<string, object>, required: string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const VARIABLE = exactly(
  {
    name: text(100),
    description: { type: 'string' },
    format: { enum: ['string', 'number', 'boolean', 'filepath'] },
    isRequired: { type: 'boolean' },
    isSecret: { type: 'boolean' },
    default: { type: 'string' },
  },
  ['name'],
)
const PACKAGE = exactly(
  {
    registryType: { enum: ['npm'] },
    identifier: { type: 'string' },
    version: { ...text(255), not: { const: 'latest' } },
    transport: exactly({ type: { enum: ['stdio'] } }, ['type']),
    environmentVariables: { type: 'array', items: VARIABLE },
  },
  ['registryType', 'identifier', 'transport'],
)
const SERVER = exactly(
  {
    $schema: { const: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json' },
    name: { type: 'string', pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$', minLength: 3, maxLength: 200 },
    title: text(100),
    description: text(100),
    version: text(255),
    repository: exactly({ url: { type: 'string', pattern: '^https://' }, source: { type: 'string' } }, [
      'url',
      'source',
    ]),
    packages: { type: 'array', items: PACKAGE, minItems: 1 },
  },
  ['$schema', 'name', 'description', 'version', 'packages'],
)

t.test('is what the registry takes', (t) => {
  const check = new Ajv({ allErrors: true }).compile(SERVER)
  check(server)
  t.same(check.errors, null)
  t.end()
})

t.test('is of the package of this version, which names it back', (t) => {
  const [{ identifier, version }] = server.packages
  t.same([server.version, version, identifier], [project.version, project.version, project.name])
  t.equal(project.mcpName, server.name, 'without it the registry refuses the package')
  t.match(server.version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, 'a range is refused')
  t.end()
})

t.test('asks for variables that the server reads, and hides those of the key', (t) => {
  const variables = server.packages[0].environmentVariables as {
    name: string
    isSecret: boolean
    isRequired: boolean
  }[]
  const known: readonly string[] = VARIABLES.everywhere
  t.same(
    variables.filter(({ name }) => !known.includes(name)),
    [],
  )
  const named = (what: 'isSecret' | 'isRequired') => variables.filter((one) => one[what]).map(({ name }) => name)
  t.same(named('isSecret'), ['API_KEY', 'API_SECRET'])
  t.same(named('isRequired'), ['PCE_HOST', 'API_KEY', 'API_SECRET'])
  t.end()
})

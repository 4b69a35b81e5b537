import { CONFIG_VARIABLES, type ConfigVariable } from '../docs/config-variables.js'
import { FIELDS, type Field, type ProjectFacts } from './manifest.js'

/** The maximum length of a description in the registry, in characters. */
const LONGEST_DESCRIPTION = 100
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

/** Renders `server.json`, which registers a release in the MCP registry (schema of 2025-12-11). */
export function renderServerJson({ name, version, mcpName, repository }: ProjectFacts): string {
  const description =
    'Inventory, traffic and policy of a policy compute engine (PCE): look up, analyse, draft, provision'
  if (description.length > LONGEST_DESCRIPTION) throw new Error(`the description has ${description.length} characters`)
  const server = {
    $schema: SCHEMA,
    name: mcpName,
    title: name,
    description,
    version,
    ...(repository && { repository: { url: repository.url.replace(/^git\+|\.git$/g, ''), source: 'git' } }),
    packages: [
      {
        registryType: 'npm',
        identifier: name,
        version,
        transport: { type: 'stdio' },
        environmentVariables: Object.values(FIELDS).map((field) =>
          describe(
            field,
            CONFIG_VARIABLES.find(({ name }) => name === field.variable)!,
          ),
        ),
      },
    ],
  }
  return `${JSON.stringify(server, null, 2)}\n`
}

function describe(field: Field, { name, meaning, default: usual, required, secret, mayBeInFile }: ConfigVariable) {
  const preset = field.type === 'boolean' ? String(field.default) : usual
  return {
    name,
    description: meaning,
    format: field.type === 'file' ? 'filepath' : field.type,
    isRequired: required !== undefined,
    isSecret: secret === true || mayBeInFile === true,
    ...(preset !== undefined && { default: preset }),
  }
}

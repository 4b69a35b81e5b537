import { CONFIG_VARIABLES, type ConfigVariable } from '../docs/config-variables.js'
import type { ProjectFacts } from './manifest.js'

/** Characters of a description in the registry. */
const LONGEST_DESCRIPTION = 100
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'
/** What a client asks people for; everything else has a default that serves them. */
const ASKED = [
  'PCE_HOST',
  'PCE_PORT',
  'PCE_ORG_ID',
  'API_KEY',
  'API_SECRET',
  'MCP_READ_ONLY',
  'MCP_TOOLSETS',
  'PCE_CA_FILE',
]
const FORMATS: Readonly<Record<string, string>> = {
  PCE_PORT: 'number',
  PCE_ORG_ID: 'number',
  MCP_READ_ONLY: 'boolean',
  PCE_CA_FILE: 'filepath',
}
const DEFAULTS: Readonly<Record<string, string>> = { MCP_READ_ONLY: 'false' }

/** `server.json`, by which the MCP registry knows a release (schema of 2025-12-11), as text. */
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
        environmentVariables: ASKED.map((asked) =>
          describe(CONFIG_VARIABLES.find((variable) => variable.name === asked) ?? missing(asked)),
        ),
      },
    ],
  }
  return `${JSON.stringify(server, null, 2)}\n`
}

function describe({ name, meaning, default: usual, required, secret, mayBeInFile }: ConfigVariable) {
  const preset = DEFAULTS[name] ?? usual
  return {
    name,
    description: meaning,
    format: FORMATS[name] ?? 'string',
    isRequired: required !== undefined,
    isSecret: secret === true || mayBeInFile === true,
    ...(preset !== undefined && { default: preset }),
  }
}

function missing(name: string): never {
  throw new Error(`there is no ${name}`)
}

import { CONFIG_VARIABLES } from '../docs/config-variables.js'

/** The facts from package.json for the manifest of a bundle and for server.json. */
export interface ProjectFacts {
  name: string
  version: string
  description: string
  license: string
  engines: { node: string }
  /** The name in the MCP registry: a namespace that the project can prove to own, and the server's name in it. */
  mcpName: string
  repository?: { type: string; url: string }
}

/** A field of the form in Claude Desktop. If it is left blank, the server uses its default. */
export interface Field {
  variable: string
  type: 'string' | 'number' | 'boolean' | 'file'
  title: string
  description: string
  default: string | number | boolean
  required?: true
  sensitive?: true
  min?: number
  max?: number
}

/**
 * The settings for which people are asked, by name and in the order of the form. They are the same in server.json. All
 * other settings have suitable defaults.
 */
export const FIELDS: Readonly<Record<string, Field>> = {
  pce_host: {
    variable: 'PCE_HOST',
    type: 'string',
    title: 'PCE address',
    description: 'Such as pce.example.com, without the port',
    default: '',
    required: true,
  },
  pce_port: {
    variable: 'PCE_PORT',
    type: 'number',
    title: 'PCE port',
    description: '443 for hosted PCEs, 8443 for most others',
    default: 443,
    min: 1,
    max: 65_535,
  },
  pce_org_id: {
    variable: 'PCE_ORG_ID',
    type: 'number',
    title: 'Organisation',
    description: 'The number in the hrefs of that PCE: /orgs/1/…',
    default: 1,
    min: 1,
  },
  api_key: {
    variable: 'API_KEY',
    type: 'string',
    title: 'API key',
    description:
      'Its authentication username, which begins with api_. What the key may not do at the PCE, no tool can do',
    default: '',
    required: true,
    sensitive: true,
  },
  api_secret: {
    variable: 'API_SECRET',
    type: 'string',
    title: 'API secret',
    description: 'The secret that the PCE showed once, with the key',
    default: '',
    required: true,
    sensitive: true,
  },
  read_only: {
    variable: 'MCP_READ_ONLY',
    type: 'boolean',
    title: 'Read only',
    description: 'Offer only tools that read',
    default: false,
  },
  toolsets: {
    variable: 'MCP_TOOLSETS',
    type: 'string',
    title: 'Toolsets',
    description: 'Which tools are offered, with commas between: default,explain,history,hygiene,vens,rules-plus',
    default: 'default',
  },
  ca_file: {
    variable: 'PCE_CA_FILE',
    type: 'file',
    title: 'CA certificate',
    description: 'PEM file of the CA that has signed the certificate of the PCE, where it is a private one',
    default: '',
  },
}

const known = new Set(CONFIG_VARIABLES.map(({ name }) => name))
for (const { variable } of Object.values(FIELDS)) if (!known.has(variable)) throw new Error(`there is no ${variable}`)

/** Renders `manifest.json` of the bundle (manifest_version 0.3). */
export function renderManifest({ name, version, description, license, engines, repository }: ProjectFacts): string {
  const fields = Object.entries(FIELDS)
  const manifest = {
    manifest_version: '0.3',
    name,
    display_name: 'svc-mcp: policy compute engine',
    version,
    description,
    author: { name: `The ${name} authors` },
    ...(repository && { repository }),
    license,
    keywords: ['microsegmentation', 'policy', 'firewall', 'traffic'],
    server: {
      type: 'node',
      entry_point: 'dist/stdio.js',
      mcp_config: {
        command: 'node',
        args: ['${__dirname}/dist/stdio.js'],
        env: Object.fromEntries(fields.map(([field, { variable }]) => [variable, `\${user_config.${field}}`])),
      },
    },
    tools_generated: true,
    prompts_generated: true,
    compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: engines.node } },
    user_config: Object.fromEntries(fields.map(([field, { variable: _, ...shown }]) => [field, shown])),
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

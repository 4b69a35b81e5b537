/**
 * The command that clients are told to run: the program of the installed package. The package must not be fetched by
 * name, because its name is not registered, so anyone could register it.
 */
const COMMAND = 'svc-mcp'
const NAME = 'svc-mcp'

/** The inputs for which VS Code asks when the server is first started, and which it then stores. */
const QUESTIONS = [
  { variable: 'PCE_HOST', id: 'pce_host', description: 'Address of the PCE, such as pce.example.com:8443' },
  { variable: 'PCE_ORG_ID', id: 'pce_org_id', description: 'Organisation of the PCE', default: '1' },
  { variable: 'API_KEY', id: 'api_key', description: 'API key (api_…)', password: true },
  { variable: 'API_SECRET', id: 'api_secret', description: 'API secret', password: true },
]

/**
 * The placeholders for Cursor, which does not ask for inputs. The user must replace them. Until then, the server
 * refuses to start and names them.
 */
const PLACEHOLDERS = {
  PCE_HOST: '<address of the PCE>',
  PCE_ORG_ID: '1',
  API_KEY: '<API key>',
  API_SECRET: '<API secret>',
}

/** Renders links through which VS Code and Cursor offer to add the server, as at most four lines of Markdown. */
export function renderInstallButtons(): string {
  return [
    `[**Add to VS Code**](${vscodeLink()}) · [**Add to Cursor**](${cursorLink()})`,
    '',
    'Both start `svc-mcp`, [installed before](docs/clients/README.md#before-stdio). VS Code asks for address and key; in Cursor you replace placeholders.',
  ].join('\n')
}

/**
 * Creates the link for VS Code. It is an https link, because pages of repositories remove links with other schemes. VS
 * Code receives it as `vscode:mcp/install`.
 */
function vscodeLink(): string {
  const inputs = QUESTIONS.map(({ variable: _, ...question }) => ({ type: 'promptString', ...question }))
  const env = Object.fromEntries(QUESTIONS.map(({ variable, id }) => [variable, `\${input:${id}}`]))
  const config = { type: 'stdio', command: COMMAND, args: [], env }
  const query = { name: NAME, inputs: JSON.stringify(inputs), config: JSON.stringify(config) }
  return `https://insiders.vscode.dev/redirect/mcp/install?${asQuery(query)}`
}

function cursorLink(): string {
  const config = JSON.stringify({ command: COMMAND, args: [], env: PLACEHOLDERS })
  return `https://cursor.com/en/install-mcp?${asQuery({ name: NAME, config: Buffer.from(config).toString('base64') })}`
}

/**
 * Encodes a query. Parentheses are also encoded, because they would end a Markdown link; encodeURIComponent keeps them.
 */
const asQuery = (values: Record<string, string>) =>
  Object.entries(values)
    .map(
      ([name, value]) =>
        `${name}=${encodeURIComponent(value).replace(/[()]/g, (one) => (one === '(' ? '%28' : '%29'))}`,
    )
    .join('&')

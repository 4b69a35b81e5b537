import type { PceEnvironment } from './start-programs.js'
import { block } from './print.js'

/**
 * Prints the configuration that common MCP clients need, for both transports, ready to be pasted.
 *
 * @param program the path of the stdio program.
 */
export function printClientLines(url: string, program: string, pce: PceEnvironment): void {
  block('Claude Code', `claude mcp add --transport http svc-mcp ${url}/mcp`)
  block('VS Code, .vscode/mcp.json', json({ servers: { 'svc-mcp': { type: 'http', url: `${url}/mcp` } } }))
  block('Cursor, ~/.cursor/mcp.json', json({ mcpServers: { 'svc-mcp': { url: `${url}/mcp` } } }))
  block(
    'MCP Inspector, from the command line',
    `npx @modelcontextprotocol/inspector --cli ${url}/mcp \\\n     --transport http --method tools/list`,
  )
  block('Claude Desktop, claude_desktop_config.json (over stdio)', {
    mcpServers: { 'svc-mcp': { command: 'node', args: [program], env: pce } },
  })
}

const json = (value: object) => JSON.stringify(value)

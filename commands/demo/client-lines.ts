import type { PceEnvironment } from './start-server.js'
import { block } from './print.js'

/** What to paste into common MCP clients, for both transports. */
export function printClientLines(url: string, root: string, pce: PceEnvironment): void {
  block('Claude Code', `claude mcp add --transport http svc-mcp ${url}/mcp`)
  block('VS Code, .vscode/mcp.json', json({ servers: { 'svc-mcp': { type: 'http', url: `${url}/mcp` } } }))
  block('Cursor, ~/.cursor/mcp.json', json({ mcpServers: { 'svc-mcp': { url: `${url}/mcp` } } }))
  block(
    'MCP Inspector, from the command line',
    `npx @modelcontextprotocol/inspector --cli ${url}/mcp \\\n     --transport http --method tools/list`,
  )
  block('Claude Desktop, claude_desktop_config.json (over stdio)', {
    mcpServers: { 'svc-mcp': { command: 'node', args: [`${root}dist/stdio.js`], env: pce } },
  })
}

const json = (value: object) => JSON.stringify(value)

import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { KINDS, TOOL_OF } from '../../pictures/kinds.js'
import type { PictureKind } from '../../pictures/picture.js'

/**
 * The name of the MCP Apps extension (2026-01-26). With this extension, a client shows pages of this server beside the
 * answers of tools.
 */
const EXTENSION = 'io.modelcontextprotocol/ui'
const MIME_TYPE = 'text/html;profile=mcp-app'

const URIS: ReadonlyMap<string, PictureKind> = new Map(KINDS.map((kind) => [`ui://svc-mcp/${kind}.html`, kind]))
const URI_OF: ReadonlyMap<string, string> = new Map([...URIS].map(([uri, kind]) => [TOOL_OF[kind], uri]))

/** Returns true if a client declares in its capabilities that it can show pages of MCP Apps. */
export function readShowsApps(capabilities: unknown): boolean {
  const { extensions } = (capabilities ?? {}) as { extensions?: Readonly<Record<string, unknown>> | null }
  const settings = extensions?.[EXTENSION] as { mimeTypes?: unknown } | null | undefined
  return Array.isArray(settings?.mimeTypes) && settings.mimeTypes.includes(MIME_TYPE)
}

/**
 * Builds the entries of tools/list for a client that can show pages. The entry of a tool that has a page contains the
 * page's URI.
 */
export const withApps = (tools: readonly Tool[]): Tool[] =>
  tools.map((tool) => {
    const resourceUri = URI_OF.get(tool.name)
    return resourceUri === undefined ? tool : { ...tool, _meta: { ui: { resourceUri } } }
  })

/**
 * Returns the page with this URI as a resource, or null if there is no such page. The code that renders pages is loaded
 * only when this function is called. A page fetches and sends nothing, so its content policy names no origins.
 */
export async function readApp(uri: string): Promise<object | null> {
  const kind = URIS.get(uri)
  if (kind === undefined) return null
  const [{ renderAppPage }, { readScript }] = await Promise.all([
    import('../../pictures/page/app-page.js'),
    import('../../pictures/read-script.js'),
  ])
  const text = renderAppPage(kind, await readScript('app'))
  return { uri, mimeType: MIME_TYPE, text, _meta: { ui: { prefersBorder: true } } }
}

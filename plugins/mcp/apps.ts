import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { KINDS, TOOL_OF } from '../../pictures/kinds.js'
import type { PictureKind } from '../../pictures/picture.js'

/** The name of the extension MCP Apps (2026-01-26): pages of this server that a client shows beside a tool's answer. */
const EXTENSION = 'io.modelcontextprotocol/ui'
const MIME_TYPE = 'text/html;profile=mcp-app'

const URIS: ReadonlyMap<string, PictureKind> = new Map(KINDS.map((kind) => [`ui://svc-mcp/${kind}.html`, kind]))
const URI_OF: ReadonlyMap<string, string> = new Map([...URIS].map(([uri, kind]) => [TOOL_OF[kind], uri]))

/** Returns true if a client declares that it can show pages of MCP Apps. */
export function readShowsApps(capabilities: unknown): boolean {
  const { extensions } = (capabilities ?? {}) as { extensions?: Readonly<Record<string, unknown>> | null }
  const settings = extensions?.[EXTENSION] as { mimeTypes?: unknown } | null | undefined
  return Array.isArray(settings?.mimeTypes) && settings.mimeTypes.includes(MIME_TYPE)
}

/**
 * Builds the entries of tools/list for a client that can show pages. If a tool has a page, its entry contains the URI
 * of the page.
 */
export const withApps = (tools: readonly Tool[]): Tool[] =>
  tools.map((tool) => {
    const resourceUri = URI_OF.get(tool.name)
    return resourceUri === undefined ? tool : { ...tool, _meta: { ui: { resourceUri } } }
  })

/**
 * Returns the resource for the page with this URI, or null if there is no such page. The code of the page is loaded
 * only here. The page itself fetches and sends nothing, so its content policy names no origins.
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

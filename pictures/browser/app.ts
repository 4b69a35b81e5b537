/**
 * The script of this server's MCP Apps (extension io.modelcontextprotocol/ui). It performs the handshake with the host,
 * and then draws the result of the tool call for which the app was opened. Apart from the handshake, it sends no
 * requests to the host, and it calls no tools.
 */
import { drawPicture } from '../draw-picture.js'
import { element } from '../markup.js'
import { renderFigure, renderTables } from '../page/render-html.js'
import type { PictureKind } from '../picture.js'
import { explore } from './explore.js'

/** The revision of the MCP Apps extension that this app supports. */
const PROTOCOL = '2026-01-26'
const INITIALIZE_ID = 1
/** Maximum size of a picture's tables in bytes. Tool results are limited in size, and none comes near this limit. */
const MOST_TABLE_BYTES = 4 * 1024 * 1024

interface Message {
  jsonrpc?: unknown
  id?: string | number
  method?: string
  params?: Record<string, unknown>
  result?: { hostContext?: Context }
}

interface Context {
  theme?: unknown
}

const root = document.getElementById('picture')!
const kind = root.dataset.kind as PictureKind

const send = (message: object) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*')

function say(text: string): void {
  root.innerHTML = element('p', { role: 'status' }, text).text
}

/**
 * Draws the result of a tool call. If the call failed, the app only says that there is no picture, because the
 * conversation already shows the error.
 */
function draw({ isError, structuredContent, content }: Record<string, unknown>): void {
  if (isError === true) return say('The call failed, so there is nothing to draw.')
  try {
    const [first] = (content ?? []) as { text?: string }[]
    const answer = (structuredContent ?? JSON.parse(first?.text ?? '')) as object
    const picture = drawPicture(kind, [answer], { withWhole: true })
    root.innerHTML = renderFigure(picture).text + renderTables(picture.tables, MOST_TABLE_BYTES).text
    explore(root)
  } catch {
    say('This answer cannot be drawn. The conversation has it in full.')
  }
}

function follow({ theme }: Context): void {
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
}

window.addEventListener('message', ({ source, data }: MessageEvent<Message>) => {
  if (source !== window.parent || data?.jsonrpc !== '2.0') return
  const { id, method, params = {}, result } = data
  if (method === undefined) {
    if (id !== INITIALIZE_ID) return
    follow(result?.hostContext ?? {})
    isInitialized = true
    send({ method: 'ui/notifications/initialized', params: {} })
    return tellSize()
  }
  if (method === 'ui/notifications/tool-result') draw(params)
  if (method === 'ui/notifications/tool-cancelled') say('The call was cancelled.')
  if (method === 'ui/notifications/host-context-changed') follow(params)
  // The app answers these requests of the host: pings, and the notice that the app will be closed.
  if (id !== undefined)
    send(
      method === 'ping' || method === 'ui/resource-teardown'
        ? { id, result: {} }
        : { id, error: { code: -32601, message: 'Method not found' } },
    )
})

let told = ''
let isInitialized = false
function tellSize(): void {
  // Hosts may ignore messages that arrive before the handshake is complete.
  if (!isInitialized) return
  const { width, height } = document.documentElement.getBoundingClientRect()
  const size = { width: Math.ceil(width), height: Math.ceil(height) }
  if (JSON.stringify(size) === told) return
  told = JSON.stringify(size)
  send({ method: 'ui/notifications/size-changed', params: size })
}
new ResizeObserver(tellSize).observe(document.documentElement)

send({
  id: INITIALIZE_ID,
  method: 'ui/initialize',
  params: { appInfo: { name: `svc-mcp ${kind}`, version: '1' }, appCapabilities: {}, protocolVersion: PROTOCOL },
})

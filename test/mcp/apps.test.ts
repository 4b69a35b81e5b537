/** MCP Apps: who is told of the pages, what that costs, and what a page is (D196). */
import t from 'tap'
import { tools } from '../../tools/index.js'
import { insecureApp, request } from '../contract/insecure-app.js'

const MODERN = '2026-07-28'
const PAGE = 'ui://svc-mcp/change.html'
const SHOWS = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } }
const WITH_PICTURES = [
  'compare-draft-active',
  'create-ringfence',
  'detect-lateral-movement-paths',
  'get-traffic-flows-summary',
]

interface Listed {
  name: string
  _meta?: { ui: { resourceUri: string } }
}

const { app, post } = await insecureApp(tools)
t.teardown(() => app.close())

async function ask(method: string, capabilities: unknown, params: Record<string, string> = {}) {
  const name = 'io.modelcontextprotocol'
  const _meta = { [`${name}/protocolVersion`]: MODERN, [`${name}/clientCapabilities`]: capabilities }
  const headers = {
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(params.uri && { 'mcp-name': params.uri }),
  }
  return JSON.parse((await post(request(method, { ...params, _meta }), headers)).body)
}
const listedTo = async (capabilities: unknown): Promise<Listed[]> =>
  (await ask('tools/list', capabilities)).result.tools
const told = (list: Listed[]) => list.filter(({ _meta: meta }) => meta !== undefined)

t.test(
  'a client of 2026-07-28 is told of the pages where it declares that it shows them, and nobody else',
  async (t) => {
    const plain = await listedTo({})
    const shown = await listedTo(SHOWS)
    t.same(
      told(shown).map(({ name }) => name),
      WITH_PICTURES,
    )
    t.same(
      shown.map(({ _meta: _apps, ...tool }) => tool),
      plain,
      'the rest of the list is the same',
    )
    t.ok(JSON.stringify(shown).length - JSON.stringify(plain).length <= 1024, 'at most 1 KiB more')
    for (const extensions of [null, 5, [], { 'io.modelcontextprotocol/ui': null }])
      t.same(told(await listedTo({ extensions })), [], JSON.stringify(extensions))
    for (const mimeTypes of ['text/html;profile=mcp-app', ['text/html'], 5])
      t.same(told(await listedTo({ extensions: { 'io.modelcontextprotocol/ui': { mimeTypes } } })), [])
  },
)

t.test('each page that is told of can be read; another cannot', async (t) => {
  for (const { _meta: meta } of told(await listedTo(SHOWS))) {
    const uri = meta!.ui.resourceUri
    const [{ mimeType, text, uri: read }] = (await ask('resources/read', SHOWS, { uri })).result.contents
    t.same([read, mimeType], [uri, 'text/html;profile=mcp-app'])
    t.notMatch(text, /(?:src|href)="?https?:/, 'it loads nothing')
  }
  t.equal((await ask('resources/read', SHOWS, { uri: `${PAGE}/../x` })).error.code, -32602)
})

/** docs/clients: every stdio configuration started as it stands, and the Inspector with exactly the lines of its page. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { placeInspector } from '../inspector/place-inspector.js'
import { partial } from '../partial.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { createReader, readClientPages } from './client-pages.js'
import { fillIn, readPage, runCommand } from './commands.js'

const reader = await createReader(t)

for (const { path, entries } of readClientPages()) {
  t.test(`${path}: the server starts and does what the page asks of it`, async (t) => {
    for (const entry of entries.filter(({ section }) => section === 'stdio')) {
      const client = await reader.connect(entry)
      t.equal((await client.listTools()).tools.length, DEFAULT_NAMES.length)
      const { isError, structuredContent } = await client.callTool({ name: 'check-pce-connection', arguments: {} })
      t.notOk(isError)
      partial(t, structuredContent, { connected: true })
    }
  })
}

t.test('the lines of the page for the Inspector', async (t) => {
  const { whole } = placeInspector(t)
  // npx would fetch the package.
  reader.program(
    'npx',
    `[ "$1" = @modelcontextprotocol/inspector ] || exit 9\nshift\nexec '${process.execPath}' '${whole}' "$@"`,
  )
  const [, block] = /## stdio[\s\S]*?```json\n([\s\S]*?)```/.exec(readPage('docs/clients/inspector.md'))!
  writeFileSync(join(reader.folder, 'mcp.json'), fillIn(block!, reader.own))
  const surroundings = { cwd: reader.folder, env: { PATH: reader.path } }
  const inspect = async (key: string) => JSON.parse(await runCommand(t, key, surroundings))
  const { tools } = await inspect('docs/clients/inspector.md#stdio')
  t.equal(tools.length, DEFAULT_NAMES.length)
  partial(t, await inspect('docs/clients/inspector.md#see-that-it-works'), { structuredContent: { connected: true } })
})

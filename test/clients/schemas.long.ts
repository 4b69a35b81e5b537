/**
 * The schemas of all tools go through the converters of real clients whole (D243): none is refused, none loses a keyword, none is dropped to
 * non-strict, and the Inspector finds nothing to warn of.
 */
import { execFile, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { listTool } from '../../plugins/mcp/list-tools.js'
import { catalogue } from '../../tools/catalogue/index.js'
import { bundleProgram } from '../bundle-program.js'

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const listed = catalogue.map(listTool)

/** What the converters make of a list of tools. */
async function convert(list: readonly object[]): Promise<Record<string, { taken: number; faults: object }>> {
  const child = spawn(process.execPath, [pathOf('programs/convert-schemas.mjs')], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.end(JSON.stringify(list))
  return JSON.parse(await text(child.stdout)) as Awaited<ReturnType<typeof convert>>
}

const CONVERTERS = ['langchainToGoogle', 'openaiAgentsStrict', 'aiSdkToGoogle', 'zod', 'jsonSchemaToZodSource']

t.test('every converter takes every schema, and passes it on whole', async (t) => {
  t.same(
    await convert(listed),
    Object.fromEntries(CONVERTERS.map((name) => [name, { taken: catalogue.length, faults: {} }])),
  )
})

t.test('what they do not take is found', async (t) => {
  const found = async (part: object, required: string[] = []) => {
    const inputSchema = { type: 'object', properties: { part }, required, additionalProperties: false }
    const results = await convert([{ ...listed[0], inputSchema }])
    return CONVERTERS.filter((name) => Object.keys(results[name]!.faults).length > 0)
  }
  const zods = ['zod', 'jsonSchemaToZodSource']
  t.same(await found({ type: ['string', 'array'], items: { type: 'string' } }), ['langchainToGoogle', ...zods])
  t.same(await found({ anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] }), [
    'langchainToGoogle',
  ])
  t.same(await found({ type: 'object' }), ['langchainToGoogle', 'openaiAgentsStrict'])
  t.same(await found({}), ['langchainToGoogle'])
})

t.test('the Inspector warns of nothing', async (t) => {
  const settings = { MCP_TOOLSETS: 'all', PCE_HOST: '127.0.0.1', API_KEY: 'api_1', API_SECRET: 'none' }
  const given = Object.entries(settings).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const server = [process.execPath, bundleProgram('stdio')]
  const words = ['--cli', ...server, ...given, '--method', 'tools/list', '--strict']
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [pathOf('node_modules/.bin/mcp-inspector'), ...words],
    { maxBuffer: 1e7 },
  )
  t.equal((JSON.parse(stdout) as { tools: object[] }).tools.length, catalogue.length)
  t.notOk(/portability|Warning: tool/.test(stderr), stderr.slice(0, 2000))
})

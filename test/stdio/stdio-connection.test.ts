/** The lines of MCP over stdio: envelopes, batches and what garbage does (MCP transports, stdio). */
import { PassThrough } from 'node:stream'
import t from 'tap'
import { createKnowledge } from '../../knowledge/index.js'
import type { ServerPorts } from '../../plugins/mcp/ports.js'
import { StdioConnection } from '../../plugins/mcp/stdio-connection.js'
import { contains, partial } from '../partial.js'

const tick = () => new Promise((resolve) => setImmediate(resolve))

async function connected(more: Partial<ServerPorts> = {}) {
  const input = new PassThrough()
  const output = new PassThrough()
  const calls: { name: string; signal: AbortSignal; answer: (value: object) => void }[] = []
  const ports: ServerPorts = {
    info: { name: 'x', version: '1' },
    listTools: () => [],
    offered: new Set(),
    knowledge: createKnowledge({
      tools: [],
      server: { changelog: () => Promise.resolve(null) },
      limits: { responseBudgetBytes: 80_000 },
      now: Date.now,
    }),
    onFailure: () => {},
    lookUp: () => Promise.resolve(null),
    requestId: () => 'r',
    callTool: ({ name, sender: { signal } }) =>
      new Promise((resolve) => calls.push({ name, signal, answer: (value) => resolve({ ok: true, value }) })),
    ...more,
  }
  let listed = 0
  new StdioConnection(input, output, ports, () => void listed++).start()
  const read = async () => {
    for (let turn = 0; turn < 5; turn++) await tick()
    const text = (output.read() as Buffer | null)?.toString() ?? ''
    return text === ''
      ? []
      : text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line))
  }
  const say = async (line: string | Buffer) => {
    input.write(line)
    return read()
  }
  const end = async (line: string) => {
    input.end(line)
    return read()
  }
  return { say, end, read, calls, listed: () => listed }
}

const ping = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'ping' })
const call = (id: unknown, name: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })
const line = (message: unknown) => `${JSON.stringify(message)}\n`

t.test('answers bad lines and reads the next one', async (t) => {
  const { say } = await connected()
  partial(t, await say('{"jsonrpc"\n'), [{ id: null, error: { code: -32700 } }])
  partial(t, await say(Buffer.from([0xff, 0x0a])), [{ id: null, error: { code: -32700 } }])
  partial(t, await say(line({ jsonrpc: '2.0', id: 1.5, method: 'ping' })), [{ id: null, error: { code: -32600 } }])
  partial(t, await say(line({ ...call(3, 'x'), params: { name: 5 } })), [{ id: 3, error: { code: -32602 } }])
  partial(t, await say(line({ ...call(3, 'x'), params: [1] })), [{ id: 3, error: { code: -32602 } }])
  partial(t, await say(`${'x'.repeat(1_000_000)}\n`), [{ id: null, error: { code: -32700 } }], 'a line of 1 MB')
  partial(
    t,
    await say(`${'['.repeat(5 * 1024 * 1024)}\n`),
    [{ id: null, error: { code: -32600 } }],
    'a line that is too long for anything',
  )
  t.same(await say(line({ ...ping(4), params: { _meta: null } })), [{ jsonrpc: '2.0', id: 4, result: {} }])
  t.same(await say('\n\r\n'), [], 'blank lines are nothing')
  t.same(await say(`${JSON.stringify(ping(1))}\r\n`), [{ jsonrpc: '2.0', id: 1, result: {} }], 'CRLF ends a line too')
})

t.test('accepts lines in any pieces', async (t) => {
  const { say } = await connected()
  const bytes = Buffer.from(line(ping('é')) + line(ping(2)))
  const cut = bytes.indexOf(0xa9)
  t.same(await say(bytes.subarray(0, cut)), [], 'half a character is not a message')
  partial(t, await say(bytes.subarray(cut)), [{ id: 'é' }, { id: 2 }])
})

t.test('batches', async (t) => {
  const { say, read, calls } = await connected()
  const [answer] = await say(line([ping(1), ping('a'), { jsonrpc: '2.0', method: 'notifications/initialized' }]))
  t.same(new Set(answer.map(({ id }: { id: unknown }) => id)), new Set([1, 'a']), 'are answered by one list')

  t.same(await say(line([call(1, 'one'), call(2, 'two')])), [], 'once every call has its answer')
  calls[0]!.answer({ n: 1 })
  t.same(await read(), [])
  calls[1]!.answer({ n: 2 })
  partial(t, await read(), [[{ id: 1 }, { id: 2 }]])

  await say(line([call(3, 'three'), call(4, 'four')]))
  t.same(await say(line({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } })), [])
  t.equal(calls[2]!.signal.aborted, true, 'a cancelled call is told so')
  calls[3]!.answer({})
  partial(t, await read(), [[{ id: 4 }]], 'and the batch does not wait for it')

  await say(
    line({
      jsonrpc: '2.0',
      id: 5,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    }),
  )
  partial(t, await say(line([ping(1)])), [{ id: null, error: { code: -32600 } }], 'from 2025-06-18 on there are none')
})

t.test('cancelling an unknown request does nothing', async (t) => {
  const { say } = await connected()
  t.same(await say(line({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } })), [])
  t.same(await say(line({ jsonrpc: '2.0', method: 'notifications/cancelled' })), [])
  partial(t, await say(line(ping(1))), [{ id: 1 }])
})

t.test('answers a last line without a line feed', async (t) => {
  const { end } = await connected()
  t.same(await end(JSON.stringify(ping(7))), [{ jsonrpc: '2.0', id: 7, result: {} }])
})

t.test('requests of 2026-07-28 come beside a handshake, each on its own', async (t) => {
  const { say, read, calls } = await connected()
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const modern = (id: unknown, method: string, params: object = {}, more: object = {}) => ({
    jsonrpc: '2.0',
    id,
    method,
    params: { ...params, _meta: { ...meta, ...more } },
  })
  const initialize = {
    jsonrpc: '2.0',
    id: 2,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  }
  partial(t, await say(line(modern(1, 'server/discover'))), [{ id: 1, result: { resultType: 'complete' } }])
  partial(t, await say(line(initialize)), [{ id: 2, result: { protocolVersion: '2025-11-25' } }], 'after a discover')
  partial(t, await say(line(modern(3, 'ping'))), [{ id: 3, error: { code: -32601 } }])
  partial(t, await say(line(ping(4))), [{ id: 4, result: {} }], 'a handshake has its own methods')
  partial(
    t,
    await say(line(modern(5, 'tools/list', {}, { 'io.modelcontextprotocol/protocolVersion': '2030-01-01' }))),
    [
      {
        id: 5,
        error: {
          code: -32022,
          data: { requested: '2030-01-01', supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] },
        },
      },
    ],
  )
  partial(t, await say(line([modern(6, 'tools/list')])), [{ id: null, error: { code: -32600 } }])

  t.same(await say(line(modern(7, 'tools/call', { name: 'one' }, { progressToken: 'p' }))), [
    { method: 'notifications/progress', params: { progress: 0, progressToken: 'p' }, jsonrpc: '2.0' },
  ])
  await say(line(modern(8, 'tools/call', { name: 'two' })))
  t.same(await say(line({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })), [])
  t.equal(calls[0]!.signal.aborted, true, 'cancelled')
  calls[0]!.answer({ n: 1 })
  t.same(await read(), [], 'and nothing more is said of it')
  calls[1]!.answer({ n: 2 })
  partial(t, await read(), [{ id: 8, result: { resultType: 'complete', structuredContent: { n: 2 } } }])
})

/** A connection to a client that shows forms, on which every call asks once and answers what the person has said. */
async function asking() {
  const ask = { message: 'Do it?', boundTo: 'what it does' }
  const refusal = { code: 'confirm_required', message: '', details: { params_hash: 'hash' }, ask } as const
  const connection = await connected({
    asking: { owner: null, states: { seal: () => '', open: () => Promise.resolve(null) }, hash: () => 'hash' },
    callTool: ({ consent, declined }) =>
      Promise.resolve(
        consent === undefined && declined === undefined
          ? { ok: false, error: refusal }
          : { ok: true, value: { consent, declined } },
      ),
  })
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'x', version: '1' },
  }
  await connection.say(line({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
  return connection
}

t.test('a form is put to the client, and its answer is the answer of the call', async (t) => {
  const { say } = await asking()
  const [question] = await say(line(call('c', 'one')))
  t.same(question, {
    method: 'elicitation/create',
    params: {
      message: 'Do it?',
      requestedSchema: {
        type: 'object',
        properties: { confirm: { type: 'boolean', title: 'Run it', default: false } },
        required: ['confirm'],
      },
    },
    jsonrpc: '2.0',
    id: 0,
  })
  const accepted = { action: 'accept', content: { confirm: true } }
  t.same(await say(line({ jsonrpc: '2.0', id: 7, result: accepted })), [], 'no other question was asked')
  t.same(await say(line({ jsonrpc: '2.0', id: '0', result: accepted })), [], 'ids are numbers')
  const [answer] = await say(line({ jsonrpc: '2.0', id: 0, result: accepted }))
  t.same(answer.result.structuredContent, { consent: { boundTo: 'what it does' } })
  t.same(await say(line({ jsonrpc: '2.0', id: 0, result: accepted })), [], 'it is answered once')
})

t.test('what is no answer to a form is no answer of the person', async (t) => {
  const { say } = await asking()
  const given: [string, object][] = [
    ['an error', { error: { code: -32601, message: 'what?' } }],
    ['no action', { result: {} }],
    ['an unknown action', { result: { action: 'perhaps', content: { confirm: true } } }],
    ['content that is no object', { result: { action: 'accept', content: 'confirm' } }],
  ]
  for (const [at, [what, response]] of given.entries()) {
    partial(t, await say(line(call(`call ${at}`, 'one'))), [{ id: at, method: 'elicitation/create' }])
    const [answer] = await say(line({ jsonrpc: '2.0', id: at, ...response }))
    t.equal(answer.result.isError, true, what)
    contains(t, answer.result.content[0].text, 'The client has not asked its user', what)
  }
})

t.test('a call that is cancelled takes its question back', async (t) => {
  const { say } = await asking()
  partial(t, await say(line(call('c', 'one'))), [{ id: 0, method: 'elicitation/create' }])
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'c' } }
  t.same(await say(line(cancelled)), [{ method: 'notifications/cancelled', params: { requestId: 0 }, jsonrpc: '2.0' }])
  const late = { jsonrpc: '2.0', id: 0, result: { action: 'accept', content: { confirm: true } } }
  t.same(await say(line(late)), [], 'and is not answered any more')
})

t.test('the first list, and no other, is the sign to load what calls need', async (t) => {
  const { say, listed } = await connected()
  await say(line(ping(1)))
  t.equal(listed(), 0)
  partial(t, await say(line({ jsonrpc: '2.0', id: 2, method: 'tools/list' })), [{ id: 2, result: { tools: [] } }])
  t.equal(listed(), 1)
  await say(line({ jsonrpc: '2.0', id: 3, method: 'tools/list' }))
  t.equal(listed(), 1)
})

/** How the person is asked through their client: by the address of the page over HTTP, by a form over stdio, in both eras (D157). */
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client as ModernClient } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { partial } from '../partial.js'
import { ALL, type Json, startApproving } from './bench.js'
import { connectModern, MODERN, PINNED, said, type Visit } from './sdk-clients.js'

/** A call of 2026-07-28 as it is on the wire, of a client that can open pages. */
function callOf(args: object, more: object = {}, elicitation: object | null = { url: {} }) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': { ...(elicitation && { elicitation }) },
  }
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: ALL, arguments: args, ...more, _meta: meta } }
}
const HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': ALL }

async function connect(t: Test, { service }: Awaited<ReturnType<typeof startApproving>>, visit: Visit) {
  const origin = await service.app.listen({ port: 0, host: '127.0.0.1' })
  return connectModern(t, origin, await service.tokenOf('ann'), visit)
}

t.test('a client that opens pages gets the link, and its call runs once somebody has approved', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const urls: string[] = []
  const client = await connect(t, bench, async (url) => {
    urls.push(url)
    // The person goes to the page, and the client says at once that they have: the call waits for them.
    setImmediate(() => void bench.decide(url.split('/').at(-1)!, 'approved', bench.person('ann')))
    return Promise.resolve('accept')
  })
  const result = await client.callTool({ name: ALL, arguments: {} })
  t.notOk(result.isError, JSON.stringify(result.content))
  t.equal(bench.provisioned(), 1)
  t.equal(urls.length, 1)
  partial(t, urls[0]!, /^https:\/\/mcp\.example\.test\/approve\/[\w-]{43}$/)
})

t.test('who declines in the client runs nothing, and the audit log has their no', async (t) => {
  const bench = await startApproving(t)
  await bench.draft('one')
  const client = await connect(t, bench, () => Promise.resolve('decline'))
  const result = await client.callTool({ name: ALL, arguments: {} })
  t.equal(result.isError, true)
  partial(t, said(result), { error: 'person_declined', params_hash: /^[0-9a-f]{64}$/ })
  t.equal(bench.provisioned(), 0)
  const decisions = bench.service.audit.filter(({ tool, phase }) => tool === ALL && phase === 'decision')
  const [asked, declined] = decisions as [Json, Json]
  t.equal(decisions.length, 2)
  partial(t, asked, { decision: 'denied', reason: 'confirm_required', approval: 'asked' })
  const { ts: _asked, call_id: question, request_id: _first, approval: _event, ...call } = asked
  const { ts: _said, call_id: answer, request_id: _second, ...no } = declined
  t.same(no, { ...call, reason: 'person_declined' }, 'whose call, which one, which approval: as in the question')
  t.not(answer, question)
  partial(t, await bench.desk.find(asked.approval_id), { state: 'pending' }, 'on the page it stays open')
})

t.test('a state is of one call of one caller, and good once', async (t) => {
  const bench = await startApproving(t)
  const href = await bench.draft('one')
  const [ann, bob] = [await bench.service.tokenOf('ann'), await bench.service.tokenOf('bob')]
  const send = async (token: string, body: object): Promise<Json> =>
    (await bench.service.send(token, body, { headers: HEADERS })).json()
  const asked = await send(ann, callOf({ hrefs: [href] }))
  partial(t, asked.result, {
    resultType: 'input_required',
    inputRequests: { approval: { method: 'elicitation/create', params: { mode: 'url', url: /\/approve\// } } },
    requestState: String,
  })
  const { requestState } = asked.result
  const answered = { requestState, inputResponses: { approval: { action: 'cancel' } } }
  const foreign: [string, string, object][] = [
    ['tampered with', ann, callOf({ hrefs: [href] }, { ...answered, requestState: `${requestState}x` })],
    ['of another call', ann, callOf({}, answered)],
    ['of another caller', bob, callOf({ hrefs: [href] }, answered)],
  ]
  for (const [why, token, body] of foreign) t.equal((await send(token, body)).error.code, -32602, why)
  const withNull = { hrefs: [href], dry_run: null }
  partial(t, said((await send(ann, callOf(withNull, answered))).result), { error: 'person_declined' })
  t.equal((await send(ann, callOf({ hrefs: [href] }, answered))).error.code, -32602, 'used')

  const unanswered = await send(ann, callOf({ hrefs: [href] }))
  const { requestState: second } = unanswered.result
  const again = await send(ann, callOf({ hrefs: [href] }, { requestState: second, inputResponses: {} }))
  t.equal(again.result.resultType, 'input_required', 'without an answer it is asked again')
  const plain = await send(ann, callOf({ hrefs: [href] }, {}, null))
  partial(t, plain.result, { resultType: 'complete', isError: true }, 'a client that cannot is told what to do')
  partial(t, said(plain.result), { error: 'approval_pending', approval_url: String })
  t.equal(bench.provisioned(), 0)
})

t.test('a repeated call waits 45 s for the page, not until the approval expires, also without streams', async (t) => {
  const bench = await startApproving(t)
  const href = await bench.draft('one')
  const ann = await bench.service.tokenOf('ann')
  const headers = { ...HEADERS, accept: 'application/json' }
  const send = async (body: object): Promise<Json> => (await bench.service.send(ann, body, { headers })).json()
  const { requestState } = (await send(callOf({ hrefs: [href] }))).result
  // The timer of the wait is fired by hand; all others run as they are.
  const started = new Promise<() => void>((fire) => {
    const original = globalThis.setTimeout
    const later = (run: () => void, ms?: number) => {
      if (ms !== 45_000) return original(run, ms)
      fire(run)
      return original(() => undefined, ms)
    }
    globalThis.setTimeout = Object.assign(later, original) as typeof setTimeout
    t.teardown(() => (globalThis.setTimeout = original))
  })
  const answer = send(callOf({ hrefs: [href] }, { requestState, inputResponses: { approval: { action: 'accept' } } }))
  ;(await started)()
  partial(t, said((await answer).result), { error: 'approval_pending' })
})

t.test('over stdio a form asks, whichever SDK the client is made with', async (t) => {
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 0 })
  t.teardown(() => simulator.close())
  const url = new URL(await simulator.listen({ port: 0 }))
  const folder = mkdtempSync(join(tmpdir(), 'asked-'))
  const server = {
    command: process.execPath,
    args: [bundleProgram('stdio')],
    cwd: folder,
    env: {
      PATH: process.env.PATH!,
      PCE_HOST: `http://${url.hostname}`,
      PCE_PORT: url.port,
      PCE_ORG_ID: String(simulator.orgId),
      API_KEY: simulator.credentials.key,
      API_SECRET: simulator.credentials.secret,
      MCP_CONFIRM_STDIO: '1',
      MCP_CONFIRM_TOOLS: 'create-label',
    },
  }
  const auditOf = (name: string) => ({ ...server.env, MCP_AUDIT_LOG_PATH: join(folder, name) })
  const decisionsIn = (name: string) =>
    readFileSync(join(folder, name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ phase }) => phase === 'decision')
  const labels = () =>
    simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/labels')).length
  let answer: Json = {}
  const questions: string[] = []
  const take = (params: Json) => {
    questions.push(params.message)
    return answer as { action: 'accept' }
  }

  const old = new Client({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } })
  old.setRequestHandler(ElicitRequestSchema, ({ params }) => take(params))
  await old.connect(new StdioClientTransport({ ...server, env: auditOf('v1'), stderr: 'ignore' }))
  const young = new ModernClient(
    { name: 'v2', version: '1' },
    { ...PINNED, capabilities: { elicitation: { form: {} } } },
  )
  young.setRequestHandler('elicitation/create', ({ params }) => take(params))
  await young.connect(new ModernStdio({ ...server, env: auditOf('v2'), stderr: 'ignore' }))
  t.teardown(() => Promise.all([old.close(), young.close()]))

  const answers: [Json, string | undefined][] = [
    [{ action: 'decline' }, 'person_declined'],
    [{ action: 'cancel' }, 'person_declined'],
    [{ action: 'accept', content: { confirm: false } }, 'person_declined'],
    [{ action: 'accept', content: { confirm: true } }, undefined],
  ]
  for (const [sdk, client] of [
    ['v1', old],
    ['v2', young],
  ] as const) {
    for (const [given, error] of answers) {
      answer = given
      const before = labels()
      const call = { name: 'create-label', arguments: { key: 'app', value: `asked-${sdk}`, dry_run: null } }
      const result = (await client.callTool(call)) as Json
      t.equal(result.isError === true ? said(result).error : undefined, error, `${sdk}: ${JSON.stringify(given)}`)
      t.equal(labels() - before, error === undefined ? 1 : 0)
    }
  }
  for (const sdk of ['v1', 'v2']) {
    const decisions = decisionsIn(sdk)
    const hash = decisions[0].params_hash as string
    partial(t, hash, /^[0-9a-f]{64}$/)
    const no = { decision: 'denied', reason: 'person_declined', params_hash: hash }
    const asked = { decision: 'denied', reason: 'confirm_required', params_hash: hash }
    t.same(
      decisions.map(({ decision, reason, params_hash }) => ({ decision, ...(reason && { reason }), params_hash })),
      [asked, no, asked, no, asked, no, asked, { decision: 'allowed', params_hash: hash }],
      sdk,
    )
    partial(t, decisions[1], { tool: 'create-label', role: 'admin', transport: 'stdio', call_id: String })
  }
  t.equal(questions.length, 8)
  partial(t, questions[0]!, /^create-label: /)

  const mute = new Client({ name: 'mute', version: '1' })
  await mute.connect(new StdioClientTransport({ ...server, stderr: 'ignore' }))
  const refused = (await mute.callTool({ name: 'create-label', arguments: { key: 'app', value: 'mute' } })) as Json
  partial(t, said(refused), { error: 'confirmation_unsupported' })
  await mute.close()
})

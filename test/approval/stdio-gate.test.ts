/** MCP_CONFIRM_STDIO: the gate before tools that need confirmation where nobody logs in (D147). */
import t, { type Test } from 'tap'
import { pino } from 'pino'
import { readConfig } from '../../config/index.js'
import { composeUnauthenticated } from '../../programs/composition/compose-unauthenticated.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import type { ToolCall } from '../../plugins/dispatcher/call.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools } from '../../tools/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'

async function start(t: Test, env: Record<string, string> = { MCP_CONFIRM_STDIO: '1' }) {
  const simulator = await createPceSimulator({ seed: 3, workloads: 20, flows: 10 })
  const url = await simulator.listen()
  t.teardown(() => simulator.close())
  const config = readConfig('stdio', {
    PCE_HOST: url,
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
    ...env,
  })
  const composed = composeUnauthenticated(config, { tools: catalogueOf(tools), log: pino({ level: 'silent' }) })
  t.teardown(() => composed.close())
  t.teardown(() => composed.callerContext.pce?.close())
  const dispatcher = createDispatcher(composed.dispatcher)
  const call = (name: string, args: Record<string, unknown>, more: Partial<ToolCall> = {}) =>
    dispatcher.dispatch(
      { name, arguments: args, requestId: 'r', sender: new AbortController(), progress() {}, ...more },
      composed.callerContext,
    )
  const provisioned = () =>
    simulator.requests.filter(({ method, path }) => method === 'POST' && /\/sec_policy$/.test(path)).length
  const draft = (name: string) => call('create-iplist', { name, ip_ranges: [{ from_ip: '192.0.2.1' }] })
  return { call, draft, provisioned }
}

t.test('what the person was shown and agreed to runs; anything else is asked', async (t) => {
  const { call, draft, provisioned } = await start(t)
  await draft('one')
  const asked = await call('provision-policy', {}, { canAsk: true })
  partial(t, asked, {
    ok: false,
    error: {
      code: 'confirm_required',
      details: {
        reason: 'missing',
        params_hash: /^[0-9a-f]{64}$/,
        summary: /^Makes a pending change active/,
        ask: undefined,
      },
      ask: { boundTo: /^[0-9a-f]{64}$/, message: /^provision-policy: Makes a pending change active.* Shall it run\?$/ },
    },
  })
  const { ask, details } = (asked as Extract<typeof asked, { ok: false }>).error
  t.notOk(JSON.stringify(details).includes(ask!.boundTo), 'no client sees what a consent is made of')
  t.equal(provisioned(), 0)

  await draft('two')
  const stale = await call('provision-policy', {}, { canAsk: true, consent: { boundTo: ask!.boundTo } })
  partial(t, stale, {
    ok: false,
    error: { code: 'confirm_required', details: { reason: 'stale' }, ask: { boundTo: String } },
  })
  t.equal(provisioned(), 0)
  const anew = (stale as Extract<typeof stale, { ok: false }>).error.ask!
  partial(t, await call('provision-policy', {}, { consent: { boundTo: anew.boundTo } }), { ok: true })
  t.equal(provisioned(), 1)
})

t.test('a client that cannot ask is refused these tools, and no others', async (t) => {
  const { call, draft, provisioned } = await start(t)
  partial(t, await draft('one'), { ok: true })
  partial(t, await call('provision-policy', {}), {
    ok: false,
    error: { code: 'confirmation_unsupported', ask: undefined },
  })
  partial(t, await call('provision-policy', {}, { confirmToken: 'x' }), { error: { code: 'confirmation_unsupported' } })
  t.equal(provisioned(), 0)
})

t.test('MCP_CONFIRM_TOOLS adds tools; what cannot be shown is not asked', async (t) => {
  const { call } = await start(t, { MCP_CONFIRM_STDIO: '1', MCP_CONFIRM_TOOLS: 'create-label' })
  const args = { key: 'app', value: 'reissue' }
  partial(t, await call('create-label', args, { canAsk: true }), {
    error: { code: 'confirm_required', ask: { message: /reissue.* Shall it run\?$/ } },
  })
  partial(t, await call('provision-policy', { hrefs: ['/orgs/1/sec_policy/draft/rule_sets/9999'] }, { canAsk: true }), {
    error: { code: 'confirm_required', ask: undefined, details: { preview_error: { error: 'not_pending' } } },
  })
})

t.test('without the variable every tool runs when it is called', async (t) => {
  const { call, draft, provisioned } = await start(t, {})
  await draft('one')
  partial(t, await call('provision-policy', {}), { ok: true })
  t.equal(provisioned(), 1)
})

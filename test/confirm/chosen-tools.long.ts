/** MCP_CONFIRM_TOOLS: the tools that an operator wants confirmed beside provision-policy and ringfence-batch. */
import t from 'tap'
import { readConfig } from '../../config/index.js'
import { startService, type Json } from '../contract/authenticated-service.js'
import { partial } from '../partial.js'

const confirmOf = (tools: readonly string[]) => ({ hmacKey: Buffer.alloc(32, 9), ttlSeconds: 120, tools })

t.test('a tool that does not exist, or only reads, stops the start', async (t) => {
  const start = (tools: string[]) => startService(t, { mode: 'shared', config: { confirm: confirmOf(tools) } })
  const refused = (tools: string[], message: string) =>
    t.rejects(start(tools), {
      name: 'StartupError',
      faults: [{ problem: `MCP_CONFIRM_TOOLS names tools that cannot be confirmed: ${message}` }],
    })
  await refused(['update-workloads'], "there is no tool 'update-workloads'")
  await refused(['get-labels', 'update-workload'], "'get-labels' only reads, so there is nothing to confirm")
  await refused(
    ['delete-pce-credentials', 'update-workload', 'register-pce-credentials'],
    "'delete-pce-credentials', 'register-pce-credentials' could not show what would be done, because the arguments are secret",
  )
  await refused(
    ['x', 'get-labels', 'y'],
    "there is no tool 'x', 'y'; 'get-labels' only reads, so there is nothing to confirm",
  )
})

t.test('where nobody could be asked, it stops the start', (t) => {
  const pce = { PCE_HOST: 'pce.example.com', API_KEY: 'k', API_SECRET: 's' }
  const listen = { host: '127.0.0.1', port: 0 }
  for (const env of [{ MCP_CONFIRM_TOOLS: 'update-workload' }, { MCP_APPROVAL: 'page' }] as Record<string, string>[]) {
    const [name] = Object.keys(env)
    const refused = new RegExp(`^${name} is set, but nobody logs in here, so no call would wait for its confirmation`)
    t.throws(() => readConfig('stdio', { ...pce, ...env }), { message: refused })
    t.throws(() => readConfig('http', { ...pce, ...env, MCP_DEV_INSECURE: '1' }, listen), { message: refused })
  }
  t.throws(() => readConfig('http', { ...pce, MCP_CONFIRM_STDIO: '1', MCP_DEV_INSECURE: '1' }, listen), {
    message: /^MCP_CONFIRM_STDIO is set, but nobody logs in here/,
  })
  partial(t, readConfig('stdio', { ...pce, MCP_CONFIRM_STDIO: '1', MCP_CONFIRM_TOOLS: 'update-workload' }), {
    confirm: { tools: ['update-workload'] },
    warnings: [],
  })
  t.end()
})

t.test('an added tool', async (t) => {
  const tools = ['update-workload', 'delete-label', 'provision-policy', 'create-ringfence', 'delete-ruleset']
  const estate = { pollsUntilDone: 1, retryAfter: 0 }
  const service = await startService(t, { mode: 'shared', estate, config: { confirm: confirmOf(tools) } })
  const { simulator } = service.pce
  const [ann, olga, rita] = await Promise.all(
    (['admin', 'operator', 'reader'] as const).map((role) => service.tokenOf(role, role)),
  )
  const writes = () => {
    const reading = /\/(?:async_queries|dependencies|impact)(?:\/|$)/
    const found = simulator.requests.filter(({ method, path }) => method !== 'GET' && !reading.test(path))
    simulator.clearRequests()
    return found.map(({ method, path }) => `${method} ${path}`)
  }
  const confirm = async (token: string, asked: Json): Promise<string> =>
    (await service.confirm(token, asked.confirm.body)).json().confirm_token
  const { workloads } = await service.call(olga!, 'get-workloads', {
    managed: true,
    max_results: 2,
    detail_level: 'full',
  })
  const [first] = workloads
  const args = { href: first.href, description: 'Moved' }

  await t.test('says in its description that it is confirmed', async (t) => {
    const list = await service.send(olga!, { jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const asking = list
      .json<Json>()
      .result.tools.filter(({ description }: Json) => / May need approval\./.test(description))
    t.same(
      asking.map(({ name }: Json) => name),
      ['create-ringfence', 'delete-label', 'delete-ruleset', 'provision-policy', 'ringfence-batch', 'update-workload'],
    )
  })

  await t.test('shows its dry run, and whoever may call it may confirm it', async (t) => {
    writes()
    const asked = await service.call(olga!, 'update-workload', args)
    partial(t, asked, {
      error: 'confirm_required',
      reason: 'missing',
      summary: /^Would change the workload .*: description\.$/,
      requests_total: 1,
      requests: [{ method: 'PUT', path: first.href, body: { description: 'Moved' } }],
      previous: { description: first.description ?? null },
      confirm: { body: { tool: 'update-workload', challenge: /^[0-9a-f]{64}$/ } },
    })
    t.same(writes(), [])
    partial(t, (await service.confirm(rita!, asked.confirm.body)).json(), { error: 'forbidden' })
    const token = await confirm(olga!, asked)
    partial(
      t,
      await service.call(olga!, 'update-workload', { ...args, description: 'Other' }, { confirm_token: token }),
      {
        reason: 'mismatch',
      },
    )
    partial(t, await service.call(olga!, 'update-workload', args, { confirm_token: token }), {
      updated_fields: ['description'],
    })
    t.same(writes(), [`PUT /api/v2${first.href}`])
    partial(t, await service.call(olga!, 'update-workload', args, { confirm_token: token }), {
      error: 'confirm_token_replay',
    })
  })

  await t.test('is stale once the dry run is another one, or was never shown', async (t) => {
    const renamed = { href: first.href, description: 'Again' }
    const asked = await service.call(olga!, 'update-workload', renamed)
    const token = await confirm(olga!, asked)
    const other = await service.call(ann!, 'update-workload', { ...args, description: 'By somebody else' })
    await service.call(
      ann!,
      'update-workload',
      { ...args, description: 'By somebody else' },
      {
        confirm_token: await confirm(ann!, other),
      },
    )
    writes()
    const stale = await service.call(olga!, 'update-workload', renamed, { confirm_token: token })
    partial(t, stale, { reason: 'stale', previous: { description: 'By somebody else' } })
    const { confirm_token: blind } = (
      await service.confirm(olga!, { tool: 'delete-label', params_hash: 'a'.repeat(64) })
    ).json()
    t.type(blind, 'string')
    const asking = await service.call(olga!, 'delete-label', { key: 'app', value: 'nope' })
    partial(t, asking, { error: 'confirm_required', preview_error: { error: 'not_found' } })
    t.same(writes(), [])
  })

  await t.test('that has a preview shows that: create-ringfence is bound as a batch is', async (t) => {
    const args = { app_name: 'payments', env_name: 'prod', ruleset_name: 'Confirmed' }
    writes()
    const asked = await service.call(olga!, 'create-ringfence', args)
    partial(t, asked, { error: 'confirm_required', summary: /^Writes 1 new rule set and \d+ rules? into the draft, / })
    t.same(writes(), [])
    const confirmed = await service.call(olga!, 'create-ringfence', args, {
      confirm_token: await confirm(olga!, asked),
    })
    partial(t, confirmed, { ruleset: { name: 'Confirmed' }, merged: false })
    t.equal(writes().length, 1 + asked.applications[0].rules)
    const again = await service.call(olga!, 'create-ringfence', args)
    t.match(again.summary, /^Nothing would be written\./)
  })

  await t.test('shows what traffic it would cut, which a redeemed call does not read again', async (t) => {
    const { rulesets } = await service.call(olga!, 'get-rulesets', { max_results: 1 })
    const args = { href: rulesets[0].href }
    const queries = () => {
      const found = simulator.requests.filter(({ method, path }) => method === 'POST' && /async_queries$/.test(path))
      simulator.clearRequests()
      return found.length
    }
    queries()
    const asked = await service.call(olga!, 'delete-ruleset', args)
    t.same(Object.keys(asked.observed.connections), [
      'cut',
      'cut_once_enforced',
      'undecided',
      'not_affected',
      'cut_if_alone',
    ])
    t.equal(queries(), 1)
    const done = await service.call(olga!, 'delete-ruleset', args, { confirm_token: await confirm(olga!, asked) })
    t.match(done.message, /^Deleted the rule set /)
    t.equal(queries(), 0)
  })
})

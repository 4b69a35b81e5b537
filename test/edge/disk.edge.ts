/** Disks that take no more: under the audit log nothing is changed any more, under the state file nothing that has to be remembered. */
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { partial } from '../partial.js'
import { createWorld, type World } from './support/authenticated-world.js'
import { callTool, confirm, mintFor, post } from './support/call-tool.js'
import { sendRequest, type Target } from './support/send-request.js'
import type { Program } from './support/start-program.js'
import { found } from './support/within.js'

/** From now on no file of the process grows beyond so many bytes (EFBIG); what it has written stays. Pipes are no files. */
const limitFiles = ({ pid }: Program, bytes: number | 'unlimited') =>
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`])

/** Questions that the PCE takes as POST. */
const QUESTION = /\/(impact|rule_search|dependencies)$/
const writesAt = ({ pce }: World) =>
  pce.simulator.requests.flatMap(({ method, path }) =>
    method === 'GET' || QUESTION.test(path) ? [] : `${method} ${path}`,
  )
const readiness = async (target: Target) => {
  const { status, body } = await sendRequest(target, { method: 'GET', path: '/readyz' })
  return [status, JSON.parse(body).status]
}
/** An answer of /readyz is good for a second. */
const becomes = (target: Target, status: number) =>
  found(async () => (await readiness(target))[0] === status, `/readyz says ${status}`)
const IP_RANGES = { ip_ranges: [{ from_ip: '10.0.0.0/8' }] }

t.test('a full disk under the audit log from the start', async (t) => {
  const world = await createWorld(t)
  const alice = await world.tokenOf('alice')
  const [{ target: full }, { target: good }] = await Promise.all([
    world.serve({ env: { MCP_AUDIT_LOG_PATH: '/dev/full', MCP_LOG_LEVEL: 'silent' } }),
    world.serve({ env: { MCP_AUDIT_LOG_PATH: world.auditPath } }),
  ])
  await callTool(good, alice, 'register-pce-credentials', world.pce.registration)
  const draft = (name: string) => callTool(good, alice, 'create-iplist', { name, ...IP_RANGES })
  await draft('first')
  const first = await mintFor(good, alice, 'provision-policy')
  const second = await mintFor(good, alice, 'provision-policy')
  world.pce.simulator.clearRequests()

  const redeem = (target: Target, token: string) =>
    callTool(target, alice, 'provision-policy', {}, { meta: { confirm_token: token } })
  partial(t, await redeem(full, first), { error: 'audit_unavailable', hint: /token is spent/ }, 'nobody knew before')
  partial(t, await redeem(good, first), { error: 'confirm_token_replay' }, 'as was said')
  const refused = await redeem(full, second)
  partial(t, refused, { error: 'audit_unavailable' }, 'now it is known, and asked first')
  t.notMatch(refused.hint, /token/)
  for (const [name, args] of [
    ['create-label', { key: 'app', value: 'unseen' }],
    ['delete-iplist', { name: 'first' }],
    ['ringfence-batch', {}],
    ['register-pce-credentials', { ...world.pce.registration, label: 'unseen' }],
    ['delete-pce-credentials', {}],
  ] as const)
    partial(t, await callTool(full, alice, name, args), { error: 'audit_unavailable' }, name)
  const asked = await callTool(good, alice, 'provision-policy')
  partial(t, await confirm(full, alice, asked.confirm.body), {
    status: 503,
    json: { error: 'audit_unavailable' },
  })
  const form = new URLSearchParams(
    Object.entries(world.pce.registration).map(([name, value]) => [name, String(value)] as [string, string]),
  )
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const sent = await sendRequest(full, {
    path: '/setup',
    headers: { ...headers, authorization: `Bearer ${alice}` },
    body: form.toString(),
  })
  t.same([sent.status, JSON.parse(sent.body).error], [503, 'audit_unavailable'], 'the form of /setup')

  t.same(writesAt(world), [], 'the PCE was not changed')
  partial(t, await callTool(full, alice, 'get-labels', { key: 'env' }), { labels: Array }, 'reading goes on')
  partial(t, await callTool(full, alice, 'check-pce-credentials-status'), { registered: true, label: undefined })
  await becomes(full, 503)
  t.same(await readiness(full), [503, 'unavailable'])
  t.equal((await sendRequest(full, { method: 'GET', path: '/healthz' })).status, 200)
  t.same(await readiness(good), [200, 'ready'])
  partial(t, await redeem(good, second), { version: Number }, 'the token that was not spent is good')
})

t.test('the disk under the audit log fills up, and is emptied again', async (t) => {
  const world = await createWorld(t)
  const alice = await world.tokenOf('alice')
  const old = `${JSON.stringify({ phase: 'outcome', tool: 'x'.repeat(200) })}\n`.repeat(5000)
  writeFileSync(world.auditPath, old, { mode: 0o600 })
  const server = await world.serve({ env: { MCP_AUDIT_LOG_PATH: world.auditPath, MCP_LOG_LEVEL: 'silent' } })
  const { target } = server
  await callTool(target, alice, 'register-pce-credentials', world.pce.registration)
  await callTool(target, alice, 'create-iplist', { name: 'pending', ...IP_RANGES })
  const meta = { confirm_token: await mintFor(target, alice, 'provision-policy') }
  await callTool(target, alice, 'get-labels', { key: 'env' })
  world.pce.simulator.clearRequests()

  // The next entry does not fit as a whole.
  limitFiles(server, statSync(world.auditPath).size + 100)
  partial(t, await callTool(target, alice, 'create-label', { key: 'app', value: 'a' }), { error: 'audit_unavailable' })
  partial(t, await callTool(target, alice, 'provision-policy', {}, { meta }), { error: 'audit_unavailable' })
  partial(t, await callTool(target, alice, 'create-label', { key: 'app', value: 'b' }), { error: 'audit_unavailable' })
  t.same(writesAt(world), [], 'the PCE was not changed')
  partial(t, await callTool(target, alice, 'get-labels', { key: 'env' }), { labels: Array }, 'reading goes on')
  await becomes(target, 503)
  t.same(await readiness(target), [503, 'unavailable'])

  limitFiles(server, 'unlimited')
  partial(t, await callTool(target, alice, 'create-label', { key: 'app', value: 'c' }), { label: { value: 'c' } })
  partial(t, await callTool(target, alice, 'provision-policy', {}, { meta }), { version: Number }, 'the token was kept')
  await becomes(target, 200)
  t.equal((await server.stop()).code, 0)
  const lines = readFileSync(world.auditPath, 'utf8').slice(old.length).trim().split('\n')
  const broken = lines.filter((line) => !line.endsWith('}'))
  t.equal(broken.length, 1, 'one line is cut off, and the next begins on a line of its own')
  const entries = lines.filter((line) => !broken.includes(line)).map((line) => JSON.parse(line))
  const gap = entries.findIndex(({ phase }) => phase === 'gap')
  partial(t, entries[gap], { since: /^\d{4}-/, ts: /^\d{4}-/ }, 'the log says since when it has a gap')
  partial(
    t,
    entries.slice(gap + 1).filter(({ decision }) => decision === 'allowed'),
    [{ tool: 'create-label' }, { tool: 'provision-policy' }],
    'and is complete after it',
  )
})

t.test('the disk under the state file fills up, and is emptied again', async (t) => {
  const world = await createWorld(t)
  const [alice, bob] = await Promise.all([world.tokenOf('alice'), world.tokenOf('bob')])
  const server = await world.serve({ env: { MCP_LOG_LEVEL: 'silent' } })
  const { target } = server
  await callTool(target, alice, 'register-pce-credentials', { ...world.pce.registration, label: 'before' })
  await callTool(target, alice, 'create-iplist', { name: 'pending', ...IP_RANGES })
  const meta = { confirm_token: await mintFor(target, alice, 'provision-policy') }
  const redeem = () => callTool(target, alice, 'provision-policy', {}, { meta })
  const register = (token: string, label: string) =>
    callTool(target, token, 'register-pce-credentials', { ...world.pce.registration, label })

  for (let round = 0; round < 2; round++) {
    limitFiles(server, 4096)
    world.pce.simulator.clearRequests()
    partial(t, await redeem(), { error: 'confirm_unavailable' }, 'what cannot be marked as used does not run')
    partial(
      t,
      await callTool(target, alice, 'provision-policy'),
      { error: 'confirm_unavailable' },
      'nor is it asked for',
    )
    partial(t, await register(bob, 'lost'), { error: 'keystore_unavailable' })
    partial(t, await register(alice, 'lost'), { error: 'keystore_unavailable' })
    partial(t, await callTool(target, alice, 'delete-pce-credentials'), { error: 'keystore_unavailable' })
    t.same(writesAt(world), [], 'the PCE was not changed')
    partial(t, await callTool(target, alice, 'get-labels', { key: 'env' }), { labels: Array }, 'reading goes on')
    await becomes(target, 503)
    t.equal((await post(target, alice, { jsonrpc: '2.0', id: 1, method: 'ping' })).status, 200, 'the process lives')

    limitFiles(server, 'unlimited')
    partial(t, await callTool(target, alice, 'check-pce-credentials-status'), { registered: true, label: 'before' })
    partial(t, await callTool(target, bob, 'check-pce-credentials-status'), { registered: false })
    await becomes(target, 200)
  }
  partial(t, await redeem(), { version: Number }, 'the token was not used')
  partial(t, await redeem(), { error: 'confirm_token_replay' })
  partial(t, await register(bob, 'kept'), { status: 'ok' })
  await server.stop('SIGKILL')
  const { target: again } = await world.serve()
  partial(t, await callTool(again, bob, 'check-pce-credentials-status'), { registered: true, label: 'kept' })
  partial(t, await callTool(again, alice, 'provision-policy', {}, { meta }), { error: 'confirm_token_replay' })
})

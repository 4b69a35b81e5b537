/** The ends that nobody wishes for: calls that outlive the drain, a second signal, errors that nothing has caught; and more calls than it takes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contains, partial } from '../partial.js'
import { createWorld, sharedEnv, type World } from './support/authenticated-world.js'
import { callTool, post, readToolAnswer } from './support/call-tool.js'
import { sendRequest, type Target } from './support/send-request.js'
import { found, within } from './support/within.js'

/** What http.ts gives running calls, in milliseconds. */
const DRAIN_MS = 25_000
/** What is logged when that time is over. */
const AFTER_DRAIN = 'calls that were still running at the end of the drain were aborted'

const MAX_IN_FLIGHT = 8

const stateful = (world: World) => ({
  ...sharedEnv(world),
  MCP_STATE_PATH: join(world.folder, 'state.db'),
  MCP_AUDIT_LOG_PATH: world.auditPath,
})

const CALLS = {
  read: { method: 'GET', name: 'get-labels', args: { key: 'env' } },
  change: { method: 'POST', name: 'create-label', args: { key: 'app', value: 'hanging' } },
}

/** A call that hangs at the PCE. */
async function hang({ pce }: World, target: Target, token: string, kind: keyof typeof CALLS = 'change') {
  const { method: wanted, name, args } = CALLS[kind]
  const held = pce.hold(({ method, path }) => method === wanted && path.endsWith('/labels'))
  const call = callTool(target, token, name, args).catch((error: unknown) => ({ broken: String(error) }))
  await within(held.reached, 'the PCE is asked')
  return { held, call }
}

const outcomes = (world: World, kind: keyof typeof CALLS = 'change') =>
  world.auditEntries().filter(({ tool, phase }) => tool === CALLS[kind].name && phase === 'outcome')

t.jobs = 6

for (const kind of ['read', 'change'] as const) {
  t.test(`a ${kind} that outlives the drain is cut off and reported`, async (t) => {
    const world = await createWorld(t)
    const alice = await world.tokenOf('alice')
    const server = await world.serve({ env: stateful(world) })
    const { held, call } = await hang(world, server.target, alice, kind)
    const begun = performance.now()
    const { code, stderr } = await server.stop()
    t.ok(performance.now() - begun >= DRAIN_MS, 'it had its time')
    t.equal(code, 1)
    contains(t, stderr, AFTER_DRAIN)
    await within(held.gone, 'the request to the PCE is given up')
    const reason = kind === 'read' ? 'cancelled' : 'outcome_unknown'
    partial(t, await within(call, 'an end of the call'), { error: reason }, 'its caller is told')
    partial(t, outcomes(world, kind), [{ outcome: 'error', reason }], 'the audit log has its outcome')
  })
}

t.test('a second signal exits at once', async (t) => {
  const world = await createWorld(t)
  const alice = await world.tokenOf('alice')
  const server = await world.serve({ env: stateful(world) })
  const { held, call } = await hang(world, server.target, alice)
  server.child.kill('SIGTERM')
  // The moment in which it says so is short; after it no connection is taken.
  const isDraining = async () => (await readiness(server.target).catch(() => 503)) === 503
  await found(isDraining, 'it says that it stops')
  const { code, stderr } = await server.stop('SIGINT')
  t.equal(code, 1)
  contains(t, stderr, 'second SIGINT, exiting')
  t.notOk(stderr.includes(AFTER_DRAIN), 'it waits for nothing')
  partial(t, await call, { broken: String })
  held.release()
})

const PLANTED = {
  'an exception that nothing catches': 'throw error',
  'a rejection that nothing handles': 'void Promise.reject(error)',
}
for (const [what, statement] of Object.entries(PLANTED)) {
  t.test(`${what} is logged and ends the process`, async (t) => {
    const world = await createWorld(t)
    const alice = await world.tokenOf('alice')
    const probe = join(world.folder, 'probe.mjs')
    const canary = `canary-${Math.random().toString(36).slice(2)}`
    // Not SIGUSR2, which tells the process to stop.
    writeFileSync(
      probe,
      `process.on('SIGWINCH', () => {
  const error = Object.assign(new Error('planted'), {
    authorization: '${canary}', api_key: '${canary}', api_secret: '${canary}', token: '${canary}', confirm_token: '${canary}',
  })
  ${statement}
})`,
    )
    const env = { MCP_AUDIT_LOG_PATH: world.auditPath, NODE_OPTIONS: `--import=${probe}` }
    const server = await world.serve({ env })
    const { registration } = world.pce
    partial(t, await callTool(server.target, alice, 'register-pce-credentials', registration), { status: 'ok' })
    const { held } = await hang(world, server.target, alice)
    server.child.kill('SIGWINCH')
    const { code, stdout, stderr } = await server.ended
    t.equal(code, 1)
    const lines = stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    partial(
      t,
      lines.find(({ level }) => level === 60),
      { msg: 'unexpected error, stopping', err: { message: 'planted', stack: /probe\.mjs/ } },
    )
    const [begun, aborted] = ['unexpected error, stopping', AFTER_DRAIN].map((words) =>
      Date.parse(lines.find((line) => JSON.stringify(line).includes(words))?.time),
    )
    t.ok(aborted! - begun! < DRAIN_MS, 'the call is not given the time of a drain')
    partial(t, outcomes(world), [{ outcome: 'error' }], 'what was under way has its outcome')
    const secrets = { canary, ...world.secrets, secret: registration.api_secret, key: registration.api_key, alice }
    for (const [name, secret] of Object.entries(secrets)) t.notOk((stdout + stderr).includes(secret), name)
    held.release()
  })
}

for (const statement of ['throw null', 'void Promise.reject()']) {
  t.test(`${statement}: an error without a value is still an error`, async (t) => {
    const world = await createWorld(t)
    const probe = join(world.folder, 'probe.mjs')
    writeFileSync(probe, `process.on('SIGWINCH', () => { ${statement} })`)
    const server = await world.serve({ env: { NODE_OPTIONS: `--import=${probe}` } })
    server.child.kill('SIGWINCH')
    const { code, stderr } = await server.ended
    t.equal(code, 1)
    contains(t, stderr, '"msg":"unexpected error, stopping"')
  })
}

t.test('ten times more calls than the limit', async (t) => {
  const world = await createWorld(t)
  const env = {
    ...stateful(world),
    MCP_MAX_IN_FLIGHT: String(MAX_IN_FLIGHT),
    MCP_MAX_IN_FLIGHT_PER_CALLER: '0',
  }
  const { target } = await world.serve({ env })
  const tokens = await Promise.all(Array.from({ length: 10 * MAX_IN_FLIGHT }, (_, n) => world.tokenOf(`person-${n}`)))
  const works = async (t: Test) =>
    partial(t, await callTool(target, tokens[0]!, 'get-labels', { key: 'env' }), { labels: Array })
  for (let round = 0; round < 3; round++) {
    const held = world.pce.hold(({ path }) => path.endsWith('/labels'))
    const params = { name: 'get-labels', arguments: { key: 'env' } }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    let isHeld = true
    const early: number[] = []
    const calls = tokens.map(async (token) => {
      const answer = await post(target, token, message)
      if (isHeld) early.push(answer.status)
      return answer
    })
    await found(() => early.length >= tokens.length - MAX_IN_FLIGHT, 'the surplus is refused at once')
    await within(held.reached, 'the PCE is asked')
    t.equal(await readiness(target), 200, 'it is ready all the same')
    isHeld = false
    held.release()
    const answers = await within(Promise.all(calls), 'an answer to each')
    const refused = answers.filter(({ status }) => status === 503)
    t.equal(refused.length, tokens.length - MAX_IN_FLIGHT)
    t.same([...new Set(early)], [503])
    t.ok(
      refused.every(({ headers }) => Number(headers['retry-after']) >= 1),
      'it is said when to try again',
    )
    partial(t, JSON.parse(refused[0]!.body), { error: { data: { error: 'overloaded', request_id: String } } })
    const admitted = answers.filter(({ status }) => status !== 503).map(readToolAnswer)
    t.equal(admitted.filter(({ labels }) => Array.isArray(labels)).length, MAX_IN_FLIGHT, 'whoever is let in is served')
    await works(t)
    t.equal(await readiness(target), 200)
  }
})

async function readiness(target: Target): Promise<number> {
  return (await sendRequest(target, { method: 'GET', path: '/readyz' })).status
}

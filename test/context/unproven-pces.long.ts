/** A place that has never answered a user as a PCE tells them nothing of itself, least of all by the time that a call takes (D84). */
import t from 'tap'
import { startAttempt } from '../../plugins/context/prove-pce.js'
import { freePort } from '../free-port.js'
import { makePki, person, REGISTER, registration, startPce, startStranger, startUserService } from './user-service.js'

const PATIENCE_MS = 1000
const pki = makePki(t)

t.test(
  'no failure of a place that never was a PCE is told early, tried twice or told in words of its own',
  async (t) => {
    const strangers = {
      silent: await startStranger(t, 'silent'),
      'plain http': await startStranger(t, 'plain http'),
      ssh: await startStranger(t, 'ssh'),
      closed: { port: await freePort(), connections: 0 },
    }
    const { call } = await startUserService(t, { pki, patienceMs: PATIENCE_MS, startAttempt })
    const answers = new Set<string>()
    for (const [what, stranger] of Object.entries(strangers)) {
      const reader = person(what, ['readers'])
      await call(reader, REGISTER, registration(stranger.port, 'key', 'secret'))
      const before = stranger.connections
      const startedAt = performance.now()
      const { request_id: _id, ...answer } = await call(reader, 'get-labels')
      const ms = performance.now() - startedAt
      answers.add(JSON.stringify(answer))
      t.ok(ms >= PATIENCE_MS - 5, `${what}: ${Math.round(ms)} ms`)
      t.ok(stranger.connections - before <= 1, `${what}: ${stranger.connections - before} connections`)
    }
    t.equal(answers.size, 1, [...answers].join())
  },
)

t.test('a PCE that has answered keeps its retries', async (t) => {
  const pce = await startPce(t, pki)
  const service = await startUserService(t, { pki })
  const ann = person('ann', ['readers'])
  const { key, secret } = pce.credentials
  pce.faults.add({ kind: 'status', path: /./, times: 1, status: 503 })
  const { connection } = await service.call(ann, REGISTER, registration(pce.port, key, secret))
  t.equal(connection.ok, false, 'it was down when it was registered')
  pce.faults.add({ kind: 'status', path: /./, times: 1, status: 503 })
  t.equal((await service.call(ann, 'get-labels')).error, 'pce_unreachable', 'and is tried once until it has answered')
  t.type((await service.call(ann, 'get-labels')).labels, Array)
  pce.faults.add({ kind: 'status', path: /labels/, times: 1, status: 503 })
  t.type((await service.call(ann, 'get-labels')).labels, Array, 'from then on a request is repeated')
  const bob = person('bob', ['readers'])
  await service.call(bob, REGISTER, registration(pce.port, key, 'wrong'))
  t.equal((await service.call(bob, 'get-labels')).http_status, 401, 'a refused key is said at once')
})

/** POST /confirm: who is given a token, for what, and what is said to everyone else. */
import { createHash } from 'node:crypto'
import t from 'tap'
import type { InjectOptions } from 'fastify'
import { partial } from '../partial.js'
import { startConfirming } from './harness.js'

const TOOL = 'provision-policy'
const HASH = createHash('sha256').update('{}').digest('hex')

t.test('POST /confirm', async (t) => {
  const bench = await startConfirming(t)
  const good = { tool: TOOL, params_hash: HASH }
  const last = () => bench.audit.at(-1)

  await t.test('issues a token with its lifetime and nothing else', async (t) => {
    const response = await bench.confirming(good)
    t.equal(response.statusCode, 200)
    partial(t, response.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
    const body = response.json()
    t.same(Object.keys(body), ['confirm_token', 'expires_in'])
    partial(t, body, { confirm_token: /^[\w-]+\.[\w-]+\.[\w-]+$/, expires_in: 120 })
    partial(t, last(), {
      phase: 'decision',
      decision: 'allowed',
      tool: TOOL,
      route: '/confirm',
      role: 'admin',
      iss: 'https://id.example.test',
      sub: 'ann',
      mode: 'per_user',
      transport: 'http',
      client: 'test/1',
      params_hash: HASH,
      confirm_jti: /^[0-9a-f]{32}$/,
      request_id: response.headers['x-request-id'] as string,
      ts: new Date(bench.clock.now).toISOString(),
    })
    t.notOk(JSON.stringify(bench.audit).includes(body.confirm_token))
    t.notOk(bench.lines.some((line) => line.includes(body.confirm_token)))
    t.ok(bench.lines.some((line) => line.includes('confirm token minted') && line.includes(last()!.confirm_jti!)))
  })

  await t.test('issues a different token each time', async (t) => {
    const tokens = await Promise.all(
      Array.from({ length: 20 }, async () => (await bench.mint(TOOL, HASH)).confirm_token),
    )
    t.equal(new Set(tokens).size, 20)
  })

  await t.test('refuses what the caller may not call', async (t) => {
    const cases: [as: string, body: object, status: number, code: string, more?: object][] = [
      ['ann', { ...good, tool: 'no-such-tool' }, 404, 'unknown_tool'],
      ['ann', { ...good, tool: '__proto__' }, 404, 'unknown_tool'],
      ['ann', { ...good, tool: 'PROVISION-POLICY' }, 404, 'unknown_tool'],
      ['ann', { ...good, tool: 'get-labels' }, 400, 'invalid_argument'],
      ['ann', { ...good, tool: 'create-ringfence' }, 400, 'invalid_argument'],
      ['olga', good, 403, 'forbidden', { allowed_roles: ['admin'] }],
      ['rita', good, 403, 'forbidden', { allowed_roles: ['admin'] }],
      ['nora', good, 403, 'forbidden_no_role'],
      ['overloaded', good, 403, 'forbidden_no_role', { message: 'Your token names no groups.' }],
      ['unreadable', good, 409, 'credentials_unreadable', { message: 'They cannot be read.' }],
      ['newcomer', good, 403, 'no_pce_credentials', { setup_path: '/setup', hint: /\/setup/ }],
    ]
    for (const [as, body, status, code, more = {}] of cases) {
      const entries = bench.audit.length
      const response = await bench.confirming(body, as)
      t.equal(response.statusCode, status, `${as} ${code}`)
      partial(t, response.json(), {
        error: code,
        message: String,
        request_id: response.headers['x-request-id'] as string,
        ...more,
      })
      t.equal(response.headers['cache-control'], 'no-store')
      t.equal(bench.audit.length, entries + 1, 'one entry')
      partial(t, last(), {
        phase: 'decision',
        decision: status === 403 || status === 409 ? 'denied' : 'error',
        reason: code as never,
        sub: as,
        route: '/confirm',
        params_hash: HASH,
        tool: (body as typeof good).tool,
      })
      t.notOk('confirm_jti' in last()!)
    }
  })

  await t.test('refuses every other body', async (t) => {
    const invalid: [why: string, body: unknown, ...paths: string[]][] = [
      ['nothing in it', {}, '/tool', '/params_hash'],
      ['no tool', { params_hash: HASH }, '/tool'],
      ['no hash', { tool: TOOL }, '/params_hash'],
      ['a tool that is no text', { ...good, tool: 5 }, '/tool'],
      ['an empty tool', { ...good, tool: '' }, '/tool'],
      ['a long tool', { ...good, tool: 'x'.repeat(129) }, '/tool'],
      ['capitals', { ...good, params_hash: HASH.toUpperCase() }, '/params_hash'],
      ['63 digits', { ...good, params_hash: HASH.slice(1) }, '/params_hash'],
      ['65 digits', { ...good, params_hash: `${HASH}0` }, '/params_hash'],
      ['a line end', { ...good, params_hash: `${HASH}\n` }, '/params_hash'],
      ['a hash in a list', { ...good, params_hash: [HASH] }, '/params_hash'],
      ['null', { ...good, params_hash: null }, '/params_hash'],
      ['a field too many', { ...good, sub: 'bob' }, '/sub'],
      ['a prototype', '{"tool":"provision-policy","params_hash":"' + HASH + '","__proto__":{}}', '/__proto__'],
      ['a list', [good], ''],
      ['a text', '"x"', ''],
      ['nothing at all', 'null', ''],
    ]
    for (const [why, body, ...paths] of invalid) {
      const response = await bench.confirming(body)
      t.equal(response.statusCode, 400, why)
      const { error, problems } = response.json<{ error: string; problems: { path: string }[] }>()
      t.equal(error, 'invalid_argument', why)
      t.same(
        problems.map(({ path }) => path),
        paths,
        why,
      )
      partial(t, last(), {
        decision: 'error',
        reason: 'invalid_argument',
        sub: 'ann',
        role: 'admin',
        route: '/confirm',
      })
    }
    for (const body of ['', '{', '{"tool"', '\u0000']) {
      const response = await bench.confirming(body)
      t.equal(response.statusCode, 400)
      partial(t, response.json(), { error: 'bad_request' }, JSON.stringify(body))
      partial(t, last(), { decision: 'error', reason: 'bad_request', sub: 'ann' })
    }
    const notText = Buffer.concat([Buffer.from('{"tool":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
    partial(t, (await bench.confirming('', 'ann', { payload: notText })).json(), { error: 'bad_request' })
  })

  await t.test('accepts only a few kilobytes of JSON', async (t) => {
    const send = (headers: Record<string, string>, payload: InjectOptions['payload'] = JSON.stringify(good)) =>
      bench.app.inject({ method: 'POST', url: '/confirm', headers: { 'x-user': 'ann', ...headers }, payload })
    const json = { 'content-type': 'application/json' }
    t.equal((await send({ 'content-type': 'application/json; charset=utf-8' })).statusCode, 200)
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/jsonx' },
      { ...json, 'content-encoding': 'gzip' },
    ]) {
      const response = await send(headers)
      t.equal(response.statusCode, 415, JSON.stringify(headers))
      partial(t, response.json(), { error: 'unsupported_media_type' })
      partial(t, last(), { reason: 'unsupported_media_type', sub: 'ann', iss: 'https://id.example.test', role: null })
    }
    t.equal((await send({ ...json, 'content-encoding': 'identity' })).statusCode, 200)

    const padded = (size: number) => JSON.stringify(good).padEnd(size, ' ')
    t.equal((await send(json, padded(4096))).statusCode, 200)
    const large = await send(json, padded(4097))
    t.equal(large.statusCode, 413)
    partial(t, large.json(), { error: 'payload_too_large' })
    partial(t, last(), { decision: 'error', reason: 'payload_too_large', sub: 'ann' })
  })

  await t.test('POST is the only method', async (t) => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
      const entries = bench.audit.length
      const response = await bench.app.inject({ method, url: '/confirm', headers: { 'x-user': 'ann' } })
      t.equal(response.statusCode, 405, method)
      t.equal(response.headers.allow, 'POST')
      if (method !== 'HEAD') partial(t, response.json(), { error: 'method_not_allowed' })
      t.equal(bench.audit.length, entries, 'asks for nothing, so there is nothing to enter')
    }
  })

  await t.test('issues no token that is not audited', async (t) => {
    bench.auditing.isFull = true
    const response = await bench.confirming(good)
    bench.auditing.isFull = false
    t.equal(response.statusCode, 503)
    partial(t, response.json(), { error: 'audit_unavailable' })
    t.notOk(response.body.includes('confirm_token'))

    bench.auditing.isFull = true
    t.equal((await bench.confirming(good, 'rita')).statusCode, 403, 'a refusal stays one')
    bench.auditing.isFull = false
    t.ok(bench.lines.some((line) => line.includes('the audit log cannot be written')))
  })

  await t.test('revokes an entry that may not have reached the disk, once', async (t) => {
    const entries = bench.audit.length
    bench.auditing.isStuck = true
    const response = await bench.confirming(good)
    bench.auditing.isStuck = false
    t.equal(response.statusCode, 503)
    partial(t, response.json(), { error: 'audit_unavailable' })
    t.notOk(response.body.includes('confirm_token'))
    const [granted, takenBack, ...more] = bench.audit.slice(entries)
    partial(t, granted, { decision: 'allowed', confirm_jti: /^[0-9a-f]{32}$/ })
    t.same(takenBack, { ...granted, decision: 'denied', reason: 'audit_unavailable' }, 'nobody got that token')
    t.same(more, [])
  })

  await t.test('does not grow the state file', async (t) => {
    const { statSync } = await import('node:fs')
    const size = () => statSync(`${bench.directory}/state.db`).size + statSync(`${bench.directory}/state.db-wal`).size
    const before = size()
    const call = { owner: { iss: 'i', sub: 's' }, tool: TOOL, paramsHash: HASH }
    for (let n = 0; n < Number(process.env.CONFIRM_MINTS ?? 1000); n++) await bench.confirmations.mint(call)
    t.equal(size(), before)
  })
})

t.test('challenges that cannot be read back', async (t) => {
  const bench = await startConfirming(t, {
    ports: ({ usedTokens, challenges }) => ({
      usedTokens,
      challenges: { ...challenges, get: () => Promise.reject(new Error('SQLITE_IOERR')) },
    }),
  })
  const response = await bench.confirming({ tool: TOOL, params_hash: HASH })
  t.equal(response.statusCode, 503)
  partial(t, response.json(), { error: 'confirm_unavailable' })
  t.notOk(response.body.includes('SQLITE'))
  partial(t, bench.audit.at(-1), { decision: 'denied', reason: 'confirm_unavailable' })
})

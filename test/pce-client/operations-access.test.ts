import { inspect } from 'node:util'
import t from 'tap'
import { partial } from '../partial.js'
import { clientOf, SECRET, startServer, USER, type Reply, type Responder } from './support.js'

let respond: Responder = () => ({})
const server = await startServer(t, (seen, index) => respond(seen, index))

function setup(answer: Responder | Reply, options: Parameters<typeof clientOf>[1] = {}) {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server, options)
}

const PASSWORD = 'p:ä ss"wörd'
const TOKEN = 'tok-of-a-login'
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const session = { href: '/users/7', auth_username: 'user_7', session_token: 'tok-of-a-session', later: true }
const loginPce: Responder = ({ method }) => (method === 'POST' ? { body: { auth_token: TOKEN } } : { body: session })

t.test('a login', async (t) => {
  const client = setup(loginPce)
  t.strictSame(await client.loginUser('ada@example.com', PASSWORD), session, 'gives the session as the PCE tells it')
  t.strictSame(server.requests(), ['POST /login_users/authenticate?pce_fqdn=127.0.0.1', 'GET /users/login'])
  t.equal(server.seen[0]?.headers.authorization, basic('ada@example.com', PASSWORD), 'credentials go in the header')
  t.equal(server.seen[0]?.body, '{}', 'and not in the body')
  t.equal(server.seen[1]?.headers.authorization, `Token token=${TOKEN}`)

  await client.getProductVersion().catch(() => undefined)
  t.equal(server.seen[2]?.headers.authorization, basic(USER, SECRET), 'the client keeps its own credentials')

  server.seen.length = 0
  await client.loginUser('ada', PASSWORD, {
    params: { pce_fqdn: 'pce.example.com' },
    json: { one_time_password: '123456' },
    headers: { Authorization: 'Basic eA==', 'x-trace': '1' },
    requestId: 'r-1',
  })
  t.strictSame(server.requests(), ['POST /login_users/authenticate?pce_fqdn=pce.example.com', 'GET /users/login'])
  t.strictSame(JSON.parse(server.seen[0]?.body ?? ''), { one_time_password: '123456' })
  t.equal(server.seen[0]?.headers.authorization, basic('ada', PASSWORD), 'a header of the caller’s does not win')
  for (const { headers } of server.seen) partial(t, headers, { 'x-trace': '1', 'x-request-id': 'r-1' })
})

t.test('a failed login reveals no secret', async (t) => {
  const at = (index: number, failure: Reply): Responder => {
    return (seen, asked) => (asked === index ? failure : loginPce(seen, asked))
  }
  const failures: [string, Responder, object, number][] = [
    ['refused', at(0, { status: 401 }), { name: 'PceApiError', status: 401 }, 1],
    ['a lost answer', at(0, { breaks: true }), { code: 'unreachable' }, 1],
    ['a server error', at(0, { status: 503 }), { code: 'api_error', status: 503 }, 1],
    ['no token', at(0, { body: {} }), { code: 'invalid_response' }, 1],
    ['an empty answer', at(0, {}), { code: 'invalid_response' }, 1],
    ['a token that expired', at(1, { status: 401 }), { name: 'PceApiError', status: 401 }, 2],
    ['a token that is no header', at(0, { body: { auth_token: `${TOKEN}\n` } }), { code: 'invalid_argument' }, 1],
    ['no session', at(1, {}), { code: 'invalid_response' }, 2],
    ['a session without its token', at(1, { body: { x: 1 } }), { code: 'invalid_response' }, 2],
    ['a session with an empty token', at(1, { body: { session_token: '' } }), { code: 'invalid_response' }, 2],
  ]
  const events: unknown[] = []
  for (const [name, pce, expected, requests] of failures) {
    const client = setup(pce, { onRetry: (event) => events.push(event) })
    const error: unknown = await client.loginUser('ada', PASSWORD).catch((thrown: unknown) => thrown)
    partial(t, error, expected, name)
    t.equal(server.seen.length, requests, `${name}: ${requests} requests`)
    const shown = inspect([error, client], { depth: 10, showHidden: true }) + JSON.stringify([error, client])
    for (const secret of [PASSWORD, basic('ada', PASSWORD).slice(6), TOKEN]) t.notOk(shown.includes(secret), name)
  }
  const client = setup(at(0, { status: 429, headers: { 'retry-after': '2' } }), {
    onRetry: (event) => events.push(event),
  })
  partial(t, await client.loginUser('ada', PASSWORD), { session_token: 'tok-of-a-session' }, 'too many are waited for')
  t.equal(events.length, 1)
  t.notMatch(JSON.stringify(events), /tok-|Basic|p:/)
})

t.test('the keys of an organisation', async (t) => {
  const key = (id: string) => ({ key_id: id, auth_username: `api_${id}`, href: `/orgs/1/api_keys/${id}` })
  const byType: Responder = ({ path }) => ({
    body: path.includes('type=user') ? [key('u1'), key('u2')] : [key('s1')],
  })
  let client = setup(byType)
  const ids = async (...args: Parameters<typeof client.getOrgApiKeys>) =>
    (await client.getOrgApiKeys(...args)).map(({ key_id }) => key_id)
  t.strictSame(await ids(), ['u1', 'u2', 's1'], 'are those of users and of service accounts')
  t.strictSame(server.requests(), ['GET /orgs/1/api_keys?type=user', 'GET /orgs/1/api_keys?type=service_account'])
  server.seen.length = 0
  t.strictSame(await ids({ params: { type: 'service_account', state: 'active' } }), ['s1'], 'or of one of them')
  t.strictSame(server.requests(), ['GET /orgs/1/api_keys?type=service_account&state=active'])

  const many = (count: number) => Array.from({ length: count }, (_, index) => key(String(index)))
  const cut: Responder = ({ path }) => {
    const wanted = Number(/max_results=(\d+)/.exec(path)?.[1] ?? 500)
    return { body: many(Math.min(700, wanted)), headers: { 'x-total-count': '700' } }
  }
  client = setup(cut)
  t.equal((await ids({ params: { type: 'user' } })).length, 700, 'a list that was cut is asked for again')
  client = setup(cut)
  t.equal((await ids({ params: { type: 'user', max_results: 500 } })).length, 500, 'unless the caller sets its length')
  t.equal(server.seen.length, 1)
  client = setup((seen) => (seen.path.includes('type=user') ? { body: [] } : { status: 403 }))
  await t.rejects(ids(), { name: 'PceApiError', status: 403 }, 'half of the keys is no answer')
})

t.test('a created key whose answer is lost', async (t) => {
  for (const answer of ['<html>', '[1', '7', '', 'null', '{}', '[]', '{"key_id":null}']) {
    const client = setup({ status: 201, headers: { 'content-type': 'application/json' }, body: answer })
    const unknown = { code: 'outcome_unknown', message: /was accepted \(status 201\).*cannot be read. Check before/ }
    await t.rejects(client.createUserApiKey(1), unknown, answer)
    await t.rejects(client.createServiceAccountApiKey('/orgs/1/service_accounts/x'), unknown, answer)
    await t.rejects(client.generatePairingKey('/orgs/1/pairing_profiles/1'), unknown, answer)
  }
  const client = setup({ status: 201, body: { other: 1 } })
  await t.rejects(client.generatePairingKey('/orgs/1/pairing_profiles/1'), { code: 'outcome_unknown' })
})

t.test('callers choose the expiry and name of a key', async (t) => {
  const client = setup({ body: { key_id: 'k' } })
  await client.createServiceAccountApiKey('/orgs/1/service_accounts/x', { json: { expires_in_seconds: -1 } })
  await client.createUserApiKey(1, { json: { name: 'Laptop' } })
  t.strictSame(
    server.seen.map(({ body }) => JSON.parse(body) as unknown),
    [{ expires_in_seconds: -1 }, { name: 'Laptop' }],
  )
})

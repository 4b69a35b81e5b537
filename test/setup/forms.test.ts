/** Registering, replacing, testing and removing with the form: the same calls of tools as over MCP (S6). */
import t from 'tap'
import { startPce } from '../contract/authenticated-service.js'
import { contains, partial } from '../partial.js'
import { formFor, startService } from './service.js'
import { hiddenFields } from './visitor.js'

let shared: ReturnType<typeof startService> | undefined
/** One service for the cases that need no other settings; each has a person of its own there. */
const sharedService = () => (shared ??= startService(t))

t.test('a registration', async (t) => {
  const { loggedIn, good, audit, log, statusOf, call, provider } = await sharedService()
  const alice = await loggedIn({ sub: 'alice' })

  const answer = await alice.submit('/setup', { ...good, label: 'payments' })
  t.equal(answer.statusCode, 303, 'is followed by a page of its own')
  t.equal(answer.headers.location, '/setup')

  const { body } = await alice.get('/setup')
  t.match(body, /role="status"[^]*Your PCE credentials are stored[^]*The PCE accepted them/, 'which says so')
  for (const fact of [good.pce_host, good.pce_port, good.pce_org_id, 'payments', 'checked']) {
    t.ok(body.includes(`<bdi>${fact}</bdi>`), fact)
  }
  t.notMatch((await alice.get('/setup')).body, /credentials are stored/, 'once')

  const { pce_host, pce_port, pce_org_id } = good
  const { last_check: lastCheck, ...status } = await statusOf('alice')
  partial(t, lastCheck, { at: String, ok: true })
  t.strictSame(
    status,
    {
      registered: true,
      mode: 'per_user',
      message: 'Your own PCE credentials are registered.',
      pce_host,
      pce_port: Number(pce_port),
      pce_org_id: Number(pce_org_id),
      tls_verify: true,
      label: 'payments',
    },
    'their MCP client has it too',
  )
  partial(t, await call(await provider.tokenFor({ sub: 'alice' }), 'check-pce-connection'), { connected: true })
  partial(t, await statusOf('bob'), { registered: false }, 'and nobody else')

  const entries = audit.filter(({ tool, sub }) => tool === 'register-pce-credentials' && sub === 'alice')
  partial(t, entries, [
    { phase: 'decision', decision: 'allowed', route: '/setup', sub: 'alice', role: 'operator' },
    { phase: 'outcome', outcome: 'success', route: '/setup' },
  ])
  for (const where of [body, JSON.stringify(audit), JSON.stringify(log)]) {
    t.notOk(where.includes(good.api_secret) || where.includes(good.api_key), 'the key is nowhere')
  }

  const other = formFor(await startPce(t))
  t.equal((await alice.submit('/setup', other)).statusCode, 303)
  const replaced = (await alice.get('/setup')).body
  t.ok(replaced.includes(`<bdi>${other.pce_port}</bdi>`), 'another one takes its place')
  t.notOk(replaced.includes(`<bdi>${good.pce_port}</bdi>`) || replaced.includes('payments'), 'altogether')
})

t.test('a key that the PCE refuses is stored with a warning', async (t) => {
  const { loggedIn, good, statusOf } = await sharedService()
  const alice = await loggedIn({ sub: 'refused' })
  t.equal((await alice.submit('/setup', { ...good, api_secret: 'SECRET-CANARY' })).statusCode, 303)
  partial(t, await statusOf('refused'), { registered: true })
  const { body } = await alice.get('/setup')
  t.match(
    body,
    /class="notice warning" role="alert"[^]*stored, but do not work yet[^]*does not accept the API key[^]*Not working/,
  )
  t.notMatch(body, 'SECRET-CANARY')
})

t.test(
  'problems are explained next to their field, and of the values only those that are no secret come back',
  async (t) => {
    const { loggedIn, statusOf, audit, log, ...service } = await startService(t, { allowedHosts: [] })
    const good = { ...service.good, pce_host: 'pce.example.org' }
    const alice = await loggedIn()
    const ports = ['0', '65536', '-1', '443.0', '4e2', '0x1bb', '+443', '0443', '４４３', '99999999999999999999', '1 2']
    const cases: [string, Record<string, string>, Record<string, RegExp>][] = [
      [
        'nothing entered',
        Object.fromEntries(Object.keys(good).map((name) => [name, ' '])),
        {
          'pce-host': /Enter the host name or address of your PCE\./,
          'pce-port': /Enter the port of your PCE\./,
          'pce-org-id': /Enter the ID of your organisation\./,
          'api-key': /Enter the API key\./,
          'api-secret': /Enter the API secret\./,
        },
      ],
      ...ports.map((port): (typeof cases)[number] => [
        `port ${port}`,
        { ...good, pce_port: port },
        { 'pce-port': /whole number from 1 to 65535\./ },
      ]),
      ['organisation 0', { ...good, pce_org_id: '0' }, { 'pce-org-id': /whole number/ }],
      ['a host that is refused', { ...good, pce_host: '169.254.169.254' }, { 'pce-host': /^.{10,}\.$/ }],
      [
        'a port of the system',
        { ...good, pce_port: '22' },
        { 'pce-host': /^Port 22 is not allowed for a PCE: use 443, or 1024 and above\.$/ },
      ],
      [
        'a host that is none',
        { ...good, pce_host: 'https://user:pw@pce.example.org/path' },
        { 'pce-host': /^.{10,}\.$/ },
      ],
      [
        'a check that is no choice',
        { ...good, tls_verify: 'maybe' },
        { 'tls-verify': /Choose one of the two options\./ },
      ],
      ['a check that is not offered', { ...good, tls_verify: 'false' }, { 'tls-verify': /operator does not allow/ }],
      ['a name that is too long', { ...good, label: 'x'.repeat(101) }, { label: /At most 100 characters\./ }],
      ['a key with a colon', { ...good, api_key: 'api_key:secret' }, { 'api-key': /contains no colon/ }],
      [
        'much at once',
        { ...good, pce_host: 'pce.example.org.', pce_org_id: '0', api_key: 'a:b' },
        { 'pce-org-id': /whole number/, 'api-key': /contains no colon/ },
      ],
    ]
    for (const [what, fields, expected] of cases) {
      const { body, statusCode, headers } = await alice.submit('/setup', fields)
      t.equal(statusCode, 400, what)
      t.match(headers['content-security-policy'], /^default-src 'none'; style-src 'sha256-/)
      t.match(body, /<title>Error: /)
      t.match(body, /role="alert" tabindex="-1" autofocus[^]*Nothing was stored/, 'a summary takes the focus')
      const wrong = [...body.matchAll(/<p class="error" id="([^"]*)-error">([^<]*)</g)].map(([, id, text]) => [
        id,
        text,
      ])
      t.strictSame(wrong.map(([id]) => id).sort(), Object.keys(expected).sort())
      for (const [id, text] of wrong) {
        partial(t, text, expected[id!]!)
        t.ok(body.includes(`<a href="#${id}">`), 'the summary leads to the field')
        t.match(body, new RegExp(`id="${id}"[^>]*aria-invalid="true" aria-describedby="${id}-error ${id}-hint"`))
      }
      const kept = ({ pce_host: host, pce_port: port, pce_org_id: org, label = '' }: Record<string, string>) => ({
        pce_host: host?.includes('@') ? '' : host?.trim(),
        pce_port: port?.trim(),
        pce_org_id: org?.trim(),
        label: label.length > 99 ? '' : label,
        api_key: '',
        api_secret: '',
      })
      t.same(valuesIn(body), kept(fields))
      for (const name of ['api_key', 'api_secret'] as const)
        t.notOk(fields[name]!.trim() !== '' && body.includes(fields[name]!), `${name} does not come back`)
    }
    partial(t, await statusOf(), { registered: false })
    const written = JSON.stringify([audit, log])
    t.notOk(
      written.includes(good.api_secret) || written.includes(good.api_key),
      'and nothing of it is written anywhere',
    )
  },
)

/** What the fields of the registration hold that people can see, by name. */
function valuesIn(body: string): Record<string, string> {
  const tags = [...body.matchAll(/<input[^>]*>/g)].map(([tag]) => tag).filter((tag) => !tag.includes('type="hidden"'))
  return Object.fromEntries(
    tags.map((tag) => [/name="([^"]*)"/.exec(tag)![1]!, /\svalue="([^"]*)"/.exec(tag)?.[1] ?? '']),
  )
}

t.test('a key in the wrong field is not shown again either', async (t) => {
  const { loggedIn, good } = await startService(t, { allowedHosts: [] })
  const alice = await loggedIn()
  const secret = 'b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184'
  const misplaced: Record<string, string>[] = [
    { pce_host: 'api_1f2e3d4c5b6a79881' },
    { pce_host: secret },
    { pce_port: secret.slice(0, 32) },
    { pce_org_id: `1 ${secret}` },
    { label: `key ${good.api_key}`, pce_port: '0' },
    { pce_host: good.api_secret, pce_port: '0' },
    { pce_host: `https://u:${secret.slice(0, 8)}@pce.example.org` },
  ]
  for (const fields of misplaced) {
    const { statusCode, body } = await alice.submit('/setup', { ...good, tls_verify: 'maybe', ...fields })
    t.equal(statusCode, 400)
    for (const [name, value] of Object.entries(fields)) {
      if (value !== '0') t.notOk(body.includes(value), `${name}: ${value}`)
    }
    t.equal(body.includes(good.api_secret), false)
  }
})

t.test('the usual port and organisation stand in the form, and what is registered where it is replaced', async (t) => {
  const { loggedIn, good } = await sharedService()
  const alice = await loggedIn({ sub: 'usual' })
  const keyless = { api_key: '', api_secret: '' }
  t.same(valuesIn((await alice.get('/setup')).body), { pce_port: '443', pce_org_id: '1', label: '', ...keyless })
  await alice.submit('/setup', { ...good, label: 'payments' })
  const { body } = await alice.get('/setup')
  t.same(valuesIn(body), { pce_port: good.pce_port, pce_org_id: good.pce_org_id, label: 'payments', ...keyless })
  t.match(body, /<option value="127\.0\.0\.1" selected>/)
})

t.test('a mistyped key does not take the place of one that works', async (t) => {
  const { loggedIn, good, statusOf, audit } = await sharedService()
  const alice = await loggedIn({ sub: 'mistyped' })
  await alice.submit('/setup', { ...good, label: 'payments' })
  t.notMatch((await alice.get('/setup')).body, /name="replace_anyway"/, 'there is nothing to insist on yet')
  const before = await statusOf('mistyped')

  const refused = await alice.submit('/setup', { ...good, api_secret: 'SECRET-CANARY', label: 'new' })
  t.equal(refused.statusCode, 400, 'an error of the form, not of a gateway that a proxy would answer for')
  t.match(
    refused.body,
    /role="alert"[^]*The new key was not accepted<[^]*The PCE does not accept the API key and secret\. Nothing was stored, and your registered credentials stay in use\. Correct the entry, or tick the box/,
  )
  t.match(refused.body, /<details open>\s*<summary>Replace the credentials/)
  t.match(refused.body, /<input\s+id="replace-anyway"\s+name="replace_anyway"\s+type="checkbox"\s+value="true"/)
  t.same(valuesIn(refused.body).label, 'new')
  t.notMatch(refused.body, 'SECRET-CANARY')
  t.same(await statusOf('mistyped'), before)
  const outcomes = audit.filter(
    ({ tool, phase, sub }) => tool === 'register-pce-credentials' && phase === 'outcome' && sub === 'mistyped',
  )
  partial(t, outcomes.at(-1), { outcome: 'error', reason: 'pce_error', route: '/setup' })

  const insisted = { ...good, api_secret: 'SECRET-CANARY', label: 'new', replace_anyway: 'true' }
  t.equal((await alice.submit('/setup', insisted)).statusCode, 303)
  t.match((await alice.get('/setup')).body, /stored, but do not work yet[^]*Not working[^]*<bdi>new<\/bdi>/)
})

t.test('where the operator lists the PCEs, they are offered', async (t) => {
  const optionsIn = (body: string) =>
    [...body.matchAll(/<option value="([^"]*)"\s*(selected)?/g)].map(([, ...at]) => at)
  const { loggedIn, good, pce } = await startService(t, {
    allowedHosts: ['pce.example.org', '127.0.0.1', '[fd00::1]:8443', 'pce.example.org'],
  })
  const alice = await loggedIn()
  const { body } = await alice.get('/setup')
  t.same(optionsIn(body), [
    ['', 'selected'],
    ['pce.example.org', undefined],
    ['127.0.0.1', undefined],
    ['[fd00::1]:8443', undefined],
  ])
  t.match(body, /id="pce-port-hint">Where the list has none\.</)
  t.notMatch(body, /<input\s+id="pce-port"[^>]*required/)

  const wrong = await alice.submit('/setup', { ...good, pce_org_id: '0' })
  t.equal(wrong.statusCode, 400)
  t.match(wrong.body, /<option value="127\.0\.0\.1" selected>/, 'an error keeps the choice')
  const elsewhere = await alice.submit('/setup', {
    ...good,
    pce_host: '[fd00::1]:8443',
    pce_port: '443',
    pce_org_id: '0',
  })
  t.match(elsewhere.body, /<option value="\[fd00::1\]:8443" selected>/)
  t.notMatch(elsewhere.body, /id="pce-host-error"|id="pce-port-error"/, 'whose port is in the list')

  const fixed = await startService(t, { allowedHosts: [`127.0.0.1:${pce.port}`] })
  const bob = await fixed.loggedIn({ sub: 'bob' })
  const page = (await bob.get('/setup')).body
  t.same(optionsIn(page), [[`127.0.0.1:${pce.port}`, undefined]])
  t.notMatch(page, /name="pce_port"/, 'nobody is asked for a port that is known')
  const { pce_port: _port, ...rest } = good
  const answer = await bob.submit('/setup', { ...rest, pce_host: `127.0.0.1:${pce.port}` })
  t.equal(answer.statusCode, 303)
  partial(t, await fixed.statusOf('bob'), { registered: true, pce_host: '127.0.0.1', pce_port: pce.port })
  t.match((await bob.get('/setup')).body, /<option value="127\.0\.0\.1:\d+" selected>/)
})

t.test('trims spaces around values', async (t) => {
  const { loggedIn, good } = await sharedService()
  const alice = await loggedIn({ sub: 'padded' })
  const padded = Object.fromEntries(Object.entries(good).map(([name, value]) => [name, ` ${value}\n`]))
  t.equal((await alice.submit('/setup', padded)).statusCode, 303)
  contains(t, (await alice.get('/setup')).body, 'The PCE accepted them')
})

t.test('unexpected fields', async (t) => {
  const { loggedIn, good, statusOf } = await sharedService()
  const alice = await loggedIn({ sub: 'unexpected' })
  const token = hiddenFields((await alice.get('/setup')).body, '/setup')
  const form = new URLSearchParams({ ...token, ...good }).toString()
  const more = [
    'role=admin',
    '__proto__=x',
    '__proto__[tls_verify]=false',
    'constructor=x',
    'pce_host=twice',
    'api_secret=',
  ]
  for (const field of more) {
    const { statusCode, body } = await alice.post('/setup', `${form}&${field}`)
    t.equal(statusCode, 400, field)
    t.match(body, /Nothing was stored/)
    t.notOk(body.includes(good.api_secret))
  }
  partial(t, await statusOf('unexpected'), { registered: false })
  t.notOk('tls_verify' in {}, 'and no prototype has changed')
})

t.test('the certificate check', async (t) => {
  const { loggedIn, good } = await startService(t, { allowInsecureTls: true })
  const alice = await loggedIn()
  t.equal((await alice.submit('/setup', { ...good, tls_verify: 'false' })).statusCode, 303)
  t.match((await alice.get('/setup')).body, /The PCE accepted them[^]*<bdi>not checked<\/bdi>/)
})

t.test('removing', async (t) => {
  const { loggedIn, good, audit, statusOf } = await sharedService()
  const alice = await loggedIn({ sub: 'removing' })
  await alice.submit('/setup', good)
  t.equal((await alice.submit('/setup/remove')).statusCode, 303)
  partial(t, await statusOf('removing'), { registered: false })
  t.match((await alice.get('/setup')).body, /credentials have been removed[^]*None/)
  t.equal((await alice.submit('/setup/remove')).statusCode, 303, 'twice is no error')
  t.match((await alice.get('/setup')).body, /no credentials to remove/)
  t.equal(
    audit.filter(
      ({ tool, phase, sub }) => tool === 'delete-pce-credentials' && phase === 'outcome' && sub === 'removing',
    ).length,
    2,
  )
})

t.test('testing the connection', async (t) => {
  const { loggedIn, good, audit, pce } = await sharedService()
  const alice = await loggedIn({ sub: 'testing' })
  t.equal((await alice.submit('/setup/test')).statusCode, 303)
  t.match((await alice.get('/setup')).body, /class="notice bad" role="alert"[^]*The PCE could not be used/)
  partial(
    t,
    audit.find(({ tool, sub }) => tool === 'check-pce-connection' && sub === 'testing'),
    { decision: 'denied', reason: 'no_pce_credentials', route: '/setup', client: 'lightMyRequest' },
    'is refused by the same gate as ever where nothing is registered',
  )
  await alice.submit('/setup', good)
  await alice.submit('/setup/test')
  t.match(
    (await alice.get('/setup')).body,
    /The PCE answered and accepts your credentials[^]*The answer took \d+ ms[^]*Working[^]*The PCE accepted the key[^]*just now/,
  )
  pce.simulator.faults.add({ kind: 'status', path: /./, status: 403, times: 9 })
  await alice.submit('/setup/test')
  t.match((await alice.get('/setup')).body, /class="notice bad" role="alert"[^]*The PCE could not be used/)
  pce.simulator.faults.clear()
})

t.test('people register, test and remove their key where assistants are offered none of that', async (t) => {
  const { loggedIn, good, call, provider } = await startService(t, {
    offer: { readOnly: true, tools: ['get-labels'], excluded: ['check-pce-connection'] },
  })
  const alice = await loggedIn({ sub: 'alice' })
  const labels = async () => call(await provider.tokenFor({ sub: 'alice' }), 'get-labels', { key: 'env' })
  partial(t, await labels(), { error: 'no_pce_credentials' })
  t.equal((await alice.submit('/setup', good)).statusCode, 303)
  t.match((await alice.get('/setup')).body, /Your PCE credentials are stored[^]*The PCE accepted them/)
  t.equal((await labels()).labels.length, 4)
  await alice.submit('/setup/test')
  t.match((await alice.get('/setup')).body, /The PCE answered and accepts your credentials/)
  await alice.submit('/setup/remove')
  partial(t, await labels(), { error: 'no_pce_credentials' })
})

t.test('tests and registrations are limited', async (t) => {
  const { loggedIn, good } = await sharedService()
  const alice = await loggedIn({ sub: 'eager' })
  const answers = []
  for (let i = 0; i < 6; i++) answers.push(await alice.submit('/setup', good))
  t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [303, 303, 303, 303, 303, 429])
  t.match(answers.at(-1)!.body, /Nothing was stored[^]*5 times a minute/)
  t.match(answers.at(-1)!.headers['retry-after'], /^[1-9]\d?$/)

  let test = await alice.submit('/setup/test')
  for (let i = 0; i < 10; i++) test = await alice.submit('/setup/test')
  t.equal(test.statusCode, 429)
  t.match(test.body, /Too many attempts/)
  t.match(test.headers['retry-after'], /^[1-9]\d?$/)
  t.equal((await (await loggedIn({ sub: 'patient' })).submit('/setup/test')).statusCode, 303, 'for each person')
})

t.test('programs with a bearer token', async (t) => {
  const { visitor, provider, good, statusOf } = await sharedService()
  const authorization = `Bearer ${await provider.tokenFor({ sub: 'robot' })}`
  const program = visitor({ authorization, accept: 'application/json' })
  const plain = { origin: '', 'sec-fetch-site': '' }

  const bad = await program.post('/setup', { ...good, pce_port: 'x' }, plain)
  t.equal(bad.statusCode, 400)
  partial(t, bad.json(), { error: 'invalid_argument', problems: [{ path: '/pce_port' }] })
  t.notOk(bad.body.includes(good.api_secret))

  const done = await program.post('/setup', good, plain)
  t.equal(done.statusCode, 200, 'need no CSRF token')
  partial(t, done.json(), { status: 'ok', connection: { ok: true } })
  t.notOk(done.body.includes(good.api_secret))
  partial(t, await statusOf('robot'), { registered: true })

  partial(t, (await program.post('/setup/test', '', plain)).json(), { connected: true })
  partial(t, (await program.post('/setup/remove', '', plain)).json(), { status: 'ok' })
  partial(t, (await program.post('/setup/test', '', plain)).json(), { error: 'no_pce_credentials' })
  partial(t, (await program.post('/setup/logout', '', plain)).json(), { status: 'ok' })

  const anything = { ...plain, accept: '*/*' }
  const redirected = await program.post('/setup', good, anything)
  t.equal(redirected.statusCode, 303, 'one that takes anything is sent to the page')
  partial(
    t,
    (await program.post('/setup', {}, anything)).json(),
    { error: 'invalid_argument' },
    'and reads errors as JSON',
  )
})

t.test('bodies', async (t) => {
  const { loggedIn, good, refusals } = await sharedService()
  const alice = await loggedIn({ sub: 'bodies' })
  const token = hiddenFields((await alice.get('/setup')).body, '/setup')
  const large = await alice.post('/setup', { ...token, ...good, label: 'x'.repeat(16 * 1024) })
  t.equal(large.statusCode, 413)
  t.match(large.body, /payload_too_large/)
  const types = {
    'text/plain': `_csrf=${token._csrf}`,
    'application/json': JSON.stringify({ ...token, ...good }),
    'multipart/form-data; boundary=x': `--x\r\ncontent-disposition: form-data; name="pce_host"\r\n\r\na\r\n--x--`,
  }
  for (const [type, body] of Object.entries(types)) {
    const answer = await alice.post('/setup', body, { 'content-type': type })
    t.equal(answer.statusCode, 415, type)
    contains(t, answer.body, 'application/x-www-form-urlencoded')
  }
  const packed = await alice.post('/setup', { ...token, ...good }, { 'content-encoding': 'gzip' })
  t.equal(packed.statusCode, 415, 'compressed')
  const own = refusals().filter(({ sub }) => sub === 'bodies')
  t.strictSame(
    own.map(({ reason }) => reason),
    ['payload_too_large', ...Array<string>(4).fill('unsupported_media_type')],
    'each is in the audit log',
  )
  partial(t, own[0], {
    route: '/setup',
    tool: 'register-pce-credentials',
    sub: 'bodies',
    role: 'operator',
    client: 'lightMyRequest',
  })
})

t.test('what a PCE says of an error hides nothing on the page', async (t) => {
  const { loggedIn, good, pce } = await sharedService()
  const alice = await loggedIn({ sub: 'hidden' })
  await alice.submit('/setup', good)
  const hidden = '\u202E\u{E0041}\u200B\u{F0041}\u2800'
  const body = [{ token: `refused${hidden}`, message: `Not for you${hidden}` }]
  pce.simulator.faults.add({ kind: 'status', path: /./, times: 1, status: 403, body })
  await alice.submit('/setup/test')
  const page = (await alice.get('/setup')).body
  const shown = '⟨U+202E⟩⟨U+E0041⟩⟨U+200B⟩⟨U+F0041⟩⟨U+2800⟩'
  contains(t, page, `refused${shown}: Not for you${shown}`)
  t.notMatch(page, /[\u202E\u200B\u2800\u{E0041}\u{F0041}]/u)
})

/** Who sees what at /approve, who decides, and what never counts there (D153 to D155). */
import Database from 'libsql'
import t, { type Test } from 'tap'
import type { ApprovalState } from '../../schemas/approvals.js'
import { contains, partial } from '../partial.js'
import { GROUP_OF } from '../contract/authenticated-service.js'
import { hiddenFields, type Visitor } from '../setup/visitor.js'
import { quote } from '../../domain/text/escape-text.js'
import { SMALL } from './desk.js'
import { startPages } from './pages-service.js'
import { GUARDRAILS } from './samples.js'

const JSON_ONLY = { accept: 'application/json' }
const OPERATOR = { sub: 'oscar', groups: [GROUP_OF.operator] }

/** Fills in and sends the form of the decision. */
async function decide(visitor: Visitor, id: string, verdict: 'approve' | 'deny', note = '') {
  const { body } = await visitor.get(`/approve/${id}`)
  return visitor.post(`/approve/${id}`, { ...hiddenFields(body, `/approve/${id}`), verdict, note })
}

/** A page without what differs from one request to the next. */
const bare = ({ body, statusCode }: { body: string; statusCode: number }) =>
  `${statusCode} ${body.replace(/request <code>[^<]*<\/code>/, '')}`

t.test('the login leads back to the page it was begun for', async (t) => {
  for (const [mode, home] of Object.entries({ shared: '/approve', per_user: '/setup' } as const)) {
    const { ask, visitor, provider } = await startPages(t, { mode: mode as 'shared' })
    const { id } = await ask()
    const browser = visitor()
    const first = await browser.get(`/approve/${id}`)
    partial(t, first, { statusCode: 302, headers: { location: `${home}/login?to=/approve/${id}` } })
    const asked = (await browser.get(first.headers.location as string)).headers.location as string
    t.equal(new URL(asked).searchParams.get('redirect_uri'), `https://mcp.example.test${home}/callback`, mode)
    t.equal(new URL(asked).searchParams.get('max_age'), null, 'whoever is logged in there is let in')
    const back = provider.comeBack(asked, { groups: [GROUP_OF.admin] })
    const done = await browser.get(`${home}/callback?${back.toString()}`)
    t.equal(done.headers.location, `/approve/${id}`)
    t.equal((await browser.get(`/approve/${id}`)).statusCode, 200)
  }
})

t.test('a login leads to no other place', async (t) => {
  const { visitor, provider } = await startPages(t)
  const places = [
    'https://evil.example/',
    '//evil.example',
    '/approve/../x',
    '/approve/x',
    '/mcp',
    `/approve/${'a'.repeat(43)}/x`,
  ]
  for (const to of [...places, `/approve/${'a'.repeat(42)}%0a`]) {
    const browser = visitor()
    const asked = (await browser.get(`/approve/login?to=${encodeURIComponent(to)}`)).headers.location as string
    const back = provider.comeBack(asked).toString()
    t.equal((await browser.get(`/approve/callback?${back}`)).headers.location, '/approve', to)
  }
})

t.test('an Authorization header does not count', async (t) => {
  const { ask, decided, visitor, loggedIn, provider } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const token = await provider.tokenFor({ groups: [GROUP_OF.admin] })
  const form = hiddenFields((await alice.get(`/approve/${id}`)).body, `/approve/${id}`)
  for (const authorization of [`Bearer ${token}`, 'Basic YTpi', 'x']) {
    for (const who of [alice, visitor()]) {
      for (const path of ['/approve', `/approve/${id}`]) {
        const page = await who.get(path, { authorization, ...JSON_ONLY })
        t.equal(page.statusCode, 403, `${path} with ${authorization.slice(0, 10)}`)
        partial(t, page.json(), {
          error: 'forbidden',
          message: /logged in with a browser\. An access token does not count/,
        })
      }
      const sent = await who.post(`/approve/${id}`, { ...form, verdict: 'approve' }, { authorization, ...JSON_ONLY })
      partial(t, sent.json(), { error: 'forbidden' })
    }
  }
  t.same(decided(), [])
  t.equal((await decide(alice, id, 'approve')).statusCode, 303, 'the session goes on')
})

t.test('a program without a login is told where the page belongs', async (t) => {
  const { ask, visitor } = await startPages(t)
  const { id } = await ask()
  for (const accept of ['application/json', '*/*', '']) {
    const answer = await visitor().get(`/approve/${id}`, { accept })
    t.equal(answer.statusCode, 403)
    t.notOk(answer.headers['www-authenticate'], 'and not asked for a token')
    partial(t, answer.json(), { error: 'forbidden', hint: /Give the person the address/ })
  }
  const form = await visitor().post(`/approve/${id}`, { verdict: 'approve' })
  t.equal(form.statusCode, 401)
  t.match(form.body, new RegExp(`Please log in[^]*href="/approve/${id}"`), 'a browser is led to the login')
})

t.test('what is not yours is what is not there', async (t) => {
  const { ask, shown, decided, loggedIn, provider } = await startPages(t)
  const { id } = await ask()
  const foreign = await ask({ owner: { iss: 'https://other.example', sub: OPERATOR.sub } })
  const oscar = await loggedIn(OPERATOR)
  const unknown = await oscar.get(`/approve/${'A'.repeat(43)}`)
  t.equal(unknown.statusCode, 404)
  t.match(unknown.body, /There is no such request[^]*href="\/approve"/)
  for (const path of [id, foreign.id, 'x', `${id}x`, 'login.', encodeURIComponent('../x')])
    t.equal(bare(await oscar.get(`/approve/${path}`)), bare(unknown), path)
  t.same(shown(), [], 'nothing was shown to them')

  const own = await ask({ owner: { iss: provider.issuer, sub: OPERATOR.sub } })
  const { _csrf } = hiddenFields((await oscar.get(`/approve/${own.id}`)).body, '/approve/logout')
  const answers = await Promise.all(
    [id, 'A'.repeat(43)].map((path) => oscar.post(`/approve/${path}`, { _csrf: _csrf!, verdict: 'approve' })),
  )
  t.same(answers.map(bare), [bare(unknown), bare(unknown)], 'a form says no more')
  t.same(decided(), [])
})

t.test('the page says who asks for what', async (t) => {
  const { ask, shown, loggedIn, provider } = await startPages(t)
  const request = await ask({ ownerName: 'Alice Ahrens', ago: 3 * 60_000 })
  const { body, statusCode } = await (await loggedIn({ sub: 'adam' })).get(`/approve/${request.id}`)
  t.equal(statusCode, 200)
  const text = body
    .replace(/<style>[^]*?<\/style>/, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
  for (const fact of [
    'Approve “Provision Policy”?',
    'Who asks Alice Ahrens ( alice )',
    `logged in at ${provider.issuer}`,
    'Through desktop-client',
    'PCE https://pce.example.test:8443 org 1',
    'Tool Provision Policy provision-policy',
    '3 minutes ago',
    'in 11 minutes',
    'You are adam admin',
    'You decide as an admin about the call of Alice Ahrens',
    'Workloads affected 12',
    'by bob@example.com',
    'before: from_ip 10.0.9.1',
    'after: from_ip 10.0.1.0/24',
    '1 entry stays',
    '▲ opens more',
  ])
    contains(t, text, fact)
  t.same(shown(), [`adam ${request.id}`])
})

t.test('the page loads nothing, runs no script and is in no frame', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  for (const path of [`/approve/${id}`, '/approve', `/approve/${'A'.repeat(43)}`]) {
    const { body, headers } = await alice.get(path)
    t.match(
      headers['content-security-policy'],
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    )
    t.notMatch(body, /<script|\son[a-z]+=|javascript:|style="|(?:src|href)="https?:/i)
    partial(t, headers, {
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    })
  }
})

t.test('approving and denying', async (t) => {
  const { ask, decided, loggedIn } = await startPages(t)
  const adam = await loggedIn({ sub: 'adam' })

  const first = await ask()
  const yes = await decide(adam, first.id, 'approve')
  partial(t, yes, { statusCode: 303, headers: { location: `/approve/${first.id}` } })
  const approved = await adam.get(`/approve/${first.id}`)
  t.match(approved.body, /role="status"[^]*Approved[^]*<bdi>adam<\/bdi>[^]*– you[^]*just now[^]*may run once/)
  t.notMatch(approved.body, /name="verdict"/, 'there is nothing left to decide')

  const second = await ask()
  t.equal((await decide(adam, second.id, 'deny', ' not \r\n before\tFriday ')).statusCode, 303)
  t.match(
    (await adam.get(`/approve/${second.id}`)).body,
    /Denied[^]*<q><bdi>not before Friday<\/bdi><\/q>[^]*does not run/,
  )
  t.same(decided(), [
    ['approved', 'adam', undefined],
    ['denied', 'adam', 'not before Friday'],
  ])
})

t.test('a decision in a second tab', async (t) => {
  const { ask, decided, loggedIn } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const adam = await loggedIn({ sub: 'adam' })
  const tab = hiddenFields((await alice.get(`/approve/${id}`)).body, `/approve/${id}`)
  t.equal((await decide(adam, id, 'deny', 'no')).statusCode, 303)
  const late = await alice.post(`/approve/${id}`, { ...tab, verdict: 'approve' })
  t.equal(late.statusCode, 409)
  t.match(late.body, /It had been decided before[^]*Your approval changed nothing[^]*Denied by[^]*adam/)
  t.equal(decided().length, 1)
})

t.test('every state has words', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const alice = await loggedIn()
  const words: Record<ApprovalState, RegExp> = {
    pending: /Approve this call/,
    approved: /may run once, exactly as shown here/,
    denied: /does not run: a denial holds for exactly this call of this person, until/,
    used: /was let run, once/,
    void: /has changed since, or the person who decided is no longer/,
    expired: /was not repeated in time/,
    revoked: /An admin took it back; the audit log says who\. The call does not run/,
  }
  for (const [state, text] of Object.entries(words) as [ApprovalState, RegExp][]) {
    const { id } = await ask({ state, by: { sub: 'adam' } })
    const { body, statusCode } = await alice.get(`/approve/${id}`)
    t.equal(statusCode, 200, state)
    t.ok(text.test(body), `${state} is explained`)
    if (state !== 'pending') t.notMatch(body, /name="verdict"/)
  }
})

t.test('an expired request', async (t) => {
  const { ask, loggedIn, clock } = await startPages(t)
  const { id } = await ask({ ago: 14 * 60_000 })
  const alice = await loggedIn()
  const tab = hiddenFields((await alice.get(`/approve/${id}`)).body, `/approve/${id}`)
  clock.offset = 60_001
  const late = await alice.post(`/approve/${id}`, { ...tab, verdict: 'approve' })
  t.equal(late.statusCode, 410)
  t.match(late.body, /Nothing was decided[^]*came too late[^]*Nobody decided in time/)
  t.match((await alice.get(`/approve/${id}`)).body, /Expired[^]*Nobody decided in time[^]*<dt>Until</)
  t.notMatch((await alice.get('/approve')).body, new RegExp(id), 'it waits for nobody any more')
})

t.test('two-person: whoever asked watches', async (t) => {
  const { ask, decided, loggedIn } = await startPages(t, { method: 'two-person' })
  const { id } = await ask()
  const alice = await loggedIn()
  const { body } = await alice.get(`/approve/${id}`)
  t.match(
    body,
    /Not yours to decide[^]*a person with the role admin who is not you[^]*<code>https:\/\/mcp\.example\.test\/approve\//,
  )
  t.notMatch(body, /name="verdict"/)
  const forced = await alice.post(`/approve/${id}`, { ...hiddenFields(body, '/approve/logout'), verdict: 'approve' })
  t.equal(forced.statusCode, 403)
  t.same(decided(), [])
  t.match((await alice.get('/approve')).body, /Nothing waits for you[^]*Yours, waiting for somebody else/)
  const adam = await loggedIn({ sub: 'adam' })
  t.match((await adam.get(`/approve/${id}`)).body, /who cannot approve it/)
  t.equal((await decide(adam, id, 'approve')).statusCode, 303)
})

t.test('two persons: the page counts, names and asks for another one', async (t) => {
  const { ask, decided, loggedIn } = await startPages(t)
  const { id } = await ask({ persons: 2, guardrails: GUARDRAILS })
  const alice = await loggedIn()
  const own = (await alice.get(`/approve/${id}`)).body
  t.match(own, /0 of 2 approvals[^]*Not yours to decide[^]*two others decide/)
  t.notMatch(own, /name="verdict"/)
  t.match(own, /Workloads affected: <b>1,200<\/b>, of at most\s+<b>50<\/b> without two people/)
  t.match(
    own,
    /Overrides the freeze\s+<b><bdi>Fri 18:00 - Mon 06:00 Europe\/Berlin<\/bdi><\/b\s*>, for this call alone/,
  )
  contains(t, own, 'The freeze runs until <b>30 Nov 2026, 05:00 UTC</b>.')

  const adam = await loggedIn({ sub: 'adam' })
  t.match((await adam.get('/approve')).body, /Waiting for you[^]*0 of 2 approvals/)
  t.match((await adam.get(`/approve/${id}`)).body, /is the first of two approvals: nothing runs until another admin/)
  t.equal((await decide(adam, id, 'approve')).statusCode, 303)
  const half = (await adam.get(`/approve/${id}`)).body
  t.match(half, /1 of 2 approvals, by[^]*adam[^]*<time[^]*You have approved it, as the first of two/)
  t.notMatch(half, /value="approve"/)
  contains(t, half, 'value="deny"')
  t.match((await adam.get('/approve')).body, /Nothing waits for you[^]*approved by you, waiting for somebody else/)
  const forced = await adam.post(`/approve/${id}`, { ...hiddenFields(half, `/approve/${id}`), verdict: 'approve' })
  t.equal(forced.statusCode, 409)
  contains(t, forced.body, 'You have approved it before')

  const bea = await loggedIn({ sub: 'bea' })
  t.match((await bea.get(`/approve/${id}`)).body, /1 of 2 approvals, by[^]*adam[^]*lets this call run once/)
  t.equal((await decide(bea, id, 'approve')).statusCode, 303)
  t.match((await bea.get(`/approve/${id}`)).body, /1 of 2 approvals, by[^]*adam[^]*2 of 2 approvals, by[^]*bea/)
  t.same(
    decided().map(([event, sub]) => [event, sub]),
    [['approved', 'bea']],
  )
})

t.test('the list', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const alice = await loggedIn()
  t.match((await alice.get('/approve')).body, /Nothing waits for you/)
  const mine = await ask()
  const theirs = await ask({ owner: { ...mine.owner, sub: 'oscar' }, ownerName: 'Oscar <b>' })
  const { body } = await alice.get('/approve')
  for (const { id } of [mine, theirs]) contains(t, body, `href="/approve/${id}"`)
  contains(t, body, 'Oscar &#60;b&#62;')
  const oscar = await (await loggedIn(OPERATOR)).get('/approve')
  contains(t, oscar.body, theirs.id)
  t.notMatch(oscar.body, new RegExp(mine.id), "others' are not listed")
})

t.test('forms that are not of the page', async (t) => {
  const { ask, decided, loggedIn, audit } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const path = `/approve/${id}`
  const good = { ...hiddenFields((await alice.get(path)).body, path), verdict: 'approve' }
  const adam = await loggedIn({ sub: 'adam' })
  const theirs = hiddenFields((await adam.get(path)).body, path)
  const forged: Record<string, [Record<string, string>, Record<string, string>?]> = {
    'without a token': [{ verdict: 'approve' }],
    'with a made-up token': [{ ...good, _csrf: 'x' }],
    "with somebody else's token": [{ ...good, ...theirs }],
    'from another site': [good, { 'sec-fetch-site': 'cross-site' }],
    'from another origin': [good, { origin: 'https://evil.example' }],
  }
  for (const [what, [fields, headers]] of Object.entries(forged)) {
    const answer = await alice.post(path, fields, headers)
    t.equal(answer.statusCode, 403, what)
    contains(t, answer.body, 'form_expired')
  }
  const refused = audit.filter(({ reason }) => reason === 'form_expired')
  t.equal(refused.length, Object.keys(forged).length, 'each is audited')
  partial(t, refused[0], {
    decision: 'denied',
    reason: 'form_expired',
    route: '/approve',
    sub: 'alice',
    mode: 'shared',
  })
  t.same(decided(), [])
})

t.test('forms that say neither yes nor no', async (t) => {
  const { ask, decided, loggedIn } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const path = `/approve/${id}`
  const token = hiddenFields((await alice.get(path)).body, path)
  const bodies = [
    '',
    'verdict=',
    'verdict=approved',
    'verdict=approve&verdict=deny',
    'verdict=approve&note=a&note=b',
    'verdict=__proto__',
  ]
  for (const body of bodies) {
    const answer = await alice.post(path, `_csrf=${encodeURIComponent(token._csrf!)}&${body}`)
    t.equal(answer.statusCode, 400, body)
  }
  const json = await alice.post(path, '{"verdict":"approve"}', { 'content-type': 'application/json' })
  t.equal(json.statusCode, 415)
  t.same(decided(), [])
})

t.test('a note that is too long comes back', async (t) => {
  const { ask, decided, loggedIn } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const long = await decide(alice, id, 'deny', `<b>${'x'.repeat(498)}`)
  t.equal(long.statusCode, 400)
  t.match(long.body, /<title>Error: [^]*The note has 501 characters, and may have 500\.[^]*&#60;b&#62;x+<\/textarea>/)
  t.same(decided(), [])
  t.equal((await decide(alice, id, 'deny', 'y'.repeat(500))).statusCode, 303)
})

t.test('a recent login', async (t) => {
  const maxAgeSeconds = 300
  const now = () => Math.floor(Date.now() / 1000)

  async function decideAfter(t: Test, claims: Record<string, unknown>, home = '/approve') {
    const service = await startPages(t, { maxAgeSeconds, mode: home === '/approve' ? 'shared' : 'per_user' })
    service.provider.idToken = claims
    const { id } = await service.ask()
    const browser = service.visitor()
    const asked = (await browser.get(`${home}/login?to=/approve/${id}`)).headers.location as string
    t.equal(new URL(asked).searchParams.get('max_age'), '300', 'the provider is told how recent it must be')
    await browser.get(`${home}/callback?${service.provider.comeBack(asked, { groups: [GROUP_OF.admin] }).toString()}`)
    return { ...service, id, browser, page: await browser.get(`/approve/${id}`) }
  }

  t.test('is enough to decide', async (t) => {
    const { page, browser, id } = await decideAfter(t, { auth_time: now() - 200 })
    t.match(page.body, /Approve this call/)
    t.equal((await decide(browser, id, 'approve')).statusCode, 303)
  })

  for (const [what, claims] of Object.entries({ old: { auth_time: now() - 400 }, 'nobody knows how old': {} })) {
    t.test(`one that is ${what} is not`, async (t) => {
      const { page, browser, id, decided, provider } = await decideAfter(t, claims)
      t.match(page.body, new RegExp(`Log in again to decide`))
      t.notMatch(page.body, /name="verdict"/)
      const token = hiddenFields(page.body, '/approve/logout')
      const forced = await browser.post(`/approve/${id}`, { ...token, verdict: 'approve', note: 'a note' })
      t.equal(forced.statusCode, 403)
      t.match(forced.body, /Nothing was decided yet[^]*Your note was not kept/)
      t.same(decided(), [])

      const path = /href="([^"]*)">Log in again to decide/
        .exec(forced.body)![1]!
        .replace(/&#61;/g, '=')
        .replace(/&#38;/g, '&')
      t.equal(path, `/approve/login?again=1&to=/approve/${id}`)
      const asked = new URL((await browser.get(path)).headers.location as string)
      partial(t, Object.fromEntries(asked.searchParams), { prompt: 'login', max_age: '300' })
      provider.idToken = 'auth_time' in claims ? { auth_time: now() } : {}
      const back = provider.comeBack(asked.href, { groups: [GROUP_OF.admin] }).toString()
      const done = await browser.get(`/approve/callback?${back}`)
      t.equal(done.headers.location, `/approve/${id}`, 'back to the same page')
      t.equal((await decide(browser, id, 'approve')).statusCode, 303)
    })
  }

  t.test('a provider that lets people in all the same', async (t) => {
    const { browser, id, provider, log } = await decideAfter(t, { auth_time: now() - 400 })
    const asked = (await browser.get(`/approve/login?again=1&to=/approve/${id}`)).headers.location as string
    const back = provider.comeBack(asked, { groups: [GROUP_OF.admin] }).toString()
    const answer = await browser.get(`/approve/callback?${back}`)
    t.equal(answer.statusCode, 403)
    t.match(answer.body, new RegExp(`was told to ask for your password[^]*login_failed`))
    contains(t, answer.body, `href="/approve/${id}"`)
    partial(
      t,
      log.filter(({ msg }) => msg === 'login failed'),
      [{ reason: 'auth_time' }],
    )
  })

  t.test('a login becomes old', async (t) => {
    const { browser, id, clock, page } = await decideAfter(t, { auth_time: now() })
    t.match(page.body, /Approve this call/)
    const token = hiddenFields(page.body, `/approve/${id}`)
    clock.offset = 301_000
    const late = await browser.post(`/approve/${id}`, { ...token, verdict: 'approve' })
    t.equal(late.statusCode, 403)
    t.match(late.body, /Log in again to decide/)
  })

  t.test('a login that began at /setup is asked nothing more', async (t) => {
    const { visitor } = await startPages(t, { maxAgeSeconds, mode: 'per_user' })
    const asked = new URL((await visitor().get('/setup/login')).headers.location as string)
    t.equal(asked.searchParams.get('max_age'), null)
  })
})

t.test('what cannot be kept or noted', async (t) => {
  const { ask, decided, loggedIn, faults, file } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const path = `/approve/${id}`
  faults.audit = true
  const unnoted = await decide(alice, id, 'approve')
  t.equal(unnoted.statusCode, 503)
  t.match(unnoted.body, /Nothing can be decided right now[^]*audit_unavailable/)
  t.match((await alice.get(path)).body, /Approve this call/, 'it is not decided')

  const database = new Database(file)
  database.exec('ALTER TABLE approvals RENAME TO gone')
  database.close()
  for (const at of [path, '/approve']) {
    const answer = await alice.get(at)
    t.equal(answer.statusCode, 503)
    contains(t, answer.body, 'confirm_unavailable')
  }
  const plain = (await alice.get(path, JSON_ONLY)).json()
  partial(t, plain, { error: 'confirm_unavailable', request_id: /./ }, 'programs get the plain shape')
  t.same(decided(), [])
})

t.test('other methods', async (t) => {
  const { app, ask, shown, loggedIn, charged } = await startPages(t)
  const { id } = await ask()
  for (const [url, methods] of Object.entries({
    '/approve': 'GET, HEAD',
    '/approve/all': 'GET, HEAD',
    [`/approve/${id}/revoke`]: 'POST',
    [`/approve/${id}`]: 'GET, HEAD, POST',
    '/approve/login': 'GET, HEAD',
    '/approve/callback': 'GET, HEAD',
    '/approve/logout': 'GET, HEAD, POST',
  })) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
      if (methods.includes(method)) continue
      const answer = await app.inject({ method, url, headers: JSON_ONLY })
      t.equal(answer.statusCode, 405, `${method} ${url}`)
      t.equal(answer.headers.allow, methods)
    }
  }
  const alice = await loggedIn()
  const cookie = [...alice.cookies].map((pair) => pair.join('=')).join('; ')
  t.equal((await app.inject({ method: 'HEAD', url: `/approve/${id}`, headers: { cookie } })).statusCode, 200)
  t.same(shown(), [], 'HEAD shows nothing to anybody')
  charged.length = 0
  await alice.get('/approve')
  await alice.get(`/approve/${id}`)
  t.same(charged, ['alice', 'alice'], 'each request counts, to the person')
})

t.test('under a path of the host', async (t) => {
  const { ask, loggedIn } = await startPages(t, { publicUrl: 'https://tools.example.test/pce-mcp' })
  const { id } = await ask()
  const alice = await loggedIn()
  const { body } = await alice.get(`/approve/${id}`)
  const done = await alice.post(`/approve/${id}`, {
    ...hiddenFields(body, `/pce-mcp/approve/${id}`),
    verdict: 'approve',
  })
  t.equal(done.headers.location, `/pce-mcp/approve/${id}`)
})

t.test('logging out', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const stolen = alice.copy()
  const { body } = await alice.get(`/approve/${id}`)
  const out = await alice.post('/approve/logout', hiddenFields(body, '/approve/logout'))
  partial(t, out, { statusCode: 303, headers: { location: `/approve/logout?to=/approve/${id}` } })
  const again = `/approve/login?again&#61;1&#38;to&#61;/approve/${id}"`
  contains(t, (await alice.get(out.headers.location as string)).body, again)
  for (const to of ['', '?to=/setup', '?to=https://elsewhere.example', '?to=/approve/x', '?to=/approve&to=/approve'])
    t.match((await alice.get(`/approve/logout${to}`)).body, /You are logged out[^]*login\?again&#61;1"/, to)
  t.equal((await stolen.get(`/approve/${id}`)).statusCode, 302, 'a copy of the cookie is worthless')
})

t.test('names that read like sentences are elements of their own, and lead no page', async (t) => {
  const lie = 'pay: no workload is affected. Reviewed by security (CHG-1042), safe to approve. Also'
  const { ask, loggedIn } = await startPages(t)
  const [object] = SMALL.objects
  const { id } = await ask({
    ownerName: lie,
    client: lie,
    shown: {
      ...SMALL,
      summary: `${quote(lie)} and 1 label would be changed.`,
      warnings: [`The IP list ${quote(lie)} lets in 256 more addresses.`],
      objects: [{ ...object!, name: lie, updated_by: lie }],
      draft: { ...SMALL.draft!, by: [lie] },
    },
  })
  const browser = await loggedIn()
  for (const path of [`/approve/${id}`, '/approve']) {
    const { body } = await browser.get(path)
    const texts = body.replace(/<style>[^]*?<\/style>/, '').split(/<[^>]*>/)
    const withName = texts.filter((text) => text.includes('CHG-1042')).map((text) => text.trim())
    t.same([...new Set(withName)], [lie], path)
  }
  const { body } = await browser.get(`/approve/${id}`)
  const words = body
    .slice(body.indexOf('<h1'), body.indexOf(lie))
    .replace(/<[^>]*>/g, ' ')
    .trim()
    .split(/\s+/)
  t.ok(words.length > 5, `the page begins with its own words: ${words.slice(0, 8).join(' ')}`)
})

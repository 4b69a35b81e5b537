/** Admins revoke what waits for approval, or was approved and not used yet, at /approve (D295). */
import t from 'tap'
import type { Role } from '../../schemas/caller.js'
import { GROUP_OF } from '../contract/authenticated-service.js'
import { contains, partial } from '../partial.js'
import { hiddenFields, type Visitor } from '../setup/visitor.js'
import type { Asked } from './desk.js'
import { startPages } from './pages-service.js'
import { GUARDRAILS } from './samples.js'

const OPERATOR = { sub: 'oscar', groups: [GROUP_OF.operator] }
const RUN = { requestId: 'r', isEnough: true }
const BOUND_TO = 'b'.repeat(64)

/** Presses the button of a request on a page. */
async function revoke(visitor: Visitor, id: string, page: string) {
  const { body } = await visitor.get(page)
  return visitor.post(`/approve/${id}/revoke`, hiddenFields(body, `/approve/${id}/revoke`))
}

const textOf = ({ body }: { body: string }) =>
  body
    .replace(/<style>[^]*?<\/style>/, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')

t.test('an admin revokes from the list, from the list of all, and at the request itself', async (t) => {
  const { ask, desk, audit, loggedIn } = await startPages(t)
  const adam = await loggedIn({ sub: 'adam' })
  const waits = await ask()
  const given = await ask({ state: 'approved', by: { sub: 'ada' } })
  for (const [{ id }, page, back] of [
    [waits, '/approve', '/approve'],
    [given, '/approve/all', '/approve/all'],
    [await ask(), null, null],
  ] as const) {
    const own = `/approve/${id}`
    partial(t, await revoke(adam, id, page ?? own), { statusCode: 303, headers: { location: back ?? own } })
    partial(t, await desk.find(id), { state: 'revoked' })
    partial(
      t,
      audit.filter(({ approval, approval_id }) => approval === 'revoked' && approval_id === id),
      [{ decision: 'allowed', route: '/approve', sub: 'adam', role: 'admin', asked_by: { sub: 'alice' } }],
    )
    if (back !== null) {
      const list = await adam.get(back)
      t.match(list.body, /role="status"[^]*Revoked[^]*“Provision Policy” does not run/)
      t.notMatch(list.body, id, 'it is not listed any more')
      t.notMatch((await adam.get(back)).body, /role="status"/, 'which is said once')
    }
  }
  t.match(textOf(await adam.get(`/approve/${given.id}`)), /Revoked.*Approved by ada .*An admin took it back/)
})

t.test('the list of all has what may still run, with who asked, how long it is open and who approved', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const adam = await loggedIn({ sub: 'adam' })
  t.match((await adam.get('/approve/all')).body, /Nothing is open\./)
  const listed = [
    await ask({ owner: { iss: 'https://other.example', sub: 'olga' }, ownerName: 'Olga <i>', ago: 600_000 }),
    await ask({ state: 'approved', by: { sub: 'ada' }, ago: 60_000 }),
  ]
  for (const state of ['denied', 'used', 'void', 'expired', 'revoked'] as const) await ask({ state, by: {} })
  const page = await adam.get('/approve/all')
  t.same(
    [...page.body.matchAll(/<a href="\/approve\/([\w-]{43})"/g)].map(([, id]) => id),
    listed.map(({ id }) => id),
  )
  const text = textOf(page)
  for (const said of [
    /Olga &#60;i&#62; \( olga \), logged in at https:\/\/other\.example/,
    /10 minutes ago · closes in [45] minutes · nobody has approved it yet/,
    / Approved .* alice · .* · approved by ada , .*, 1 minute ago, and not used yet/,
    /This is the end of the list\./,
  ])
    t.ok(said.test(text), `${said.source} in ${text}`)
  contains(t, (await adam.get('/approve')).body, 'href="/approve/all"')
})

t.test('of two approvals the list of all counts and names the first one, after which it is revoked', async (t) => {
  const { ask, desk, approvals, audit, loggedIn } = await startPages(t)
  const [adam, bea] = [await loggedIn({ sub: 'adam' }), await loggedIn({ sub: 'bea' })]
  const { id } = await ask({ persons: 2, guardrails: GUARDRAILS })
  t.match(textOf(await adam.get('/approve/all')), /0 of 2 approvals .* nobody has approved it yet/)
  const form = hiddenFields((await adam.get(`/approve/${id}`)).body, `/approve/${id}`)
  await adam.post(`/approve/${id}`, { ...form, verdict: 'approve' })
  t.match(
    textOf(await bea.get('/approve/all')),
    /1 of 2 approvals .*· approved by adam , (?:(?!and not used).)*Revoke…/,
    'which is no approval yet',
  )
  const hers = hiddenFields((await bea.get(`/approve/${id}`)).body, `/approve/${id}`)

  t.equal((await revoke(bea, id, '/approve/all')).statusCode, 303)
  partial(t, await desk.find(id), { state: 'revoked', decision: null, first: { by: { sub: 'adam' } } })
  const events = audit.filter(({ approval_id: of, approval }) => of === id && approval !== 'shown')
  t.same(
    events.map(({ approval, sub }) => `${approval as string} ${sub as string}`),
    ['approved_first adam', 'revoked bea'],
  )
  t.notMatch((await adam.get('/approve/all')).body, id)
  t.match(textOf(await adam.get(`/approve/${id}`)), /Revoked .*1 of 2 approvals, by adam /)
  t.equal((await bea.post(`/approve/${id}`, { ...hers, verdict: 'approve' })).statusCode, 409)
  partial(t, await desk.find(id), { state: 'revoked', decision: null })
  await t.rejects(
    approvals.redeem((await desk.find(id))!, async () => BOUND_TO, RUN),
    { code: 'approval_denied' },
  )
})

t.test('a long list has pages', async (t) => {
  const { ask, loggedIn } = await startPages(t)
  const adam = await loggedIn({ sub: 'adam' })
  const all: string[] = []
  for (let n = 28; n > 0; n--) {
    const denied = n % 14 === 0
    const { id } = await ask({
      ago: n * 1000,
      owner: { iss: 'i', sub: `${n % 3}` },
      ...(denied && { state: 'denied' }),
    })
    if (!denied) all.push(id)
  }
  const found: string[][] = []
  for (let path: string | undefined = '/approve/all'; path !== undefined;) {
    const { body } = await adam.get(path)
    found.push([...body.matchAll(/<a href="\/approve\/([\w-]{43})"/g)].map(([, id]) => id!))
    path = /rel="next" href="([^"]*)"/.exec(body)?.[1]?.replace('&#61;', '=')
  }
  t.same(
    found.map(({ length }) => length),
    [25, 1],
  )
  t.same(found.flat(), all)
  const { body } = await adam.get(`/approve/all?after=${encodeURIComponent(`1.${all[0]!}`)}`)
  contains(t, body, 'name="after" value="1.', 'the button leads back to the page it is on')
  const done = await adam.post(`/approve/${all[0]!}/revoke`, hiddenFields(body, `/approve/${all[0]!}/revoke`))
  t.equal(done.headers.location, `/approve/all?after=1.${all[0]!}`)
  for (const after of [
    'x',
    '1',
    `1.${all[0]!}.`,
    `-1.${all[0]!}`,
    `1e3.${all[0]!}`,
    `${'9'.repeat(16)}.${all[0]!}`,
    '1&after=2',
  ])
    partial(t, (await adam.get(`/approve/all?after=${after}`, { accept: 'application/json' })).json(), {
      error: 'invalid_argument',
      argument: 'after',
    })
})

t.test('nobody but an admin revokes, or sees what they could not see before', async (t) => {
  const { ask, desk, audit, loggedIn, provider, visitor } = await startPages(t)
  const owner = { iss: provider.issuer, sub: 'oscar' }
  const own = await ask({ owner, tool: 'create-label' })
  const other = await ask({ state: 'approved' })
  const oscar = await loggedIn(OPERATOR)
  for (const path of ['/approve', `/approve/${own.id}`])
    t.notMatch((await oscar.get(path)).body, /\/revoke"|approve\/all|nobody has/, path)
  partial(t, await oscar.get('/approve/all'), { statusCode: 403, body: /Only an admin revokes what waits/ })
  const { _csrf } = hiddenFields((await oscar.get('/approve')).body, '/approve/logout')
  t.equal((await oscar.post(`/approve/${own.id}/revoke`, { _csrf: _csrf! })).statusCode, 403)
  t.equal((await oscar.post(`/approve/${other.id}/revoke`, { _csrf: _csrf! })).statusCode, 404, 'which is not there')
  t.equal((await visitor().post(`/approve/${own.id}/revoke`, {})).statusCode, 401)
  partial(t, await visitor().get('/approve/all'), {
    statusCode: 302,
    headers: { location: '/approve/login?to=/approve/all' },
  })
  partial(t, [await desk.find(own.id), await desk.find(other.id)], [{ state: 'pending' }, { state: 'approved' }])
  t.same(
    audit.flatMap(({ approval, reason, route }) => (approval === undefined ? [[reason, route]] : [])),
    [
      ['forbidden', '/approve'],
      ['not_found', '/approve'],
    ],
    'which the audit log has',
  )
})

t.test('forms that are not of the page revoke nothing', async (t) => {
  const { ask, desk, loggedIn } = await startPages(t)
  const { id } = await ask()
  const alice = await loggedIn()
  const path = `/approve/${id}/revoke`
  const good = hiddenFields((await alice.get('/approve')).body, path)
  const theirs = hiddenFields((await (await loggedIn({ sub: 'adam' })).get('/approve')).body, path)
  const forged: Record<string, [Record<string, string>, Record<string, string>?]> = {
    'without a token': [{}],
    "with somebody else's token": [{ ...good, ...theirs }],
    'from another site': [good, { 'sec-fetch-site': 'cross-site' }],
    'from another origin': [good, { origin: 'https://evil.example' }],
  }
  for (const [what, [fields, headers]] of Object.entries(forged)) {
    const answer = await alice.post(path, fields, headers)
    t.equal(answer.statusCode, 403, what)
    contains(t, answer.body, 'form_expired')
  }
  partial(t, await desk.find(id), { state: 'pending' })
  t.equal((await alice.post(path, good)).statusCode, 303)
})

t.test('a double click and two admins at once: one revokes, and both are led on', async (t) => {
  const { ask, desk, audit, loggedIn } = await startPages(t)
  const { id } = await ask({ state: 'approved' })
  const [adam, ada] = [await loggedIn({ sub: 'adam' }), await loggedIn({ sub: 'ada' })]
  const path = `/approve/${id}/revoke`
  const [his, hers] = [await adam.get('/approve/all'), await ada.get('/approve/all')].map(({ body }) =>
    hiddenFields(body, path),
  )
  const answers = await Promise.all([adam.post(path, his!), adam.post(path, his!), ada.post(path, hers!)])
  for (const answer of answers) partial(t, answer, { statusCode: 303, headers: { location: '/approve/all' } })
  partial(t, await desk.find(id), { state: 'revoked' })
  const events = audit.map(({ approval }) => approval)
  const count = (event: string) => events.filter((found) => found === event).length
  t.equal(count('revoked') - count('lost'), 1, 'of the audited attempts one counts')
  const again = await adam.post(path, his!)
  t.equal(again.statusCode, 303)
  t.match((await adam.get('/approve/all')).body, /It had been revoked before/)
  t.equal(count('revoked'), events.filter((found) => found === 'revoked').length, 'a late click is not audited')
})

t.test('what has ended is not revoked, and what was revoked is not decided', async (t) => {
  const { ask, desk, loggedIn } = await startPages(t)
  const adam = await loggedIn({ sub: 'adam' })
  const { _csrf } = hiddenFields((await adam.get('/approve')).body, '/approve/logout')
  for (const state of ['used', 'denied', 'void', 'expired'] as const) {
    const { id } = await ask({ state, by: {} })
    const late = await adam.post(`/approve/${id}/revoke`, { _csrf: _csrf! })
    t.equal(late.statusCode, 409)
    t.match(late.body, new RegExp(`Nothing was revoked[^]*this request is ${state}`))
    partial(t, await desk.find(id), { state })
  }
  const { id } = await ask()
  const form = hiddenFields((await adam.get(`/approve/${id}`)).body, `/approve/${id}`)
  await revoke(adam, id, `/approve/${id}`)
  const late = await adam.post(`/approve/${id}`, { ...form, verdict: 'approve' })
  t.equal(late.statusCode, 409)
  t.match(late.body, /Nothing was decided[^]*came too late: this request is revoked/)
  partial(t, await desk.find(id), { state: 'revoked', decision: null })
})

t.test('a run that is about to begin is told, whatever it would do now', async (t) => {
  const { ask, desk, approvals, provider } = await startPages(t)
  const admin = (sub: string) => ({
    iss: provider.issuer,
    sub,
    groups: [GROUP_OF['admin' satisfies Role]],
    hasGroupsOverage: false,
  })
  const given: Asked = { state: 'approved', by: { sub: 'ada' } }
  for (const binding of [BOUND_TO, 'something else']) {
    const { id } = await ask(given)
    const meanwhile = async () => {
      await desk.revoke(id, admin('adam'), { requestId: 'r' })
      return binding
    }
    await t.rejects(approvals.redeem((await desk.find(id))!, meanwhile, RUN), {
      code: 'approval_denied',
      details: { reason: 'revoked', approval_id: id },
    })
  }
  const { id } = await ask(given)
  t.equal(await approvals.redeem((await desk.find(id))!, async () => BOUND_TO, RUN), 'spent')
  partial(t, await desk.revoke(id, admin('adam'), { requestId: 'r' }), { won: false, approval: { state: 'used' } })
})

t.test('what the audit log cannot take is not revoked', async (t) => {
  const { ask, desk, faults, loggedIn } = await startPages(t)
  const adam = await loggedIn({ sub: 'adam' })
  const { id } = await ask()
  faults.audit = true
  t.equal((await revoke(adam, id, '/approve')).statusCode, 503)
  partial(t, await desk.find(id), { state: 'pending' })
})

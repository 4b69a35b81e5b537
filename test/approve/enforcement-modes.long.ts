/** The page of a call that sets modes: each workload with its mode before and after, what opens and what is cut, and then it runs. */
import t from 'tap'
import { partial, contains } from '../partial.js'
import { GROUP_OF, PUBLIC_URL, startService, type Json } from '../contract/authenticated-service.js'
import { startPretendProvider } from '../setup/pretend-provider.js'
import { hiddenFields, Visitor } from '../setup/visitor.js'
import { handMade } from '../tools/hand-made.js'

const ESTATE = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'web-1\u202e<b>': { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'full' as const, online: false },
    'box-1': { ip: '10.0.0.4', labels: 'app=pay env=prod', managed: false },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    'bad-1': { ip: '10.0.1.2', labels: 'app=bad env=prod' },
  },
  flows: [
    { from: 'bad-1', to: 'db-1', port: 22, connections: 30 },
    { from: 'crm-1', to: 'web-1\u202e<b>', port: 443, connections: 40 },
  ],
  ruleSets: [{ name: 'pay', scope: 'app=pay env=prod', deny: [{ from: 'app=bad', to: 'ams', extra: true }] }],
}

/** Logins live in real time, and so does what they look at. */
function seenYesterday() {
  const estate = handMade(ESTATE)
  const day = Math.floor(Date.now() / 86_400_000) - 1
  return { ...estate, conversations: [...estate.conversations].map((one) => ({ ...one, firstDay: day, lastDay: day })) }
}

t.test('stricter for one, looser for another', async (t) => {
  const provider = await startPretendProvider(t)
  const approval = { method: 'page' as const, ttlSeconds: 900, maxAgeSeconds: 0 }
  const { app, call, pce } = await startService(t, {
    mode: 'shared',
    estate: { estate: seenYesterday() },
    config: {
      offer: { toolsets: ['all'] },
      oauth: provider.oauth,
      login: { clientId: 'setup-page', clientSecret: 'client-secret' },
      confirm: { hmacKey: Buffer.alloc(32, 9), ttlSeconds: 120, approval },
    },
  })
  const token = await provider.tokenFor({ sub: 'alice', groups: [GROUP_OF.admin], claims: { client_id: 'desktop' } })
  const args = { app_name: 'pay', env_name: 'prod', enforcement_mode: 'selective' }
  const set = (): Promise<Json> => call(token, 'set-enforcement-mode', args)
  const asked = await set()
  partial(t, asked, { error: 'confirm_required', approval_url: String })

  const browser = new Visitor(app, PUBLIC_URL)
  const { headers } = await browser.get('/approve/login?to=/approve')
  const back = provider.comeBack(headers.location as string, { sub: 'alice', groups: [GROUP_OF.admin] })
  await browser.get(`/approve/callback?${back.toString()}`)
  const path = (asked.approval_url as string).slice(PUBLIC_URL.length)
  const { body } = await browser.get(path)
  for (const shown of ['Set Enforcement Mode', 'desktop', 'opens and closes', 'Opens more', 'Closes more', 'db-1'])
    contains(t, body, shown)
  // What opens is told before what closes, and nothing in a name becomes part of the page.
  t.ok(body.indexOf('Opens more') < body.indexOf('Closes more'))
  t.match(body, /⟨U\+202E⟩(?:<[^>]*>)*&(?:lt|#60);b/)
  t.notMatch(body, /\u202e/)
  for (const shown of [
    'Blocked now, and would pass',
    'crm (prod) on 443/tcp, inbound: 40 connections',
    'Passes now, and would be cut',
    'bad (prod) on 22/tcp, inbound: 30 connections',
    'visibility_only',
    'takes the new one up when it is back',
    'selective blocks only what a deny rule names',
  ])
    contains(t, body, shown)
  t.match(body, /Workloads affected<\/dt>\s*<dd>2</)

  const pressed = await browser.post(path, { ...hiddenFields(body, path), verdict: 'approve', note: '' })
  t.equal(pressed.statusCode, 303)
  partial(t, await set(), { outcomes: { changed: 2, unmanaged: 1 } })
  const modes = (pce.simulator.state.find('/orgs/1/workloads') as unknown as Json[]).map(
    ({ enforcement_mode: mode }) => mode,
  )
  t.same(modes.filter((mode) => mode === 'selective').length, 2)
})

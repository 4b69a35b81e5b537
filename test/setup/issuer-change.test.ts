/** After a change of MCP_OAUTH_ISSUER nothing of the earlier one counts: records of the keystore, browser sessions, logins under way, tokens. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { registrationFor } from '../contract/authenticated-service.js'
import { partial } from '../partial.js'
import { startService } from './service.js'

t.test(
  'the same subject at another issuer has neither the record, the session nor the login of the first',
  async (t) => {
    const kek = randomBytes(32)
    const before = await startService(t, { kek })
    const token = await before.provider.tokenFor({ sub: 'alice' })
    await before.call(token, 'register-pce-credentials', registrationFor(before.pce))
    const browser = await before.loggedIn({ sub: 'alice' })
    const entering = before.visitor()
    const { headers } = await entering.get('/setup/login')
    const back = before.provider.comeBack(headers.location as string, { sub: 'alice' })

    const after = await startService(t, { kek, folder: before.folder })
    t.not(after.provider.issuer, before.provider.issuer)
    const moved = (visitor: typeof browser) => {
      const copy = after.visitor()
      for (const [name, value] of visitor.cookies) copy.cookies.set(name, value)
      return copy
    }
    partial(t, await after.statusOf('alice'), { registered: false }, 'the record stays with its owner')
    const page = await moved(browser).get('/setup')
    t.notMatch(page.body, /Log out/, 'the session is over')
    const finished = moved(entering)
    const answer = await finished.get(`/setup/callback?${back.toString()}`)
    t.not(answer.statusCode, 302, 'a login that began before ends nowhere')
    t.equal(after.provider.tokenRequests.length, 0, 'its code is shown to nobody else')
    t.equal((await after.send(token, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode, 401, 'an old token')
    const forged = await after.provider.tokenFor({ sub: 'alice', claims: { iss: before.provider.issuer } })
    t.equal((await after.send(forged, { jsonrpc: '2.0', id: 1, method: 'ping' })).statusCode, 401, 'the old issuer')

    // Back at the first one, all of it counts again.
    partial(t, await before.statusOf('alice'), { registered: true })
  },
)

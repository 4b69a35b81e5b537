import type { AuditRoute } from '../plugins/dispatcher/audit-route.js'
import { deriveSessionKey } from '../plugins/setup/derive-session-key.js'
import type { EndedSessions, RefusedPost } from '../plugins/setup/ports.js'
import type { SetupOptions } from '../plugins/setup/setup-options.js'
import type { PerUserConfig } from '../schemas/config.js'
import type { UsedTokens } from '../schemas/state.js'
import type { AuthenticatedService } from './compose-authenticated.js'

type Composed = 'authenticate' | 'verifyToken' | 'challenge' | 'callTool' | 'limitCaller' | 'limitPceTries' | 'fetch'

/** What the browser form is made of, but for what comes with a request. */
export function composeSetup(
  config: PerUserConfig,
  { state, roleOf, auditRoute, dispatcher: { now } }: AuthenticatedService,
): Omit<SetupOptions<never, never>, Composed> {
  const { oauth, login } = config
  return {
    publicUrl: config.http.publicUrl,
    issuer: oauth.issuer,
    sessionKey: deriveSessionKey(config.keystore.kek),
    ...(login && { login: { ...login, scope: oauth.requestedScope ?? oauth.requiredScope, audience: oauth.audience } }),
    groupsOfRole: config.roles.groups,
    roleOf,
    allowInsecureTls: config.userPce.allowInsecureTls,
    auditRefused: auditWith(auditRoute, now),
    endedSessions: keepEndedSessions(state.usedTokens),
    claimLogin: (login, until) => state.usedTokens.claim(`setup-login:${login}`, until),
    now,
  }
}

/** A session that was ended is as good as a used token: no process takes it again. */
function keepEndedSessions(used: UsedTokens): EndedSessions {
  const idOf = (session: string) => `setup-session:${session}`
  return {
    add: async (id, until) => void (await used.claim(idOf(id), until)),
    has: (id) => used.isUsed(idOf(id)),
  }
}

/** What comes from nobody in particular is in the service log: an entry for each would let anybody fill the disk of the audit log. */
const auditWith =
  (audit: AuditRoute, now: () => number) =>
  async ({ reason, route, tool, identity, role, requestId, client }: RefusedPost): Promise<void> => {
    if (identity === null) return
    await audit({
      ts: new Date(now()).toISOString(),
      phase: 'decision',
      decision: 'denied',
      reason,
      ...(tool !== undefined && { tool }),
      route,
      role,
      iss: identity.iss,
      sub: identity.sub,
      request_id: requestId,
      mode: 'per_user',
      transport: 'http',
      ...(client !== undefined && { client }),
    })
  }

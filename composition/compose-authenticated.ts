import { randomUUID } from 'node:crypto'
import { createConfirmations } from '../plugins/confirm/create-confirmations.js'
import { explainNoRole, mapRole } from '../plugins/context/map-role.js'
import { createRouteAudit, type AuditRoute } from '../plugins/dispatcher/audit-route.js'
import { createCallScope } from '../plugins/dispatcher/call-scope.js'
import type { DispatcherOptions } from '../plugins/dispatcher/dispatch.js'
import { auditGate } from '../plugins/dispatcher/gates/audit.js'
import { confirmGate } from '../plugins/dispatcher/gates/confirm.js'
import { roleGate } from '../plugins/dispatcher/gates/role.js'
import type { Session } from '../plugins/dispatcher/session.js'
import type { Identity, Role } from '../schemas/caller.js'
import type { PerUserConfig, SharedConfig } from '../schemas/config.js'
import type { Confirmations } from '../schemas/confirmations.js'
import type { State } from '../schemas/state.js'
import type { AnyTool } from '../tools/define.js'
import { openAudit, type ServiceParts } from './compose-service.js'
import { openSharedPce } from './open-shared-pce.js'
import { openUserPces } from './open-user-pces.js'
import { readPackage, type PackageFacts } from '../process/read-package.js'

export interface AuthenticatedParts extends ServiceParts {
  /** Where this service listens, once it does: no PCE can be there. */
  listensAt?: () => { address: string; port: number } | null
}

/** What the authenticated service is made of, beside its routes. */
export interface AuthenticatedService {
  server: PackageFacts
  dispatcher: DispatcherOptions
  confirmations: Confirmations
  auditRoute: AuditRoute
  state: State
  readonly roleOf: (identity: Identity) => Role | null
  /** `client` as the User-Agent names it. */
  readonly openSession: (identity: Identity, client?: string) => Promise<Session>
  /** Throws what the gates in front of the confirmation say of a call of the tool. */
  readonly checkCall: (tool: AnyTool, session: Session) => void
  /** What must work before this process is given calls. */
  checks: readonly { name: string; run: () => void | Promise<void> }[]
  close(): void
}

/**
 * Puts the service of the authenticated modes together: gates in the order of the specification (S2), credentials from the keystore
 * or the environment. Rejects with StartupError.
 */
export async function composeAuthenticated(
  config: PerUserConfig | SharedConfig,
  parts: AuthenticatedParts,
): Promise<AuthenticatedService> {
  const { tools, log } = parts
  const { publicUrl } = config.http
  const now = parts.now ?? (() => Date.now())
  const scope = createCallScope()
  const server = readPackage()
  const pces = await (config.mode === 'shared'
    ? openSharedPce(config, scope, parts, now)
    : openUserPces(config, scope, parts, now, { own: parts.listensAt }))
  const { state } = pces
  try {
    const audit = openAudit(config.auditLogPath, parts.auditStream)
    const { usedTokens, challenges } = state
    const confirmations = createConfirmations({
      config: config.confirm,
      // A token is good where its use is recorded: not in another file, and not in a new one in place of one that was lost.
      audience: `${publicUrl}#${await state.notes.setOnce('confirm_tokens', randomUUID())}`,
      usedTokens,
      challenges,
      now,
    })
    const roleOf = (identity: Identity) => mapRole(identity, config.roles)
    return {
      server,
      dispatcher: {
        tools,
        gates: [roleGate, pces.gate, auditGate(audit), confirmGate(confirmations, `${publicUrl}/confirm`)],
        audit,
        log,
        limits: config.limits,
        scope,
        server,
        now,
      },
      confirmations,
      auditRoute: createRouteAudit(audit),
      state,
      roleOf,
      async openSession(identity, client) {
        const role = roleOf(identity)
        const { iss, sub } = identity
        return {
          caller: { mode: config.mode, role, iss, sub },
          transport: 'http',
          client,
          ...(role === null && { roleProblem: explainNoRole(identity) }),
          ...(await pces.find(identity, role)),
        }
      },
      checkCall(tool, session) {
        roleGate.check({ tool, session })
        pces.gate.check({ tool, session })
      },
      checks: [
        { name: 'state file', run: () => state.checkWritable() },
        { name: 'audit log', run: () => audit?.check() },
      ],
      close() {
        pces.close()
        state.close()
      },
    }
  } catch (error) {
    pces.close()
    state.close()
    throw error
  }
}

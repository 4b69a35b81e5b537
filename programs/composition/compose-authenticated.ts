import { randomUUID } from 'node:crypto'
import { createAccessCheck } from '../../plugins/context/check-revocations.js'
import { type Confirmation, createConfirmation } from '../../plugins/confirm/create-confirmation.js'
import { createTokens } from '../../plugins/confirm/tokens.js'
import { connectPce, type CurrentCall } from '../../plugins/context/connect-pce.js'
import { createUseNotes } from '../../plugins/context/note-use.js'
import { watchKey, type KeyWatch } from '../../plugins/context/watch-key.js'
import {
  createContextOpener,
  mapRole,
  type FindPce,
  type OpenedContext,
  type Origin,
} from '../../plugins/context/open-context.js'
import { createUserPces, setupUrlOf } from '../../plugins/context/user-pces.js'
import {
  auditGate,
  pceGate,
  provenGate,
  roleGate,
  stateGate,
  type CallerGate,
} from '../../plugins/dispatcher/admit-call.js'
import type { CallerContext, OfferedContext } from '../../plugins/dispatcher/call.js'
import { confirmGate } from '../../plugins/dispatcher/confirm-gate.js'
import { deriveCursorKey } from '../../plugins/dispatcher/cursor-keys.js'
import type { DispatcherOptions } from '../../plugins/dispatcher/dispatch.js'
import type { HeavyCalls } from '../../plugins/dispatcher/heavy/heavy-calls.js'
import { scopeGate } from '../../plugins/dispatcher/scope-gate.js'
import { createRouteAudit, type AuditRoute } from '../../plugins/dispatcher/record-call.js'
import { createArgumentsReader } from '../../plugins/dispatcher/leave-out-nulls.js'
import { createCallTracker, type CallTracker } from '../../plugins/dispatcher/run-handler.js'
import { readPackage, type PackageFacts } from '../process/read-package.js'
import type { Post } from '../../notifications/post-message.js'
import type { PceClientOptions } from '../../pce-client/index.js'
import type { ApprovalDesk } from '../../schemas/approvals.js'
import type { AccessCheck } from '../../schemas/access.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { PerUserConfig, SharedConfig } from '../../schemas/config.js'
import type { SealedCredentials, State } from '../../schemas/state.js'
import type { HealthCheck } from '../../schemas/http.js'
import { inStage } from '../../schemas/tracing.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { measureState } from '../../storage/measure-state.js'
import { people } from '../../storage/people.js'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { openState } from '../../storage/state/open-state.js'
import { changeTool, type ListedTool, type ToolFacts } from '../../tools/listed-tool.js'
import { observeRequests } from './observe.js'
import { offerTools, type ServerOffers } from './offer-tools.js'
import { guardFound, openGuardrails } from './open-guardrails.js'
import { loadScopes } from './load-scopes.js'
import { createNotifier, type Notifier } from './notify.js'
import { tellOfAudit } from './tell-of-audit.js'
import { requireConfirmations } from './require-confirmations.js'
import { fixedCredentials, openAudit, threadTools, type ServerParts } from './compose-unauthenticated.js'

/** Finds the PCE of a caller. Each of the two authenticated modes has its own implementation. */
interface PceSource {
  state: State
  find: FindPce
  /** The gate that refuses a call with `no_pce_credentials` if the caller has no PCE. */
  gate: CallerGate
  /** Watches the single PCE key of shared mode. */
  key?: KeyWatch
  readonly close: () => void
}

interface AuthenticatedParts extends ServerParts {
  /**
   * Returns the address on which this server listens, or null if it does not listen yet. Users may not register this
   * address as their PCE.
   */
  listensAt?: () => { address: string; port: number } | null
  /** Posts notifications to the receiver; tests replace this function. */
  post?: Post
  /** The source of time and waits of the PCE clients; tests replace it. */
  pceTimers?: PceClientOptions['timers']
}

/** The parts of the authenticated server, without its routes. */
export interface AuthenticatedServer {
  server: PackageFacts
  dispatcher: DispatcherOptions
  confirmation: Pick<Confirmation, 'states' | 'tokens'>
  /**
   * Computes the hash of a call's arguments (D19), after normalising them in the same way as the dispatcher does
   * (D242).
   */
  readonly hashCall: (tool: string, args: Record<string, unknown>) => Promise<string>
  /** The store of approvals that people give on a web page; absent if calls are confirmed with tokens instead. */
  approvals?: Confirmation['approvals']
  auditRoute: AuditRoute
  /** Sends notifications to the receiver; absent if no receiver is configured. */
  notifier?: Notifier
  state: State
  /** The object that watches the single PCE key of shared mode. */
  key?: Pick<KeyWatch, 'check' | 'problem'>
  readonly roleOf: (identity: Identity) => Role | null
  /** The checks that end the access of people whom the operator has revoked. */
  readonly access: AccessCheck
  /** Reads the file with the scopes of groups again; absent if no such file is configured. Never rejects. */
  readonly reloadScopes?: () => Promise<void>
  offers: ServerOffers
  heavyFigures: HeavyCalls['figures']
  /**
   * Opens the context of a caller. If the request's headers restrict the offered tools, `narrowedTo` names the tools
   * that remain. `record` is the caller's keystore record, if it was already read when the request was admitted.
   */
  readonly openContext: (
    identity: Identity,
    request: Origin & { narrowedTo?: ReadonlySet<string>; record?: SealedCredentials | null },
  ) => OfferedContext | Promise<OfferedContext>
  /**
   * Runs all gates that come before the confirmation gate, to check whether the call is permitted. Throws the error of
   * the first gate that refuses it.
   */
  readonly checkCall: (tool: ToolFacts, callerContext: CallerContext) => void
  /** The checks that must pass before this process receives calls. Readiness depends on them. */
  checks: readonly HealthCheck[]
  close(): Promise<void>
}

/**
 * Assembles the server of the two authenticated modes. Calls pass its gates in the order of the specification (S2). PCE
 * credentials come from the keystore or, in shared mode, from the environment. Rejects with StartupError.
 */
export async function composeAuthenticated(
  config: PerUserConfig | SharedConfig,
  parts: AuthenticatedParts,
): Promise<AuthenticatedServer> {
  const { log, meter, tracing } = parts
  const hasSetup = config.mode === 'per_user' && setupUrlOf(config) !== null
  const offers = offerTools(config, parts.tools)
  const tools = requireConfirmations(hasSetup ? parts.tools : withoutSetup(parts.tools), config.confirm.tools)
  const { publicUrl } = config.http
  const now = parts.now ?? (() => Date.now())
  const tracker = createCallTracker()
  const callTracker = { ...tracker, mayWrite: tracker.requireWrite, onRequest: observeRequests(parts) }
  const server = readPackage()
  const scopes = config.scopesPath === undefined ? null : await loadScopes(config.scopesPath, log)
  const pces = await (config.mode === 'shared'
    ? openSharedPce(config, callTracker, parts, now)
    : openUserPces(config, callTracker, parts, now))
  const { state } = pces
  try {
    let findAsked: ApprovalDesk['find'] = () => Promise.resolve(null)
    const notifier =
      config.notify &&
      createNotifier({
        state,
        config: { ...config, notify: config.notify },
        log,
        meter,
        now,
        post: parts.post,
        findApproval: async (id) => {
          const asked = await findAsked(id)
          return asked ? { summary: asked.request.shown.summary, expiresAt: asked.request.expiresAt } : null
        },
      })
    const opened = openAudit(config, parts)
    const audit = notifier === undefined ? opened : tellOfAudit(opened, notifier)
    const access = createAccessCheck({ revocations: state.revocations, now, log })
    const noteUse = createUseNotes({ people: people(state.notes), now, log })
    const heavy = threadTools(config, { ...parts, tools, server, now })
    const guardrails = openGuardrails(config.guardrails, {
      log,
      now,
      ...(config.confirm.approval && { overrides: callTracker.overrides }),
    })
    const find = guardFound(pces.find, guardrails.guard)
    const openContext = createContextOpener(config.mode, config.roles, find, scopes)
    // Confirm tokens are bound to this state by a random value that is stored in it. Only this state records which of
    // the tokens were used, so they must not be valid with another state file, nor with a new file that replaces a lost
    // one.
    const audience = `${publicUrl}#${await state.notes.setOnce('confirm_tokens', randomUUID())}`
    const roleOf = (identity: Identity) => mapRole(identity, config.roles)
    const auditRoute = createRouteAudit(audit)
    const readArguments = createArgumentsReader(tools)
    const confirmation = createConfirmation({
      config: config.confirm,
      audience,
      state,
      createTokens,
      isRevokedSince: access.isRevokedSince,
      roleOf,
      tools,
      audit: auditRoute,
      log,
      mode: config.mode,
      publicUrl,
      now,
      meter,
    })
    const { approvals } = confirmation
    if (approvals !== undefined) findAsked = (id) => approvals.desk.find(id)
    return {
      server,
      ...(notifier && { notifier }),
      dispatcher: {
        tools: heavy.tools,
        gates: [
          roleGate,
          ...(state.findProblem ? [stateGate(state.findProblem)] : []),
          pces.gate,
          auditGate(audit),
          provenGate,
          ...(scopes === null ? [] : [scopeGate(scopes.judgement)]),
          ...guardrails.gates,
          confirmGate(confirmation),
        ],
        audit,
        log,
        limits: config.limits,
        // All replicas derive the same key, so each of them accepts the cursors of the others.
        cursorKey: deriveCursorKey(config.confirm.hmacKey),
        callTracker,
        server,
        now,
        meter,
        tracing,
      },
      confirmation,
      hashCall: async (name, args) => confirmation.hash(await readArguments(name, args)),
      ...(confirmation.approvals && { approvals: confirmation.approvals }),
      auditRoute,
      state,
      ...(pces.key && { key: pces.key }),
      roleOf,
      access,
      ...(scopes !== null && { reloadScopes: () => scopes.reload() }),
      offers,
      heavyFigures: heavy.figures,
      openContext(identity, { narrowedTo, record, client, clientAddress }) {
        const withOffer = (context: OpenedContext) => {
          // Only people with a role are noted, so that people who may use nothing cannot fill the store.
          if (context.caller.role !== null) noteUse(identity)
          return Object.assign(context, {
            offer: offers.offerTo(context.caller.role, narrowedTo),
            mayWrite: () => access.requireWrite(identity),
          })
        }
        const context = inStage(tracing, 'context', () => openContext(identity, { client, clientAddress }, record))
        return context instanceof Promise ? context.then(withOffer) : withOffer(context)
      },
      checkCall(tool, callerContext) {
        roleGate.check({ tool, callerContext })
        pces.gate.check({ tool, callerContext })
      },
      checks: [
        {
          name: config.database ? 'state database' : 'state file',
          run: () => state.checkWritable(),
          ...(state.findProblem && { findProblem: state.findProblem }),
        },
        { name: 'audit log', run: () => audit?.check() },
      ],
      async close() {
        confirmation.close()
        pces.close()
        await heavy.close()
        await notifier?.close()
        await state.close()
      },
    }
  } catch (error) {
    pces.close()
    await state.close()
    throw error
  }
}

/**
 * Removes the advice to use the page /setup from the descriptions of tools. Used if this server does not have that
 * page.
 */
const withoutSetup = (tools: readonly ListedTool[]): readonly ListedTool[] =>
  tools.map((tool) => {
    const summary = tool.summary.replace(/ Better: \/setup .*$/, '')
    return summary === tool.summary ? tool : changeTool(tool, { summary })
  })

/** Connects to the single PCE of shared mode. Rejects with StartupError. */
export async function openSharedPce(
  config: SharedConfig,
  callTracker: CallTracker & CurrentCall,
  { log, meter, pceTimers }: Pick<AuthenticatedParts, 'log' | 'meter' | 'pceTimers'>,
  now: () => number,
): Promise<PceSource> {
  const key = watchKey(() => pce, log, now)
  const noteAnswer: CallTracker['noteAnswer'] = (answer) => {
    key.note(answer.status)
    callTracker.noteAnswer(answer)
  }
  const pce = connectPce(config.pce, { ...callTracker, noteAnswer }, log, pceTimers && { timers: pceTimers })
  const warn = (line: string) => log.warn({}, line)
  const state = measureState(
    config.database
      ? await openDatabase(config.database, { now, warn })
      : openState(config.statePath, { now, variable: 'MCP_STATE_PATH', warn }),
    meter,
  )
  const credentials = fixedCredentials(
    true,
    'This server uses one PCE account for everyone; there is nothing to register.',
    {
      code: 'shared_mode',
      message: 'This server uses one PCE account for everyone: there is nothing to register or delete.',
    },
  )
  return {
    state,
    find: () => ({ pce, credentials }),
    gate: pceGate('The operator sets PCE_HOST, API_KEY and API_SECRET.'),
    key,
    close() {
      key.close()
      pce.close()
    },
  }
}

/** Opens the keystore with the credentials for users' PCEs. Rejects with StartupError. */
async function openUserPces(
  config: PerUserConfig,
  callTracker: CallTracker & CurrentCall,
  { log, meter, listensAt, pceTimers }: Pick<AuthenticatedParts, 'log' | 'meter' | 'listensAt' | 'pceTimers'>,
  now: () => number,
): Promise<PceSource> {
  const { state, keystore, lastChecks } = await openKeystoreState(config.keystore, {
    now,
    warn: (line) => log.warn({}, line),
    meter,
    ...(config.database && { database: config.database }),
  })
  try {
    const { find, close } = createUserPces(config, {
      keystore: {
        ...keystore,
        async write(owner, credentials) {
          await callTracker.mayWrite?.()
          const version = await keystore.write(owner, credentials)
          await people(state.notes)
            .registered(owner, { version, at: now() })
            .catch((err: unknown) => log.info({ err }, 'when a person registered could not be stored'))
          return version
        },
      },
      lastChecks,
      callTracker,
      log,
      now,
      own: listensAt,
      timers: pceTimers,
      ...(state.admissions && { admissions: state.admissions }),
    })
    return { state, find, gate: userPceGate(setupUrlOf(config)), close }
  } catch (error) {
    await state.close()
    throw error
  }
}

/**
 * Creates the gate that requires a PCE, for the mode in which each caller registers a PCE key. `setupUrl` is null if
 * callers cannot do this in a browser.
 */
export function userPceGate(setupUrl: string | null): CallerGate {
  if (setupUrl === null)
    return pceGate('Register your PCE API key with register-pce-credentials; this server has no login for browsers.', {
      setup_path: '/setup',
    })
  return pceGate(
    `Register your PCE API key at ${setupUrl} in a browser, where no model can see it; register-pce-credentials works too.`,
    { setup_path: '/setup', setup_url: setupUrl },
  )
}

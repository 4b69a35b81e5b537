import { dirname, join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { connectPce, findPceFaults } from '../../plugins/context/connect-pce.js'
import type { Confirmation } from '../../plugins/confirm/create-confirmation.js'
import { pceGate } from '../../plugins/dispatcher/admit-call.js'
import {
  type AuditLog,
  checkAuditPath,
  createFileAudit,
  createStreamAudit,
} from '../../plugins/dispatcher/audit-log.js'
import type { OfferedContext, ServerLog } from '../../plugins/dispatcher/call.js'
import { confirmGate } from '../../plugins/dispatcher/confirm-gate.js'
import type { DispatcherOptions } from '../../plugins/dispatcher/dispatch.js'
import { createHeavyCalls, type HeavyCalls } from '../../plugins/dispatcher/heavy/heavy-calls.js'
import { createArgumentsReader } from '../../plugins/dispatcher/leave-out-nulls.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { replicaOf } from '../process/name-replica.js'
import { type PackageFacts, readPackage } from '../process/read-package.js'
import {
  type Config,
  type Fault,
  type InsecureHttpConfig,
  inWords,
  StartupError,
  type StdioConfig,
} from '../../schemas/config.js'
import type { RequestFacts, RequestState } from '../../schemas/approvals.js'
import type { CallToConfirm } from '../../schemas/confirmations.js'
import type { CredentialsPort } from '../../schemas/credentials.js'
import { type ErrorCode, ToolError } from '../../schemas/errors.js'
import type { ListedTool } from '../../tools/listed-tool.js'
import { observeAudit, observeRequests, type Observers } from './observe.js'
import { openGuardrails, type Guardrails } from './open-guardrails.js'
import { offerTools, type ServerOffers } from './offer-tools.js'
import { requireConfirmations } from './require-confirmations.js'

export interface ServerParts extends Observers {
  tools: readonly ListedTool[]
  log: ServerLog
  /** The module that worker threads load to run heavy tools. Without it, heavy tools run in the main thread. */
  worker?: URL
  /**
   * The destination of audit entries if no audit file is configured. If this destination is absent as well, no audit
   * entries are written.
   */
  auditStream?: Writable
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/** The role of every caller of a server without a login. */
export const LOCAL_ROLE = 'admin'

/**
 * The parts of a server without a login, for both transports. Such a server has a single PCE, and a single caller who
 * may do everything.
 */
interface UnauthenticatedServer {
  server: PackageFacts
  dispatcher: DispatcherOptions
  /** The caller context for requests whose headers do not restrict the offered tools. */
  callerContext: OfferedContext
  offers: ServerOffers
  /** Judges requests by the guardrails; null if there are none. */
  judge: Guardrails['judge']
  heavyFigures: HeavyCalls['figures']
  /** Asks the person at the client to agree to a call; undefined if nobody is asked. */
  asking?: { owner: null } & Pick<ReturnType<typeof loadConfirmation>, 'hash' | 'states'>
  /** Stops the worker threads. */
  close(): Promise<void>
}

/**
 * Creates a confirmation whose module is loaded only with the first call that needs it, because a user waits while a
 * stdio server starts.
 */
function loadConfirmation(now: () => number, tools: readonly ListedTool[]) {
  const readArguments = createArgumentsReader(tools)
  let loading: Promise<Confirmation> | undefined
  const load = () =>
    (loading ??= import('../../plugins/confirm/create-confirmation.js').then(({ createConfirmation }) =>
      createConfirmation({ now }),
    ))
  return {
    admit: async (call: CallToConfirm) => (await load()).admit(call),
    hash: async (tool: string, args: Record<string, unknown>) => (await load()).hash(await readArguments(tool, args)),
    states: {
      seal: async (state: RequestState) => (await load()).states.seal(state),
      open: async (sealed: string, facts: RequestFacts) => (await load()).states.open(sealed, facts),
    },
  }
}

/**
 * Assembles the server without a login, for stdio, and for HTTP during development. There is no role to check, and
 * nobody to whom a confirm token could be given. Therefore, the only gate checks that there is a PCE (D9, D15). Over
 * stdio, the person at the client may have to agree to calls (D147). Throws StartupError.
 */
export function composeUnauthenticated(
  config: StdioConfig | InsecureHttpConfig,
  parts: ServerParts,
): UnauthenticatedServer {
  const offers = offerTools(config, parts.tools)
  const callTracker = { ...createCallTracker(), onRequest: observeRequests(parts) }
  const server = readPackage()
  const audit = openAudit(config, parts)
  const now = parts.now ?? (() => Date.now())
  const guardrails = openGuardrails(config.guardrails, { log: parts.log, now })
  const pce = config.pce === undefined ? null : guardrails.guard(connectPce(config.pce, callTracker, parts.log))
  const confirm = config.mode === 'stdio' ? config.confirm : undefined
  const confirmation = confirm && loadConfirmation(now, parts.tools)
  const tools = confirm === undefined ? parts.tools : requireConfirmations(parts.tools, confirm.tools)
  const heavy = threadTools(config, { ...parts, tools, server, now })
  return {
    server,
    close: () => heavy.close(),
    judge: guardrails.judge,
    offers,
    heavyFigures: heavy.figures,
    ...(confirmation && { asking: { owner: null, states: confirmation.states, hash: confirmation.hash } }),
    callerContext: {
      caller: { mode: config.mode, role: LOCAL_ROLE, iss: null, sub: null },
      offer: offers.offerTo(LOCAL_ROLE),
      transport: config.mode === 'stdio' ? 'stdio' : 'http',
      pce,
      credentials: credentialsOf(config),
    },
    dispatcher: {
      tools: heavy.tools,
      gates: [
        pceGate('Start the server with PCE_HOST, API_KEY and API_SECRET.'),
        ...guardrails.gates,
        ...(confirmation ? [confirmGate(confirmation)] : []),
      ],
      audit,
      log: parts.log,
      limits: config.limits,
      callTracker,
      server,
      now,
      meter: parts.meter,
      tracing: parts.tracing,
    },
  }
}

/** Returns the tools. If there is a module for worker threads, the heavy tools run in them. */
export function threadTools(
  { heavy }: Pick<StdioConfig, 'heavy'>,
  {
    tools,
    worker,
    server,
    log,
    now,
  }: Required<Pick<ServerParts, 'tools' | 'log' | 'now'>> & Pick<ServerParts, 'worker'> & { server: PackageFacts },
): HeavyCalls {
  if (worker === undefined)
    return { tools, figures: () => ({ running: 0, waiting: 0 }), close: () => Promise.resolve() }
  return createHeavyCalls(tools, { ...heavy, worker, server, log, now })
}

function credentialsOf(config: StdioConfig | InsecureHttpConfig): CredentialsPort {
  const message =
    config.pce === undefined
      ? 'No PCE is configured: start the server with PCE_HOST, API_KEY and API_SECRET.'
      : 'The PCE key comes from the environment of the server and serves every call.'
  return fixedCredentials(config.pce !== undefined, message, {
    code: 'keystore_unavailable',
    message: 'There is no keystore in this mode: the PCE key comes from the environment of the server.',
  })
}

/** Opens the audit log. Returns null if none is configured. Throws StartupError if its file cannot be opened. */
export function openAudit(
  config: Pick<Config, 'auditLogPath' | 'replicaId'>,
  { auditStream: stream, log, ...observers }: Pick<ServerParts, 'auditStream' | 'log' | 'meter'>,
): AuditLog | null {
  const replica = replicaOf(config)
  const { auditLogPath: path } = config
  if (path === undefined)
    return stream === undefined ? null : observeAudit(createStreamAudit(stream, replica), observers)
  const noticed = (what: string) =>
    log.warn({}, `the file of the audit log was ${what}: new entries go to a new file at the same path`)
  try {
    return observeAudit(createFileAudit(path, undefined, noticed, replica), observers)
  } catch (error) {
    throw new StartupError(auditFault(path, error))
  }
}

/**
 * Finds configured files that cannot be read or written; used for every mode of the server. It changes nothing, so that
 * its faults can be reported together with faults in the settings.
 */
export function findFileFaults(config: Config): Fault[] {
  const means = config.mode === 'per_user' ? config.userPce : config.pce
  const ofPce = means === undefined ? [] : findPceFaults(means)
  const { auditLogPath: path } = config
  if (path === undefined) return ofPce
  try {
    checkAuditPath(path)
    return ofPce
  } catch (error) {
    return [...ofPce, auditFault(path, error)]
  }
}

const auditFault = (path: string, error: unknown): Fault => ({
  problem: `MCP_AUDIT_LOG_PATH '${path}' cannot be written: ${inWords(error)}`,
  remedy: remedyOfAudit(path, (error as NodeJS.ErrnoException).code),
})

function remedyOfAudit(path: string, code: string | undefined): string {
  const folder = dirname(resolve(path))
  if (code === 'ENOENT') return `Create the folder '${folder}' with write access for the user of this server.`
  if (code === 'EISDIR') return `Use the path of a file in it: MCP_AUDIT_LOG_PATH=${join(path, 'audit.log')}`
  if (code === 'ENXIO') return 'Start the program that reads it first, or use the path of a file.'
  return `Give the user of this server write access to the file and its folder '${folder}', or use another path.`
}

/**
 * Creates the interface through which tools manage credentials, for modes without a keystore. In these modes, either
 * all callers use the same PCE or nobody has one. `refusal` is the error for attempts to register or remove
 * credentials.
 */
export function fixedCredentials(
  registered: boolean,
  message: string,
  refusal: { code: ErrorCode; message: string },
): CredentialsPort {
  const refuse = () => Promise.reject(new ToolError(refusal.code, refusal.message))
  return {
    status: () => Promise.resolve({ registered, message }),
    register: refuse,
    noteCheck: () => Promise.resolve(),
    remove: refuse,
  }
}

import { type Identity, type Role, ROLES } from '../../../schemas/caller.js'
import { ToolError } from '../../../schemas/errors.js'
import type { UsedTokens } from '../../../schemas/state.js'
import type { BrowserLogin, LoginWish, RunExchange } from './browser-login.js'
import {
  addLogin,
  beginSession,
  type EndedSessions,
  LOGIN_SECONDS,
  type PendingLogin,
  type SessionData,
  takeLogin,
  type TriedLogins,
} from './browser-session.js'

interface Ports {
  login: BrowserLogin
  groupsOfRole: Readonly<Record<Role, readonly string[]>>
  ended: EndedSessions
  usedTokens: UsedTokens
  tried: TriedLogins
  /** Rejects when nothing could be recorded now. */
  checkState: () => Promise<void>
  runExchange: RunExchange
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Begins a login in this browser; resolves with where to send it. Rejects with ToolError `login_unavailable`. */
export async function beginLogin(session: SessionData, wish: LoginWish, { login }: Ports): Promise<string> {
  const { url, pending } = await login.start(wish)
  session.pendingLogins = addLogin(session.pendingLogins, pending)
  return url
}

/** Where a login leads back to that the browser has come back from with this query; undefined for the usual page. */
export function findBackTo({ pendingLogins }: SessionData, query: string): string | undefined {
  const state = new URLSearchParams(query).get('state')
  return pendingLogins.find((one) => one.state === state)?.backTo
}

/**
 * Ends a login with the query that the browser brought back: checks that it was started here, fetches the access token, has it checked,
 * and keeps who it names in a new session. The token itself is kept nowhere. Rejects with ToolError `login_failed`,
 * `login_unavailable` or `keys_unavailable`, and the login cannot be tried again; with `overloaded`, and with `login_unavailable` where
 * nothing can be recorded, nothing was started, and it can.
 *
 * Until it has succeeded a login lives in the cookie and in the memory of this process: anyone can begin one, and come back from it with
 * a code that they made up (D82).
 */
export async function completeLogin(
  session: SessionData,
  { query, client }: { query: string; client: string },
  verifyToken: (token: string) => Promise<Identity>,
  { login, groupsOfRole, ended, usedTokens, tried, checkState, runExchange, now }: Ports,
): Promise<Identity> {
  const taken = takeLogin(session.pendingLogins, new URLSearchParams(query).get('state'), now())
  if (taken === null) throw unknownLogin()
  return runExchange(client, async () => {
    const { state, until } = taken.login
    await checkState().catch(rejectUnrecorded)
    session.pendingLogins = taken.others
    // A copy of the cookie still holds the login. That it was used in another process is for the provider to know: a code works once
    // (RFC 6749, 4.1.2).
    if (!tried.add(state)) throw usedLogin()
    const { token, name, authenticatedAt } = await login.finish(query, taken.login)
    const askedAt = whenAsked(taken.login, authenticatedAt)
    const identity = { ...(await verifyForPerson(token, verifyToken)), ...(name !== undefined && { name }) }
    if (!(await usedTokens.claim(`setup-login:${state}`, until).catch(rejectUnclaimed))) throw usedLogin()
    await endLogin(session, ended)
    session.logIn(beginSession(keepDecidingGroups(identity, groupsOfRole), now(), askedAt))
    return identity
  })
}

/** The clock of the provider may be as much behind ours. */
const CLOCK_SKEW_MS = 60_000

/**
 * When the provider asked this person for their password: as it says, or since this login began, where it was told to and does not
 * say. Undefined where nobody knows. Throws ToolError `login_failed` where a recent login is wanted, and the provider was told to ask and says
 * itself that it did not.
 */
function whenAsked(login: PendingLogin, authenticatedAt: number | undefined): number | undefined {
  if (login.isAnew !== true) return authenticatedAt
  const begun = login.until - LOGIN_SECONDS * 1000
  if (authenticatedAt === undefined || authenticatedAt >= begun - CLOCK_SKEW_MS) return begun
  if (login.maxAgeSeconds === undefined) return authenticatedAt
  throw new ToolError(
    'login_failed',
    'The identity provider was told to ask for your password, and let you in without.',
    { reason: 'auth_time' },
    { hint: 'Log out there and try again. If it stays like this, tell the operator: prompt=login has no effect.' },
  )
}

/** Makes copies of the session's cookie worthless. */
export async function endLogin(session: SessionData, ended: EndedSessions): Promise<void> {
  const { person } = session
  if (person !== undefined) await ended.add(person.id, person.until)
}

const unknownLogin = () =>
  new ToolError(
    'login_failed',
    'This login was not started in this browser or took too long.',
    {},
    { hint: 'Start again. Your browser must accept cookies from this page.' },
  )

const usedLogin = () =>
  new ToolError('login_failed', 'This login was already used.', {}, { hint: 'Start again, unless you are logged in.' })

const rejectUnrecorded = (cause: StateError) =>
  cannotRecord(cause, 'Your login is not lost: reload this page in a minute. If it stays like this, tell the operator.')

const rejectUnclaimed = (cause: StateError) =>
  cannotRecord(cause, 'Log in again in a minute. If it stays like this, tell the operator.')

type StateError = Error & { cause?: { code?: unknown } }

/** The reason is a code such as SQLITE_FULL, for the log. */
function cannotRecord(cause: StateError, hint: string): never {
  const code = cause.cause?.code
  throw new ToolError(
    'login_unavailable',
    'This server cannot record that the login was used, so it did not complete it.',
    { reason: typeof code === 'string' ? code : 'state' },
    { cause, hint },
  )
}

/** A person cannot do anything about a token they never saw; what is wrong with it is for the operator. */
async function verifyForPerson(token: string, verifyToken: (token: string) => Promise<Identity>): Promise<Identity> {
  try {
    return await verifyToken(token)
  } catch (thrown) {
    if (!(thrown instanceof ToolError && thrown.code === 'unauthorized')) throw thrown
    const message = 'You logged in, but this server does not accept the access token of the identity provider.'
    const { reason } = thrown.details
    throw new ToolError(
      'login_failed',
      message,
      { reason },
      { cause: thrown, hint: `Tell the operator: ${String(reason)}.` },
    )
  }
}

/**
 * The same identity with no more groups than decide its role: one for each role that it has a group of. A person may be in hundreds of
 * groups, and a cookie holds 4 KB.
 */
function keepDecidingGroups(identity: Identity, groupsOfRole: Readonly<Record<Role, readonly string[]>>): Identity {
  const own = new Set(identity.groups)
  const groups = ROLES.flatMap((role) => groupsOfRole[role].filter((group) => own.has(group)).slice(0, 1))
  return { ...identity, groups: [...new Set(groups)] }
}

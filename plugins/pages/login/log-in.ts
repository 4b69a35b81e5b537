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
  /** Rejects if the store cannot record anything at the moment. */
  checkState: () => Promise<void>
  runExchange: RunExchange
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/**
 * Starts a login in this browser, and resolves with the URL of the identity provider to which the browser is
 * redirected. Rejects with ToolError `login_unavailable`.
 */
export async function beginLogin(session: SessionData, wish: LoginWish, { login }: Ports): Promise<string> {
  const { url, pending } = await login.start(wish)
  session.pendingLogins = addLogin(session.pendingLogins, pending)
  return url
}

/**
 * Returns the page to redirect to after the login, or undefined for the server's home page. `query` is the query string
 * with which the identity provider sent the browser back.
 */
export function findBackTo({ pendingLogins }: SessionData, query: string): string | undefined {
  const state = new URLSearchParams(query).get('state')
  return pendingLogins.find((one) => one.state === state)?.backTo
}

/**
 * Completes a login. `query` is the query string with which the identity provider sent the browser back. The function
 * checks that the login was started in this browser, fetches and verifies the access token, and stores the person in a
 * new session. The token itself is not kept.
 *
 * The login is used up by the attempt, except in two cases, in which it can be tried again: after ToolError
 * `overloaded`, and after a `login_unavailable` that was thrown because `checkState` rejected.
 *
 * Until a login has succeeded, it exists only in the cookie and in the memory of this process, because anyone can start
 * a login and come back with an invented code (D82).
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
    // A copy of the cookie may be used to try the same login again. If another process has already sent the login's
    // code to the provider, the provider refuses it this time, because a code is valid only once (RFC 6749, 4.1.2).
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

/** Maximum number of milliseconds by which the provider's clock may be slow. */
const CLOCK_SKEW_MS = 60_000

/**
 * Returns when the person last entered the password at the provider; undefined if that is unknown. The provider may
 * state this time in `auth_time`. If the provider was not told to ask for the password (`isAnew`), the stated time is
 * returned.
 *
 * If the provider was told to ask and states no time, or a time since the start of this login, the start of the login
 * is returned. An earlier time shows that the provider did not ask. It is returned nevertheless, unless the login has a
 * maximum age; in that case, ToolError `login_failed` is thrown.
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

/** Ends the session, so that copies of its cookie can no longer be used. */
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

/**
 * Throws `login_unavailable`, because the store cannot record the login. The error's reason is a code for the log, such
 * as SQLITE_FULL.
 */
function cannotRecord(cause: StateError, hint: string): never {
  const code = cause.cause?.code
  throw new ToolError(
    'login_unavailable',
    'This server cannot record that the login was used, so it did not complete it.',
    { reason: typeof code === 'string' ? code : 'state' },
    { cause, hint },
  )
}

/**
 * Verifies the access token that a login has fetched. If it is not accepted, the error asks the person to tell the
 * operator, because the person never saw the token and cannot solve the problem.
 */
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
 * Reduces an identity's groups to those that determine its role: at most one group for each role. A person may be in
 * hundreds of groups, but a cookie can hold only 4 KB.
 */
function keepDecidingGroups(identity: Identity, groupsOfRole: Readonly<Record<Role, readonly string[]>>): Identity {
  const own = new Set(identity.groups)
  const groups = ROLES.flatMap((role) => groupsOfRole[role].filter((group) => own.has(group)).slice(0, 1))
  return { ...identity, groups: [...new Set(groups)] }
}

import type { ServiceError } from '../errors/convert.js'
import type { ErrorCode } from '../../schemas/errors.js'
import { renderMessagePage } from './message-page.js'

const TITLES: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'Please log in',
  form_expired: 'This form has expired',
  login_failed: 'The login did not succeed',
  login_unavailable: 'Nobody can log in right now',
  keys_unavailable: 'Nobody can log in right now',
  rate_limited: 'Too many attempts',
  overloaded: 'The server is busy',
  host_not_allowed: 'Wrong address',
  origin_not_allowed: 'Wrong address',
}

/** What a person reads in place of the page they asked for. `canLogIn`: whether this server has a browser login. */
export function renderRefusalPage(
  error: ServiceError,
  { requestId, basePath, canLogIn }: { requestId: string; basePath: string; canLogIn: boolean },
): string {
  const { code, message, hint } = error
  const needsLogin = code === 'unauthorized' || code === 'login_failed'
  const withoutLogin = 'This server has no browser login: send an access token in the Authorization header.'
  return renderMessagePage({
    title: TITLES[code] ?? 'This did not work',
    text: message,
    ...(needsLogin && !canLogIn ? { hint: withoutLogin } : hint !== undefined && { hint }),
    code,
    requestId,
    ...((canLogIn || !needsLogin) && {
      link: { href: `${basePath}/setup`, label: needsLogin ? 'Log in' : 'Back to the page' },
    }),
  })
}

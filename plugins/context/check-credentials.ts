import type { PceCredentials } from '../../schemas/credentials.js'

export interface FieldProblem {
  /** JSON pointer to the argument of register-pce-credentials, which is the form's field as well. */
  path: string
  message: string
}

const MOST_CHARACTERS = { '/api_key': 255, '/api_secret': 1024, '/label': 100 }

/** What is wrong with credentials, but for their host. Says nothing of what they hold. */
export function checkCredentials(credentials: PceCredentials, allowsInsecureTls: boolean): FieldProblem[] {
  const { port, orgId, apiKey, apiSecret, tlsVerify, label } = credentials
  const problems = [
    ...(isWhole(port, 65_535) ? [] : [{ path: '/pce_port', message: 'a port is a whole number from 1 to 65535' }]),
    ...(isWhole(orgId) ? [] : [{ path: '/pce_org_id', message: 'an organisation id is a whole number from 1 on' }]),
    ...checkText('/api_key', apiKey),
    ...checkText('/api_secret', apiSecret),
    ...(label === undefined ? [] : checkText('/label', label)),
  ]
  if (!tlsVerify && !allowsInsecureTls) {
    const message = 'the operator does not allow a PCE whose certificate is not checked (MCP_ALLOW_INSECURE_PCE_TLS)'
    problems.push({ path: '/tls_verify', message })
  }
  return problems
}

const isWhole = (value: number, most = Number.MAX_SAFE_INTEGER) =>
  Number.isSafeInteger(value) && value >= 1 && value <= most

function checkText(path: keyof typeof MOST_CHARACTERS, text: string): FieldProblem[] {
  const most = MOST_CHARACTERS[path]
  if (text.trim() === '') return [{ path, message: 'it is empty' }]
  if (text.length > most) return [{ path, message: `at most ${most} characters` }]
  // Line breaks could end a header or a line of a log; invisible and direction marks show a label as another.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(text)) return [{ path, message: 'it holds invisible characters' }]
  // RFC 7617, 2: everything behind the first colon would be taken for the secret.
  if (path === '/api_key' && text.includes(':')) return [{ path, message: 'an API key has no colon in it' }]
  return []
}

import { ACCESS_REVOKED } from './access.js'
import type { ErrorCode } from './errors.js'
import { GUARDRAIL_CODES } from './guardrails.js'

/** The error codes for requests that were not sent, by the `reason` of the error. */
const UNSENT: Readonly<Record<string, ErrorCode>> = {
  [ACCESS_REVOKED]: 'unauthorized',
  STATE_UNREADABLE: 'state_unavailable',
  ...Object.fromEntries(GUARDRAIL_CODES.map((code) => [code, code])),
}

/**
 * Returns the error code for a change that this server did not send to the PCE (PceError `write_refused`). If the error
 * has no reason, the change was outside of the caller's scopes.
 */
export const codeOfUnsent = ({ reason }: { reason?: string }): ErrorCode => UNSENT[reason ?? ''] ?? 'out_of_scope'

/**
 * The error codes of this server. The first six come from the specification (S20); the others belong to the tools and
 * the transport. The table in `plugins/errors/table.ts` says what each code means for HTTP, for people and for the log.
 */
export const ERROR_CODES = [
  'forbidden_no_role',
  'forbidden',
  'out_of_scope',
  'protected',
  'frozen',
  'too_many_workloads',
  'no_pce_credentials',
  'confirm_required',
  'confirm_token_replay',
  'approval_pending',
  'approval_denied',
  'approval_expired',
  'approval_required',
  'person_declined',
  'confirmation_unsupported',
  'shared_mode',
  'server_misconfigured',
  'unresolved_label_filter',
  'unknown_group_by',
  'unknown_dimension',
  'invalid_ingress_services',
  'invalid_egress_services',
  'egress_service_in_ingress',
  'process_qualified_deny_unsupported',
  'invalid_actor',
  'invalid_href',
  'no_update_fields',
  'empty_service',
  'conflicting_service_definition',
  'invalid_service_definition',
  'label_not_found',
  'invalid_scope_label',
  'invalid_deny_service',
  'no_workloads',
  'changelog_unavailable',
  'invalid_argument',
  'missing_identifier',
  'conflicting_identifiers',
  'not_found',
  'ambiguous_name',
  'already_exists',
  'invalid_window',
  'not_pending',
  'pending_changes',
  'dependencies_required',
  'pce_error',
  'pce_unreachable',
  'pce_answer_too_large',
  'invalid_response',
  'outcome_unknown',
  'traffic_query_failed',
  'traffic_query_timeout',
  'cancelled',
  'keystore_unavailable',
  'credentials_unreadable',
  'confirm_unavailable',
  'audit_unavailable',
  'state_unavailable',
  'rate_limited',
  'overloaded',
  'busy',
  'analysis_failed',
  'unauthorized',
  'keys_unavailable',
  'form_expired',
  'login_failed',
  'login_unavailable',
  'unknown_tool',
  'host_not_allowed',
  'origin_not_allowed',
  'bad_request',
  'method_not_allowed',
  'not_acceptable',
  'unsupported_media_type',
  'unsupported_protocol_version',
  'payload_too_large',
  'request_timeout',
  'headers_too_large',
  'internal',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

const UNTRUSTED =
  "Nothing was changed. If a private CA signed the PCE's certificate, PCE_CA_FILE has to name the PEM file of that CA, on the server."

const CONNECTION_HINTS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_UNTRUSTED: UNTRUSTED,
  CERT_HAS_EXPIRED: 'Nothing was changed. Whoever runs the PCE has to renew its certificate.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'Nothing was changed. Reach the PCE by a name that its certificate has: in PCE_HOST, or in what was registered.',
  ECONNREFUSED:
    'Nothing was changed. No program listens there: PCEs of your own usually have port 8443 (PCE_PORT), hosted ones 443. Where only a proxy leads out, PCE_PROXY_URL names it.',
  ENOTFOUND: 'Nothing was changed. Check the name of the PCE: in PCE_HOST, or in what was registered.',
  SCHEME_MISMATCH: 'Nothing was changed. Correct PCE_HOST and PCE_PORT, or what was registered.',
}

/**
 * Returns advice for a person about a failed connection to a PCE, depending on the client's error; undefined if there is
 * no advice for this error.
 */
export function connectionHint({ reason = '', message }: { reason?: string; message: string }): string | undefined {
  if (reason === 'ECONNREFUSED' && message.includes(' through the proxy '))
    return 'Nothing was changed. Check PCE_PROXY_URL, and whether the proxy reaches the PCE.'
  return CONNECTION_HINTS[reason]
}

/** Machine-readable facts beside the message, at the top level of the error body (D3). */
export type ErrorDetails = Record<string, unknown>

/**
 * The only error that tools, gates and resolvers throw on purpose. `message` and `details` reach the caller unchanged,
 * so neither may contain a secret. Any other error becomes `internal` with a fixed text.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
    options?: { cause?: unknown; hint?: string; ask?: FormQuestion },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause })
    this.hint = options?.hint
    this.ask = options?.ask
  }
  readonly hint: string | undefined
  /**
   * A question that a transport puts to the person at the client if it can, in place of the error. It is not part of
   * the error that clients receive.
   */
  readonly ask: FormQuestion | undefined
}

/** A question that a person answers with yes or no in a form. */
export interface FormQuestion {
  /** Digest of what the question shows (`Preview.boundTo`). The answer "yes" is consent to exactly that. */
  boundTo: string
  /** The text of the question, as the person sees it. */
  message: string
}

/** An error as clients see it, the same over MCP and HTTP. Details are at the top level beside these fields (D3). */
export interface ErrorBody extends ErrorDetails {
  error: ErrorCode
  message: string
  request_id: string
  hint?: string
}

import type { ErrorCode } from '../../schemas/errors.js'

/**
 * The party that can do something about an error: the caller, with another call or login; the operator of this server;
 * the people who run the PCE; or nobody, because the error passes by itself.
 */
export type Turn = 'caller' | 'operator' | 'pce' | 'nobody'

export interface ErrorRow {
  /**
   * The HTTP status if the error is the whole answer. The error of a failed tool call is part of an answer with status
   * 200.
   */
  status: number
  /** The message for errors that have no more specific message. */
  message: string
  /** A hint on what the caller can do about the error. */
  hint?: string
  /** The level in the server log; `error` means that the operator must act. */
  level: 'info' | 'warn' | 'error'
  /**
   * The parties that can do something about the error, in the order in which to ask them. docs/operations.md shows
   * them.
   */
  turn: readonly [Turn, ...Turn[]]
}

const refused = (message: string, hint?: string): ErrorRow => ({
  status: 400,
  message,
  ...(hint && { hint }),
  level: 'info',
  turn: ['caller'],
})

/** The meaning of every error code for HTTP, for people and for the log. */
export const ERROR_TABLE: Record<ErrorCode, ErrorRow> = {
  forbidden_no_role: {
    status: 403,
    message: 'Your groups give you no role here.',
    hint: 'Ask the operator to map one of your groups to a role.',
    level: 'warn',
    turn: ['operator'],
  },
  forbidden: { status: 403, message: 'Your role may not call this tool.', level: 'warn', turn: ['caller', 'operator'] },
  out_of_scope: {
    status: 403,
    message: 'This is outside of the scopes that your groups give you.',
    hint: 'Nothing was written. Ask the operator for a wider scope, or somebody whose scope it is.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  protected: {
    status: 403,
    message: 'This is protected: nobody changes it through this server.',
    hint: 'Nothing was written. Leave it out, or have it changed in the PCE by those who may.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  frozen: {
    status: 403,
    message: 'Changes that take effect at once are frozen now.',
    hint: 'Nothing of it was written. Call again after the freeze; nobody, whatever the role, may do it before.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  too_many_workloads: {
    status: 403,
    message: 'This affects more workloads than one call may.',
    hint: 'Nothing of it was written. Do it in parts, each with fewer workloads; a server with approval by a person (MCP_APPROVAL) has two people approve it as a whole.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  no_pce_credentials: {
    status: 403,
    message: 'There are no PCE credentials for this call.',
    level: 'info',
    turn: ['caller'],
  },
  confirm_required: { status: 403, message: 'This call needs a confirm token.', level: 'info', turn: ['caller'] },
  confirm_token_replay: {
    status: 403,
    message: 'This confirm token was already used.',
    hint: 'Mint a fresh token and call again at once.',
    level: 'warn',
    turn: ['caller'],
  },
  approval_pending: {
    status: 403,
    message: 'This call waits for a person to approve it.',
    hint: 'Give the person the approval_url, and repeat the same call once they have decided.',
    level: 'info',
    turn: ['caller'],
  },
  approval_denied: {
    status: 403,
    message: 'A person has denied this call.',
    hint: 'Do not repeat it. Tell the person who asked for it, and pass on the note if there is one.',
    level: 'info',
    turn: ['caller'],
  },
  approval_expired: {
    status: 410,
    message: 'This request was not decided in time.',
    hint: 'Repeat the call to ask again.',
    level: 'info',
    turn: ['caller'],
  },
  approval_required: {
    status: 403,
    message: 'On this server, people approve calls on a page; there are no confirm tokens.',
    hint: 'Call the tool, and give the person the approval_url in its answer. Once they have approved, repeat the same call.',
    level: 'info',
    turn: ['caller'],
  },
  person_declined: {
    status: 403,
    message: 'The person declined in the client.',
    hint: 'Do not repeat it unless they ask for it.',
    level: 'info',
    turn: ['caller'],
  },
  confirmation_unsupported: {
    status: 403,
    message: 'This client cannot ask its user, so the call does not run.',
    hint: 'Use a client with form elicitation (MCP), or ask the operator of this server, who may unset MCP_CONFIRM_STDIO.',
    level: 'info',
    turn: ['caller', 'operator'],
  },
  shared_mode: {
    status: 409,
    message: 'This server uses one PCE account for everyone.',
    level: 'info',
    turn: ['caller'],
  },
  server_misconfigured: {
    status: 500,
    message: 'The server is not configured for this.',
    level: 'error',
    turn: ['operator'],
  },
  unresolved_label_filter: refused('A label in a filter does not exist.'),
  unknown_group_by: refused('Traffic cannot be grouped by this attribute.'),
  unknown_dimension: refused('This label dimension does not exist.'),
  invalid_ingress_services: refused('The ingress services are not valid.'),
  invalid_egress_services: refused('The egress services are not valid.'),
  egress_service_in_ingress: refused('An egress service cannot be used for ingress.'),
  process_qualified_deny_unsupported: refused('A deny rule cannot name a process.'),
  invalid_actor: refused('A provider or consumer is not valid.'),
  invalid_href: refused('This href is not valid here.'),
  no_update_fields: refused('There is nothing to update.', 'Name at least one field to change.'),
  empty_service: refused('A service needs at least one definition.'),
  conflicting_service_definition: refused('The service definitions contradict each other.'),
  invalid_service_definition: refused('A service definition is not valid.'),
  label_not_found: refused('This label does not exist.'),
  invalid_scope_label: refused('A label of the scope is not valid.'),
  invalid_deny_service: refused('A service of the deny rule is not valid.'),
  no_workloads: {
    status: 409,
    message: 'No workload has the labels of this application.',
    hint: 'Check the labels with get-workloads; dry_run still shows the plan.',
    level: 'info',
    turn: ['caller'],
  },
  changelog_unavailable: {
    status: 404,
    message: 'This installation was shipped without its changelog.',
    level: 'info',
    turn: ['operator'],
  },
  invalid_argument: refused('An argument is not valid.'),
  missing_identifier: refused('The call does not say which object is meant.', 'Name it or give its href.'),
  conflicting_identifiers: refused('The identifiers point to different objects.', 'Give only one of them.'),
  not_found: { status: 404, message: 'There is no such object.', level: 'info', turn: ['caller'] },
  ambiguous_name: {
    status: 409,
    message: 'Several objects have this name.',
    hint: 'Give the href of the one you mean.',
    level: 'info',
    turn: ['caller'],
  },
  already_exists: { status: 409, message: 'Such an object already exists.', level: 'info', turn: ['caller'] },
  invalid_window: refused('The time window is not valid.'),
  pending_changes: {
    status: 409,
    message: 'The draft has pending changes that the call does not name.',
    hint: 'Provision them first, or name each one that is to be dropped.',
    level: 'info',
    turn: ['caller'],
  },
  not_pending: { status: 409, message: 'This object has no pending change.', level: 'info', turn: ['caller'] },
  dependencies_required: {
    status: 409,
    message: 'Other pending changes must be provisioned together with this one.',
    level: 'info',
    turn: ['caller'],
  },
  pce_error: { status: 502, message: 'The PCE refused the request.', level: 'warn', turn: ['caller', 'pce'] },
  pce_answer_too_large: {
    status: 502,
    message: "The PCE's answer is larger than this server accepts.",
    hint: 'Ask for less: narrower filters, fewer results or a shorter window. An operator may raise MCP_PCE_ANSWER_MIB, or MCP_PCE_LIST_MIB for long lists.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  invalid_response: {
    status: 502,
    message: 'The PCE sent an answer that this server does not understand.',
    hint: 'The answer was not used. Check what is at the address of the PCE; check-pce-connection tells you more.',
    level: 'warn',
    turn: ['operator', 'pce'],
  },
  pce_unreachable: {
    status: 502,
    message: 'The PCE did not answer.',
    hint: 'Nothing was changed. Check the PCE address, the network and the certificate; check-pce-connection tells you more.',
    level: 'warn',
    turn: ['operator', 'pce'],
  },
  outcome_unknown: {
    status: 502,
    message: "The PCE's answer was lost: the change may have been made.",
    hint: 'Check the current state before repeating the call.',
    level: 'error',
    turn: ['caller', 'operator'],
  },
  traffic_query_failed: {
    status: 502,
    message: 'The PCE could not complete the traffic query.',
    level: 'warn',
    turn: ['caller', 'pce'],
  },
  traffic_query_timeout: {
    status: 504,
    message: 'The traffic query took too long and was abandoned.',
    hint: 'Ask for a shorter window or narrower filters.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  cancelled: { status: 499, message: 'The call was cancelled.', level: 'info', turn: ['nobody'] },
  keystore_unavailable: {
    status: 503,
    message: 'There is no credential store here.',
    level: 'error',
    turn: ['operator'],
  },
  credentials_unreadable: {
    status: 409,
    message: 'Your stored PCE credentials cannot be read.',
    hint: 'Register them again, as you did before.',
    level: 'error',
    turn: ['caller', 'operator'],
  },
  confirm_unavailable: {
    status: 503,
    message: 'The record of used confirm tokens cannot be written, so no confirmed call may run.',
    hint: 'Nothing was changed. Repeat the call shortly; if the token is then refused as used, mint a new one. If it persists, the operator must look at the server log.',
    level: 'error',
    turn: ['operator'],
  },
  state_unavailable: {
    status: 503,
    message: 'The database of this server does not answer, so nothing may be changed now.',
    hint: 'Nothing was changed. Read-only tools still work if they do not need it. Repeat the call shortly; if it persists, the operator must look at the server log.',
    level: 'error',
    turn: ['operator'],
  },
  audit_unavailable: {
    status: 503,
    message: 'The audit log cannot be written, so nothing that changes the PCE may run.',
    hint: 'Nothing was changed. Read-only tools still work; the operator must repair the audit log.',
    level: 'error',
    turn: ['operator'],
  },
  rate_limited: {
    status: 429,
    message: 'Too many requests.',
    hint: 'Wait for the time in Retry-After.',
    level: 'warn',
    turn: ['nobody', 'operator'],
  },
  overloaded: {
    status: 503,
    message: 'The server is at its limit of requests in flight.',
    hint: 'Repeat the request shortly.',
    level: 'warn',
    turn: ['nobody', 'operator'],
  },
  busy: {
    status: 503,
    message: 'All slots for expensive calls are in use.',
    hint: 'Repeat the call after retry_after_seconds; other calls still work in the meantime.',
    level: 'warn',
    turn: ['nobody', 'operator'],
  },
  analysis_failed: {
    status: 500,
    message: 'The call failed before it was finished.',
    hint: 'Ask for less: a shorter window, fewer rows or a filter.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  unauthorized: {
    status: 401,
    message: 'A valid access token is required.',
    level: 'info',
    turn: ['caller', 'operator'],
  },
  keys_unavailable: {
    status: 503,
    message: "The identity provider's keys have not been loaded yet, so no token can be checked.",
    hint: 'Your token may well be valid: repeat the request after the time in Retry-After.',
    level: 'error',
    turn: ['operator'],
  },
  form_expired: {
    status: 403,
    message: 'This form has expired or did not come from this page.',
    hint: 'Load the page again and repeat your entry.',
    level: 'warn',
    turn: ['caller'],
  },
  login_failed: {
    status: 403,
    message: 'The login did not succeed.',
    hint: 'Start again.',
    level: 'warn',
    turn: ['caller', 'operator'],
  },
  login_unavailable: {
    status: 503,
    message: 'The identity provider is not answering properly, so nobody can log in right now.',
    hint: 'Nothing was changed. Try again in a minute.',
    level: 'warn',
    turn: ['nobody', 'operator'],
  },
  unknown_tool: {
    status: 404,
    message: 'There is no tool with this name.',
    hint: 'tools/list lists all of them.',
    level: 'info',
    turn: ['caller'],
  },
  host_not_allowed: {
    status: 403,
    message: 'This server does not answer for the Host of this request.',
    hint: 'The operator can add it to MCP_ALLOWED_HOSTS.',
    level: 'warn',
    turn: ['operator'],
  },
  origin_not_allowed: {
    status: 403,
    message: 'This server does not accept the Origin of this request.',
    hint: 'The operator can add its host to MCP_ALLOWED_HOSTS.',
    level: 'warn',
    turn: ['operator'],
  },
  bad_request: refused('The request cannot be read.'),
  method_not_allowed: { status: 405, message: 'This method is not allowed here.', level: 'info', turn: ['caller'] },
  not_acceptable: {
    status: 406,
    message: 'The client must accept application/json, and text/event-stream too if it wants streams.',
    level: 'info',
    turn: ['caller'],
  },
  unsupported_media_type: {
    status: 415,
    message: 'The body must be application/json, not compressed.',
    level: 'info',
    turn: ['caller'],
  },
  unsupported_protocol_version: refused('This protocol version is not supported.'),
  payload_too_large: { status: 413, message: 'The body is too large.', level: 'info', turn: ['caller'] },
  request_timeout: { status: 408, message: 'The request took too long to arrive.', level: 'info', turn: ['caller'] },
  headers_too_large: { status: 431, message: 'The request headers are too large.', level: 'info', turn: ['caller'] },
  internal: {
    status: 500,
    message: 'The server failed to handle this call. Its log has the details under the request id.',
    level: 'error',
    turn: ['operator'],
  },
}

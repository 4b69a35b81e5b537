import type { ErrorRow, Turn } from '../../plugins/errors/table.js'
import { renderTable } from './markdown.js'

const TURNS: Readonly<Record<Turn, string>> = {
  operator: 'the operator',
  pce: "the PCE's administrator",
  nobody: 'nobody: it passes',
  caller: 'the caller',
}

/**
 * The remedies by error code: what the operator can do, or can ask the PCE's administrator to do. Codes without such a
 * remedy have no entry. What the caller can do is in the hint of the error.
 */
export const REMEDIES: Readonly<Record<string, string>> = {
  analysis_failed:
    'With `reason: "out_of_memory"`: raise `MCP_HEAVY_MEMORY_MIB`, and the memory of the container with it. Otherwise the log has it under the request id (`a thread has failed`).',
  audit_unavailable:
    'The check `audit log` of `/readyz`: free the disk, or let the user of the server write to `MCP_AUDIT_LOG_PATH`. It recovers by itself; entries that may be missing are marked by a line with `"phase":"gap"`.',
  busy: 'If it goes on: another process, or more `MCP_HEAVY_CALLS` where there are cores and memory ([Sizing](#sizing)).',
  cancelled:
    'Nothing. The client left, or the server was stopping: a change in progress is finished first, or ends as `outcome_unknown`.',
  changelog_unavailable: 'Install the package again: its `CHANGELOG.md` is missing.',
  confirmation_unsupported: 'Whoever set `MCP_CONFIRM_STDIO=1` decides: another client, or without that variable.',
  confirm_unavailable:
    'The check `state file` of `/readyz`: free the disk, and look at who owns the file and its folder. It recovers by itself.',
  credentials_unreadable:
    'One person: their record is damaged; nothing to do. Several at once: the file is, so [restore a backup](#back-up-and-restore).',
  forbidden: 'If they should have the role: put one of their groups into `MCP_ROLE_GROUPS_OPERATOR` or `_ADMIN`.',
  forbidden_no_role:
    'Put one of their groups, spelt as in the token, into a `MCP_ROLE_GROUPS_` variable, or them into a group. With `reason: "groups_overage"` the provider left the groups out: [what to do](identity-providers/entra-id.md#known-troubles).',
  host_not_allowed:
    'If the name is yours: add it to `MCP_ALLOWED_HOSTS`. Or the proxy does not pass `Host` on. Otherwise somebody is trying something.',
  internal: 'A fault of ours. The log has a stack under the request id (`tool failed`): report it with the version.',
  invalid_response:
    'Something else than a PCE answers at that address, or in between: a proxy with a login page, a load balancer, another product.',
  state_unavailable:
    'The database of `MCP_STATE_URL` does not answer, or takes no writes: `/readyz` names `state database`, and the log says since when and why. Tools that only read go on, and everything recovers by itself once the database is back: [PostgreSQL](#postgresql).',
  keystore_unavailable:
    'As `confirm_unavailable`; the log has the reason under the request id. If it says that `MCP_KEK` has changed, restart this process with the new key.',
  keys_unavailable:
    'The check `signing keys` of `/readyz`: this machine does not reach `MCP_OAUTH_JWKS_URL`. The log says why (`cannot be loaded`).',
  login_failed:
    'The log has the `reason` (`login failed`). `aud mismatch` and the like are [settings of the provider](authenticated-http.md#the-identity-provider); with `invalid_client` or `unauthorized_client` the provider refused, or seems to have refused, `MCP_OAUTH_CLIENT_ID` with its secret, and the line has a `remedy`.',
  login_unavailable:
    'If it goes on: the log has the `reason`. A code of SQLite is about the state file; anything else is the identity provider, or the way to it.',
  origin_not_allowed: 'If a web page of yours calls the server: add its host to `MCP_ALLOWED_HOSTS`.',
  out_of_scope:
    'The error names the object, the condition and the scopes of the caller. If they should be able to: widen the scope of one of their groups in `MCP_SCOPES_FILE` and send SIGHUP ([teams](teams.md)).',
  protected:
    'The error names the object, the condition and `MCP_PROTECTED`. It is meant to hold for admins, too: such changes are made in the PCE ([guardrails](guardrails.md)).',
  frozen: 'The error names the window of `MCP_FREEZE_WINDOWS` and its end ([guardrails](guardrails.md)).',
  too_many_workloads:
    'The error has the number and the limit, `MCP_MAX_WORKLOADS_AFFECTED`; null is a number that is not known ([guardrails](guardrails.md)).',
  outcome_unknown:
    'Once is an accident. Often means that something between here and the PCE cuts connections off: the idle time of a load balancer, or a `MCP_PCE_TIMEOUT_SECONDS` that is too short.',
  overloaded:
    'If it goes on: one client that repeats without end (`sub` in the `tool call` lines of the log), or `MCP_MAX_IN_FLIGHT` is too low.',
  pce_answer_too_large: 'Raise `MCP_PCE_ANSWER_MIB`, or `MCP_PCE_LIST_MIB` for long lists; both cost memory.',
  pce_error:
    "`http_status` and `pce_message` are the PCE's own. 401: the key was deleted or has expired (in shared mode it is yours: `API_KEY`). 403: the role of its owner at the PCE. 429: too many requests there. 5xx: its health.",
  pce_unreachable:
    "The caller's error has a `reason`, the log's lines `PCE request retried` a `code`, such as `ECONNREFUSED`. Try the PCE from this machine: name, route, proxy, certificate. If all that is well, it is down.",
  rate_limited:
    'One person: their client repeats without end. Everybody: behind a proxy without `MCP_TRUSTED_PROXIES` all share one address. The limits are the variables `MCP_…_PER_MINUTE`.',
  server_misconfigured:
    'A certificate or key file of the PCE connections can no longer be read; the log says which. Put it back and restart.',
  traffic_query_failed: "`pce_message` is the PCE's own. If it goes on, its traffic database needs a look.",
  traffic_query_timeout:
    'If short windows fail as well: the PCE is slow. `MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS` is how long it is given.',
  unauthorized:
    'One person: their token has expired, or is for something else. Everybody: the log says what is wrong with the tokens (`InvalidTokenError: …`); a change at the provider, or a clock that is off.',
}

/**
 * Renders two tables of error codes: first the codes for which the operator or the PCE's administrator may have to act,
 * then the codes that concern only the caller. Throws Error if a code of the first table has no remedy, or if a remedy
 * belongs to no code.
 */
export function renderErrorTables(
  table: Readonly<Record<string, ErrorRow>>,
  remedies: Readonly<Record<string, string>> = REMEDIES,
): string {
  const rows = Object.entries(table).sort(([one], [other]) => (one < other ? -1 : 1))
  const isCallers = ({ turn }: ErrorRow) => turn.every((who) => who === 'caller')
  const lost = [
    ...rows.filter(([code, row]) => !isCallers(row) && !(code in remedies)).map(([code]) => `${code} has no remedy`),
    ...Object.keys(remedies)
      .filter((code) => table[code] === undefined || isCallers(table[code]))
      .map((code) => `${code} needs no remedy`),
  ]
  if (lost.length > 0) throw new Error(lost.join(', '))
  const order = Object.keys(TURNS)
  const first = rows
    .filter(([, row]) => !isCallers(row))
    .sort(([, one], [, other]) => order.indexOf(one.turn[0]) - order.indexOf(other.turn[0]))
  return [
    '### Where somebody else than the caller may have to act',
    renderTable(
      ['Code', 'HTTP', 'Whose turn', 'What the caller is told', 'What you do'],
      first.map(([code, row]) => [...cellsOf(code, row), tell(row), remedies[code]!]),
    ),
    "### The caller's alone",
    renderTable(
      ['Code', 'HTTP', 'What the caller is told'],
      rows.filter(([, row]) => isCallers(row)).map(([code, row]) => [...cellsOf(code, row).slice(0, 2), tell(row)]),
    ),
  ].join('\n\n')
}

const cellsOf = (code: string, { status, turn }: ErrorRow) => [
  `\`${code}\``,
  String(status),
  turn.map((who) => TURNS[who]).join(', then '),
]

const tell = ({ message, hint }: ErrorRow) => (hint === undefined ? message : `${message} ${hint}`)

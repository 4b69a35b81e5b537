import type { Owner } from '../../schemas/caller.js'
import type { CredentialFacts, CredentialsPort, PceCredentials } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import { checkCredentials, type FieldProblem } from './check-credentials.js'
import type { PcePool } from './create-pce-pool.js'
import type { Connect, ContextLog, HostPolicy, Keystore } from './ports.js'
import { tryConnection } from './try-connection.js'

export interface UserCredentialsPorts {
  keystore: Keystore
  hosts: HostPolicy
  pool: PcePool
  connect: Connect
  /** Counts a registration; throws ToolError `rate_limited`. */
  limit: (owner: Owner) => void
  allowsInsecureTls: boolean
  /** Whether the certificate of a PCE is checked in the end, given what was registered. */
  isTlsChecked: (isWanted: boolean) => boolean
  /** Where a browser registers. */
  setupUrl: string
  /** How long a failing connection takes to report, in milliseconds. */
  patienceMs: number
  log: ContextLog
}

/** The credentials port of every caller of a per_user server, over one keystore (D18). */
export function createUserCredentials(ports: UserCredentialsPorts): (owner: Owner) => CredentialsPort {
  const { keystore, pool } = ports
  return (owner) => ({
    async status() {
      const record = await keystore.find(owner)
      if (record === null) {
        const message = `No PCE credentials are registered. Register at ${ports.setupUrl} in a browser.`
        return { registered: false, message }
      }
      const facts = factsOf(record.open(), ports)
      return { registered: true, message: 'Your own PCE credentials are registered.', facts }
    },
    register: (credentials) => register(ports, owner, credentials),
    async remove() {
      const isRemoved = await keystore.remove(owner)
      pool.drop(owner)
      return isRemoved
    },
  })
}

async function register(ports: UserCredentialsPorts, owner: Owner, given: PceCredentials) {
  const { keystore, hosts, pool, log } = ports
  const problems = checkCredentials(given, ports.allowsInsecureTls)
  const admitted = hosts.admit(given.host, given.port)
  if ('problem' in admitted) problems.push({ path: '/pce_host', message: admitted.problem })
  if ('problem' in admitted || problems.length > 0) throw refusal(problems)
  ports.limit(owner)
  const problem = await hosts.inspect(admitted.host, given.port)
  if (problem !== null) throw refusal([{ path: '/pce_host', message: problem }])

  const credentials = { ...given, host: admitted.host }
  const facts = factsOf(credentials, ports)
  // Before anything is stored: what the server cannot make a client of would be stored for nothing.
  const client = ports.connect(credentials, { once: true })
  await keystore.write(owner, credentials)
  pool.drop(owner)
  const { report, cause } = await tryConnection(client, ports.patienceMs)
  if (cause !== undefined) {
    const { message } = cause as Error
    log.info({ sub: owner.sub, pce_host: facts.host, reason: message }, 'no PCE answered at a registration')
  }
  return { facts, connection: report }
}

function refusal(problems: readonly FieldProblem[]): ToolError {
  const said = problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
  return new ToolError('invalid_argument', `Nothing was stored. ${said}`, { problems })
}

function factsOf(credentials: PceCredentials, { isTlsChecked }: UserCredentialsPorts): CredentialFacts {
  const { host, port, orgId, label } = credentials
  return { host, port, orgId, tlsVerify: isTlsChecked(credentials.tlsVerify), ...(label !== undefined && { label }) }
}

import type { DatabaseConfig } from '../schemas/config.js'
import { isLoopback, isPlaceholder, placeholderIn, readChoice, readInteger, type Reading } from './read-values.js'

const EXAMPLE = 'MCP_STATE_URL=postgres://svc_mcp:PASSWORD@db.example.com:5432/svc_mcp?sslmode=verify-full'
const DEFAULT_PORT = 5432
/**
 * The libpq parameters that are supported. Any other parameter could change where a connection goes, or how secure it
 * is.
 */
const PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'host'] as const

/**
 * Reads MCP_STATE_URL, a connection URI of PostgreSQL (libpq, 32.1.1.2), for servers that keep their state in a
 * database. Returns undefined if MCP_STATE_URL is not set or has a fault. Messages quote nothing of the URI except its
 * host and the names of parameters.
 */
export function readDatabase(reading: Reading): DatabaseConfig | undefined {
  const { env, faults } = reading
  const connectTimeoutSeconds = readInteger(reading, 'MCP_STATE_CONNECT_TIMEOUT_SECONDS', {
    min: 1,
    max: 3600,
    otherwise: 30,
  })
  const poolSize = readInteger(reading, 'MCP_STATE_POOL_SIZE', { min: 2, max: 200, otherwise: 10 })
  const limits = readChoice(reading, 'MCP_LIMITS', ['shared', 'replica'] as const, null)
  const value = env.MCP_STATE_URL
  if (!value) {
    if (limits === 'shared')
      faults.push({
        problem: 'MCP_LIMITS=shared requires MCP_STATE_URL',
        remedy: 'Replicas can only share limits in a database. Without one, unset MCP_LIMITS.',
      })
    return undefined
  }
  const place = readUrl(value, reading)
  return place && { ...place, connectTimeoutSeconds, poolSize, limits: limits ?? 'shared' }
}

function readUrl(value: string, { faults }: Reading): Pick<DatabaseConfig, 'connection' | 'tls' | 'where'> | undefined {
  const refuse = (what: string, remedy: string): undefined => {
    faults.push({ problem: `MCP_STATE_URL ${what}`, remedy })
    return undefined
  }
  // The value is a placeholder, because the file of this secret had a fault. That fault has already been reported.
  if (value === '\0') return undefined
  if (isPlaceholder(value)) return void faults.push(placeholderIn('MCP_STATE_URL'))
  const url = /[\s\p{Cc}]/u.test(value) || !URL.canParse(value) ? null : new URL(value)
  // An @ after the host means that an @ in the password was not escaped. What looks like the host or a parameter is
  // then part of the password, so it is not quoted in messages.
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || url.hash !== '' || /@/.test(url.pathname + url.search))
    return refuse(
      'must be a PostgreSQL URL',
      `Write it like ${EXAMPLE}, with reserved characters as %XX, especially in the password.`,
    )
  const parts = decodeParts(url)
  if (parts === null)
    return refuse('has a % that is not an escape', 'Write a % in the user, password or database as %25.')
  const { host: urlHost, user, password, database } = parts
  const missing = [user === '' && 'a user', urlHost === '' && 'a host', database === '' && 'a database'].filter(Boolean)
  if (missing.length > 0 || database.includes('/'))
    return refuse(`must name ${missing.join(', ') || 'one database'}`, `Write it like ${EXAMPLE}`)
  const given = Object.fromEntries(url.searchParams)
  const unknown = Object.keys(given).find((name) => !PARAMETERS.some((known) => known === name))
  if (unknown !== undefined)
    return refuse(
      `has a parameter that is not supported: ${unknown.slice(0, 50)}`,
      `Supported are ${PARAMETERS.join(', ')}.`,
    )
  const host = given.host ?? urlHost
  const isSocket = host.startsWith('/')
  if (given.host !== undefined && !isSocket)
    return refuse('has a second host in a parameter', 'The parameter host is only for the folder of a Unix socket.')
  const isLocal = isSocket || isLoopback(host)
  const mode = given.sslmode ?? (isLocal ? 'disable' : undefined)
  if (!isLocal && mode !== 'verify-full')
    return refuse(
      `must have sslmode=verify-full, since '${host}' is another machine`,
      'Anything less lets an attacker on the network read or change the state. If the CA is not a public one, name it with sslrootcert.',
    )
  if (mode !== 'verify-full' && mode !== 'disable')
    return refuse('has an sslmode that is not verify-full or disable', 'On this machine, either will do.')
  const { sslrootcert, sslcert, sslkey } = given
  if (mode === 'disable' && (sslrootcert ?? sslcert ?? sslkey) !== undefined)
    return refuse('names certificates without sslmode=verify-full', 'Add sslmode=verify-full, or leave them out.')
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  return {
    connection: { host, port, user, ...(password !== '' && { password }), database },
    ...(mode === 'verify-full' && {
      tls: {
        ...(sslrootcert && { rootCertFile: sslrootcert }),
        ...(sslcert && { certFile: sslcert }),
        ...(sslkey && { keyFile: sslkey }),
      },
    }),
    where: isSocket ? `${host}/${database}` : `${host}:${port}/${database}`,
  }
}

function decodeParts({ hostname, username, password, pathname }: URL) {
  try {
    return {
      host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1'),
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      database: decodeURIComponent(pathname.slice(1)),
    }
  } catch {
    return null
  }
}

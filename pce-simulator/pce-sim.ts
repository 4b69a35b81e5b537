#!/usr/bin/env node
/**
 * svc-mcp-pce-sim runs the simulator as a program. Once it listens, it writes one JSON line with its address and
 * credentials to standard output. All other output goes to standard error, including the settings for connecting, as
 * lines for a shell or a .env file.
 */
import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { createPceSimulator, DEFAULT_REALITY, REALITIES, ROLES, type GivenRole, type Reality } from './index.js'

interface Options {
  port: number
  host: string
  seed: number
  workloads: number
  flows: number
  org: number
  key?: string
  secret?: string
  password?: string
  reality: Reality
  pods: boolean
  role: GivenRole[]
  tlsCert?: string
  tlsKey?: string
}

const program = new Command('svc-mcp-pce-sim')
  .description('A simulated policy compute engine: REST API v2, stateful, in memory.')
  .option('--port <port>', 'TCP port, 0 for any free one', integer(0, 65_535), 0)
  .option('--host <host>', 'address to listen on', '127.0.0.1')
  .option('--seed <seed>', 'the same seed gives the same estate, byte for byte', integer(0, 2 ** 31 - 1), 1)
  .option('--workloads <count>', 'workloads of the estate', integer(1, 100_000), 400)
  .option('--flows <count>', 'conversations of the estate', integer(0, 1_000_000), 20_000)
  .option('--org <id>', 'organisation id', integer(1, 2 ** 31 - 1), 1)
  .addOption(
    new Option(
      '--reality <profile>',
      'forms of the answers: as the reference describes them, or as 25.2 PCEs give them',
    )
      .choices(REALITIES)
      .default(DEFAULT_REALITY),
  )
  .option('--pods', 'rows whose ends are Kubernetes workloads, beyond those of --flows', false)
  .option('--key <key>', 'API key (default: follows from the seed)')
  .option('--secret <secret>', 'API secret (default: follows from the seed)')
  .option('--password <password>', 'of the first user, who may log in (default: follows from the seed)')
  .option(
    '--role <role>',
    `a further user with this role and an API key, for instance read_only or ruleset_manager:app=payments,env=prod; ` +
      `repeat it for more. What a role may not write is refused with 403. Roles: ${ROLES.join(', ')}`,
    collectRoles,
    [],
  )
  .option('--tls-cert <file>', 'PEM certificate: speak https')
  .option('--tls-key <file>', 'PEM private key of the certificate')
  .allowExcessArguments(false)
  .parse()
const { tlsCert, tlsKey, org, role: users, ...options } = program.opts<Options>()

if ((tlsCert === undefined) !== (tlsKey === undefined)) program.error('error: --tls-cert and --tls-key go together')
if ((options.key === undefined) !== (options.secret === undefined))
  program.error('error: --key and --secret go together')

try {
  const tls = tlsCert && tlsKey ? { cert: readFileSync(tlsCert, 'utf8'), key: readFileSync(tlsKey, 'utf8') } : undefined
  const simulator = await createPceSimulator({ ...options, users, orgId: org, ...(tls ? { tls } : {}) })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void simulator.close().then(() => process.exit(0)))
  }
  const url = await simulator.listen()
  const { orgId, credentials, keys } = simulator
  const address = connectTo(url)
  process.stderr.write(
    [{ role: 'owner', ...credentials }, ...keys]
      .map((user) => `${describeConnection(address, orgId, user)}\n`)
      .join('\n'),
  )
  const facts = {
    url,
    pce_host: address.host,
    pce_port: address.port,
    org_id: orgId,
    api_key: credentials.key,
    api_secret: credentials.secret,
    ...simulator.login,
    users: keys.map(({ role, scope, key, secret }) => ({ role, scope, api_key: key, api_secret: secret })),
  }
  process.stdout.write(`${JSON.stringify(facts)}\n`)
} catch (error) {
  program.error(`error: ${error instanceof Error ? error.message : String(error)}`)
}

function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
    }
    return value
  }
}

/** Parses `role` or `role:key=value,key=value` and adds it to the roles. */
function collectRoles(text: string, before: GivenRole[]): GivenRole[] {
  const [, role, labels] = /^(\w+)(?::([^=,]+=[^=,]+(?:,[^=,]+=[^=,]+)*))?$/.exec(text) ?? []
  if (role === undefined) {
    throw new InvalidArgumentError('It must be a role, or a role and labels: ruleset_manager:app=payments,env=prod.')
  }
  const scope = Object.fromEntries((labels?.split(',') ?? []).map((label) => label.split('=') as [string, string]))
  return [...before, { role, scope }]
}

/** Returns the address that clients should connect to. A wildcard address is replaced by loopback. */
function connectTo(url: string): { host: string; port: number } {
  const { protocol, hostname, port } = new URL(url)
  const host = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }[hostname] ?? hostname
  return { host: `${protocol}//${host}`, port: Number(port || (protocol === 'https:' ? 443 : 80)) }
}

function describeConnection(
  { host, port }: { host: string; port: number },
  orgId: number,
  { role, scope = {}, key, secret }: GivenRole & { key: string; secret: string },
): string {
  const labels = Object.entries(scope).map((label) => label.join('='))
  return [
    `# ${role}${labels.length > 0 ? ` of ${labels.join()}` : ''}`,
    `export PCE_HOST=${host}`,
    `export PCE_PORT=${port}`,
    `export PCE_ORG_ID=${orgId}`,
    `export API_KEY=${quote(key)}`,
    `export API_SECRET=${quote(secret)}`,
  ].join('\n')
}

/** Quotes a value for a shell or a .env file, if necessary. */
function quote(value: string): string {
  return /^[\w.:/-]*$/.test(value) ? value : `'${value}'`
}

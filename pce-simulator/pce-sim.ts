#!/usr/bin/env node
/**
 * svc-mcp-pce-sim: the simulator alone. Standard output carries one JSON line with its address and credentials once it listens;
 * everything else goes to standard error.
 */
import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { createPceSimulator } from './index.js'

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
  .option('--key <key>', 'API key (default: follows from the seed)')
  .option('--secret <secret>', 'API secret (default: follows from the seed)')
  .option('--password <password>', 'of the first user, who may log in (default: follows from the seed)')
  .option('--tls-cert <file>', 'PEM certificate: speak https')
  .option('--tls-key <file>', 'PEM private key of the certificate')
  .allowExcessArguments(false)
  .parse()
const { tlsCert, tlsKey, org, ...options } = program.opts<Options>()

if ((tlsCert === undefined) !== (tlsKey === undefined)) program.error('error: --tls-cert and --tls-key go together')
if ((options.key === undefined) !== (options.secret === undefined))
  program.error('error: --key and --secret go together')

try {
  const tls = tlsCert && tlsKey ? { cert: readFileSync(tlsCert, 'utf8'), key: readFileSync(tlsKey, 'utf8') } : undefined
  const simulator = await createPceSimulator({ ...options, orgId: org, ...(tls ? { tls } : {}) })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void simulator.close().then(() => process.exit(0)))
  }
  const url = await simulator.listen()
  const { key, secret } = simulator.credentials
  const { username, password } = simulator.login
  const facts = { url, org_id: simulator.orgId, api_key: key, api_secret: secret, username, password }
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

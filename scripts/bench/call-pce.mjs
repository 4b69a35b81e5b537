// Performs a GET and parses its JSON, alternately through the client and through bare got, in rounds. Arguments: the
// client's module and the port of serve-pce.mjs. Prints the milliseconds per GET for every round. Rounds are short, so
// that other load on the machine affects both in the same way.
import { Buffer } from 'node:buffer'
import http from 'node:http'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import got from 'got'

const ROUNDS = 300
const CALLS = 30

const [, , module, port] = process.argv
const { createPceClient } = await import(pathToFileURL(module).href)

const client = createPceClient({ url: 'http://127.0.0.1', port })
client.setCredentials('api_bench', 'bench')
const authorization = `Basic ${Buffer.from('api_bench:bench').toString('base64')}`
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
const bare = got.extend({ agent: { http: agent }, headers: { authorization } })
const url = `http://127.0.0.1:${port}/api/v2/orgs/1/labels`

const throughClient = async () => (await client.get('labels')).json()
const throughGot = () => bare.get(url).json()

for (let round = 0; round < 5; round += 1) {
  await time(throughGot)
  await time(throughClient)
}
const rounds = []
for (let round = 0; round < ROUNDS; round += 1) {
  const isFirst = round % 2 === 0
  const before = isFirst ? await time(throughGot) : undefined
  const ours = await time(throughClient)
  rounds.push({ bare: before ?? (await time(throughGot)), ours })
}
console.log(JSON.stringify(rounds))
client.close()
agent.destroy()

async function time(call) {
  const started = performance.now()
  for (let index = 0; index < CALLS; index += 1) {
    if ((await call()).length !== 20) throw new Error('not the page that was asked for')
  }
  return (performance.now() - started) / CALLS
}

/** `svc-mcp policy` where labels are protected: diff and apply say it before anything is written. */
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { estate } from '../guardrails/guarded-service.js'

const PROGRAM = bundleProgram('stdio')
const REFUSED = String.raw`"a rule of the rule set \"New\"" reaches protected workloads, with the labels app=ad, env=prod, role=dc.`

t.test('files whose rules would reach a protected workload', async (t) => {
  const simulator = await createPceSimulator({ estate: estate() })
  await simulator.listen({ port: 0 })
  t.teardown(() => simulator.close())
  const { hostname, port } = new URL(simulator.url)
  const folder = mkdtempSync(join(tmpdir(), 'policy-'))
  async function policy(...args: string[]) {
    const child = spawn(process.execPath, [PROGRAM, 'policy', ...args, folder], {
      env: {
        PATH: process.env.PATH,
        PCE_HOST: `http://${hostname}`,
        PCE_PORT: port,
        API_KEY: simulator.credentials.key,
        API_SECRET: simulator.credentials.secret,
        MCP_PROTECTED: 'role=dc',
      },
    })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
    return { code, out: stdout.split('\n').slice(0, -1), err: stderr.split('\n').slice(0, -1) }
  }
  const write = (name: string, lines: readonly string[]) =>
    writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(''))
  const writes = () => simulator.requests.filter(({ method }) => method !== 'GET').length
  /** A rule set with one rule for the group of the file beside it, which nobody can look up yet. */
  const ruleSet = (provider: string) => [
    'kind: rule_set',
    'name: New',
    'scopes:',
    '  - [ env=prod ]',
    'rules:',
    '  - consumers: [ role=web ]',
    `    providers: [ ${provider} ]`,
    '    ingress_services: [ { port: 443, proto: tcp } ]',
  ]
  write('a-list.yaml', ['kind: ip_list', 'name: Partners', 'ip_ranges: [ { from_ip: 203.0.113.0/24 } ]'])
  write('group.yaml', ['kind: label_group', 'name: Both', 'key: app', 'labels: [ app=ad, app=shop ]'])
  write('rules.yaml', ruleSet('labelgroup:Both'))

  simulator.clearRequests()
  const diff = await policy('diff', '--only-files')
  t.same([diff.code, diff.err], [1, []])
  t.equal(diff.out.at(-1), `Applying this to the draft is refused: ${REFUSED}`)
  const dry = await policy('apply', '--dry-run')
  t.same([dry.code, dry.out.at(-2)], [2, `Applying this to the draft is refused: ${REFUSED}`])
  const applied = await policy('apply')
  t.same(applied, {
    code: 2,
    out: [],
    err: [
      `svc-mcp policy: ${REFUSED} Nothing was written. Leave it out, or have it changed in the PCE by those who may.`,
    ],
  })
  t.equal(writes(), 0)

  write('rules.yaml', ruleSet('role=web'))
  const fine = await policy('apply')
  t.same([fine.code, fine.err, fine.out.at(-1)], [0, [], 'Read back, the draft is what the files say.'])
})

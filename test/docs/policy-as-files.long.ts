/** The worked example of docs/policy-as-files.md, its commands as they stand there, and its files. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { createCaller } from '../pce-simulator/call-pce.js'
import { emptyFolder, readPage, runCommand, startCommand } from './commands.js'

t.test('a change of a file on its way into the draft', async (t) => {
  const simulator = await createPceSimulator({ seed: 7, workloads: 60, flows: 200 })
  t.teardown(() => simulator.close())
  const { hostname, port } = new URL(await simulator.listen({ port: 0 }))
  const call = createCaller(simulator)
  const bin = emptyFolder(t)
  writeFileSync(join(bin, 'svc-mcp'), `#!/bin/sh\nexec "${process.execPath}" "${bundleProgram('stdio')}" "$@"\n`)
  chmodSync(join(bin, 'svc-mcp'), 0o755)
  const cwd = emptyFolder(t)
  const who = { NAME: 'test', EMAIL: 'test@example.test' }
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    PCE_HOST: `http://${hostname}`,
    PCE_PORT: port,
    PCE_ORG_ID: '1',
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
    ...Object.fromEntries(
      ['AUTHOR', 'COMMITTER'].flatMap((role) =>
        Object.entries(who).map(([what, value]) => [`GIT_${role}_${what}`, value]),
      ),
    ),
  }
  const at = (path: string) => join(cwd, 'policy', path)
  await runCommand(t, 'docs/policy-as-files.md#a-pull-request', { cwd, env })
  const { stdout } = spawnSync('git', ['ls-files'], { cwd, encoding: 'utf8' })
  t.equal(stdout.trimEnd().split('\n').length, 54)

  const change = (text: string) => text.replace('- HTTPS\n', '- HTTPS\n      - { port: 8443, proto: tcp }\n')
  writeFileSync(at('rule-sets/crm-prod.yaml'), change(readFileSync(at('rule-sets/crm-prod.yaml'), 'utf8')))
  const shown = await runCommand(t, 'docs/policy-as-files.md#a-pull-request:2', { cwd, env })
  t.match(shown, /^~ rule set "crm \| prod" \(rule-sets\/crm-prod\.yaml\) {2}\[widening\]$/m)
  t.match(shown, /^ {8}ingress_services: \+ \{"port":8443,"proto":"tcp"\}$/m)
  t.equal((await call('GET', '/orgs/1/sec_policy/pending')).text, '{}', 'and nothing is pending')

  const applied = await runCommand(t, 'docs/policy-as-files.md#a-pull-request:3', { cwd, env })
  t.match(applied, /Read back, the draft is what the files say\.\n$/)
  const { body } = await call('GET', '/orgs/1/sec_policy/pending')
  t.same(Object.keys(body as object), ['rule_sets'])
  const night = await startCommand(t, 'docs/policy-as-files.md#a-pull-request:4', { cwd, env }).ended
  t.equal(night.code, 1, 'it is not provisioned yet')
  await call('POST', '/orgs/1/sec_policy', {
    update_description: 'x',
    change_subset: { rule_sets: (body as { rule_sets: { href: string }[] }).rule_sets.map(({ href }) => ({ href })) },
  })
  const after = await startCommand(t, 'docs/policy-as-files.md#a-pull-request:4', { cwd, env }).ended
  t.equal(after.code, 0)
})

t.test('the file of the page is one that apply takes', async (t) => {
  const simulator = await createPceSimulator({ seed: 7, workloads: 60, flows: 200 })
  t.teardown(() => simulator.close())
  const { hostname, port } = new URL(await simulator.listen({ port: 0 }))
  const [, file] = /```yaml\n(kind: rule_set\n[^]*?)```/.exec(readPage('docs/policy-as-files.md'))!
  const cwd = emptyFolder(t)
  mkdirSync(join(cwd, 'policy'))
  writeFileSync(join(cwd, 'policy/a.yaml'), file!)
  writeFileSync(join(cwd, 'policy/b.yaml'), 'kind: label_group\nname: Not production\nkey: env\nlabels: [env=dev]\n')
  const done = spawnProgram(['policy', 'apply', '--dry-run', 'policy'], cwd, {
    PCE_HOST: `http://${hostname}`,
    PCE_PORT: port,
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
  })
  const { code, said } = await done
  t.equal(code, 0, said)
  t.match(said, /^Would write 2 objects; 0 are as the files say\. Nothing was written\.$/m)
})

async function spawnProgram(args: string[], cwd: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [bundleProgram('stdio'), ...args], { cwd, env })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return { code: await new Promise<number | null>((resolve) => child.on('close', resolve)), said }
}

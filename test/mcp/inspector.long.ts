/** The MCP Inspector's command line against documents, pages and prompts, over both transports: a client that is not ours. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { tools } from '../../tools/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { insecureApp } from '../contract/insecure-app.js'
import { placeInspector } from '../inspector/place-inspector.js'
import { partial } from '../partial.js'

const { direct: INSPECTOR } = placeInspector(t)
const run = promisify(execFile)

const simulator = await createPceSimulator({ seed: 3, workloads: 60, flows: 400, pollsUntilDone: 1 })
const url = new URL(await simulator.listen({ port: 0 }))
t.teardown(() => simulator.close())
const { key, secret } = simulator.credentials
const orgId = String(simulator.orgId)
const { app } = await insecureApp(tools, {
  pce: { url: url.origin, port: url.port, orgId, apiKey: key, apiSecret: secret, tls: { verify: true } },
})
t.teardown(() => app.close())
const TARGETS = {
  http: [`${await app.listen({ port: 0, host: '127.0.0.1' })}/mcp`, '--transport', 'http'],
  stdio: [process.execPath, bundleProgram('stdio')],
}
const ENV = {
  PATH: process.env.PATH,
  PCE_HOST: `${url.protocol}//${url.hostname}`,
  PCE_PORT: url.port,
  PCE_ORG_ID: orgId,
  API_KEY: key,
  API_SECRET: secret,
}

// Each call is a process of the Inspector, so it reads one document and gets one prompt of each form; both-transports.test.ts reads every
// document and gets every prompt.
const DOCUMENTS = ['illumio://concepts/rule-processing', 'illumio://changelog']
const PROMPTS = new Set(['ringfence-application', 'quarterly-compliance-review'])

const REFUSED: [method: string, options: string[], said: RegExp][] = [
  ['resources/read', ['--uri', 'illumio://nothing'], /^1: .*-32002.*Resource not found/s],
  ['resources/read', ['--uri', 'illumio://application/%zz/prod'], /^1: .*-32602.*percent-encode/s],
  ['prompts/get', ['--prompt-name', 'nope'], /^1: .*-32602.*There is no prompt/s],
  [
    'prompts/get',
    ['--prompt-name', 'ringfence-application', '--prompt-args', 'application_name=x'],
    /^1: .*-32602.*application_environment: required/s,
  ],
]

for (const [transport, target] of Object.entries(TARGETS)) {
  t.test(`over ${transport}`, async (t) => {
    // What is answered does not depend on the transport, so one of each kind is enough for the second.
    const someOf = <T>(all: readonly T[]) => (transport === 'http' ? all : all.slice(0, 1))
    const inspect = async (method: string, ...options: string[]) => {
      const { stdout } = await run(process.execPath, [INSPECTOR, ...target, '--method', method, ...options], {
        env: ENV,
      })
      return JSON.parse(stdout)
    }
    const refused = async (method: string, ...options: string[]) =>
      inspect(method, ...options).then(
        () => '',
        ({ code, stderr }: { code: number; stderr: string }) => `${code}: ${stderr}`,
      )

    const { resources } = await inspect('resources/list')
    t.equal(resources.length, 22)
    t.same(
      DOCUMENTS.filter((uri) => !resources.some((one: { uri: string }) => one.uri === uri)),
      [],
      'it lists what is read',
    )
    for (const uri of someOf(DOCUMENTS)) {
      const { contents } = await inspect('resources/read', '--uri', uri)
      partial(t, contents, [{ uri, mimeType: 'text/markdown', text: String }], uri)
    }
    const { resourceTemplates } = await inspect('resources/templates/list')
    t.equal(resourceTemplates.length, 2)
    for (const uri of someOf(['illumio://ruleset/1', 'illumio://application/payments/prod'])) {
      const { contents } = await inspect('resources/read', '--uri', uri)
      partial(t, contents, [{ uri, mimeType: 'application/json', text: String }], uri)
    }
    const { prompts } = await inspect('prompts/list')
    t.equal(prompts.length, 8)
    const asked = (prompts as { name: string; arguments: { name: string }[] }[]).filter(({ name }) => PROMPTS.has(name))
    t.equal(asked.length, PROMPTS.size)
    for (const { name, arguments: known } of someOf(asked)) {
      const pairs = known.map((one) => `${one.name}=${one.name === 'framework' ? 'dora' : 'payments'}`)
      const given = pairs.flatMap((pair) => ['--prompt-args', pair])
      const { messages } = await inspect('prompts/get', '--prompt-name', name, ...given)
      partial(t, messages, [{ role: 'user', content: { type: 'text', text: String } }], name)
    }

    for (const [method, options, said] of someOf(REFUSED)) {
      const answer = await refused(method, ...options)
      t.ok(said.test(answer), answer)
    }
  })
}

/** A build of which a part is damaged: the tools of that part fail, each call for itself, and the rest of the server goes on (D251). */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import t, { type Test } from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import type * as bundling from '../../scripts/bundle-catalogue.mjs'
import { inSuiteFolder } from '../suite-folder.js'
import { until } from '../until.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
// The suite compiles no JavaScript.
const { bundleCatalogue } = (await import(
  pathToFileURL(join(ROOT, 'scripts/bundle-catalogue.mjs')).href
)) as typeof bundling
const WHOLE = inSuiteFolder('parts', 'whole')
mkdirSync(WHOLE, { recursive: true })
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: { stdio: 'programs/stdio.ts', worker: 'programs/worker.ts' },
  outdir: WHOLE,
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  metafile: true,
  logLevel: 'warning',
  plugins: [await bundleCatalogue(ROOT, WHOLE)],
})
/** The part with the tools of tools/labels/, relative to the build. */
const PART = relative(
  relative(ROOT, WHOLE),
  Object.keys(metafile.outputs).find((path) => metafile.outputs[path]!.entryPoint === 'tools-of:labels')!,
)

const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 0 })
const { hostname, port } = new URL(await simulator.listen({ port: 0 }))
t.teardown(() => simulator.close())
const ENV = {
  PATH: process.env.PATH,
  PCE_HOST: `http://${hostname}`,
  PCE_PORT: port,
  PCE_ORG_ID: String(simulator.orgId),
  API_KEY: simulator.credentials.key,
  API_SECRET: simulator.credentials.secret,
}

/** Starts a copy of the build. `ask` sends a request and resolves with its result. */
function start(t: Test, name: string) {
  const home = inSuiteFolder('parts', name)
  cpSync(WHOLE, home, { recursive: true })
  const child = spawn(process.execPath, [join(home, 'stdio.js')], { env: ENV, cwd: home })
  t.teardown(() => child.kill('SIGKILL'))
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let id = 0
  const ask = async (method: string, params: object = {}) => {
    id += 1
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    const answer = JSON.parse((await lines.next()).value as string)
    t.equal(answer.id, id)
    return answer.result
  }
  const call = async (tool: string, args: object = {}) => {
    const { isError, content } = await ask('tools/call', { name: tool, arguments: args })
    return isError === true ? JSON.parse(content[0].text) : 'answered'
  }
  return { home, part: join(home, PART), ask, call, log: () => log }
}

const INITIALIZE = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'tester', version: '9' } }
const DAMAGES: Record<string, (part: string) => void> = {
  missing: (part) => rmSync(part),
  // A mode would not stop root.
  unreadable: (part) => {
    rmSync(part)
    mkdirSync(part)
  },
  corrupt: (part) => writeFileSync(part, readFileSync(part).subarray(0, -20)),
}

for (const [damage, harm] of Object.entries(DAMAGES)) {
  t.test(`a part is ${damage}`, async (t) => {
    const { part, ask, call, log } = start(t, damage)
    harm(part)
    t.equal((await ask('initialize', INITIALIZE)).serverInfo.name, 'svc-mcp')
    const { tools: listed } = await ask('tools/list')
    t.ok(
      listed.some(({ name }: { name: string }) => name === 'get-labels'),
      'a list needs no code',
    )

    for (const tool of ['get-labels', 'create-label']) {
      const { request_id: requestId, ...error } = await call(
        tool,
        tool === 'get-labels' ? {} : { key: 'app', value: 'x' },
      )
      t.same(error, {
        error: 'internal',
        message: `The code of ${tool} cannot be loaded, so nothing was done. The log has the reason: install this server again, and restart it.`,
      })
      await until(() => log().includes(requestId))
    }
    t.equal(await call('get-services'), 'answered')
    t.equal(await call('get-workloads'), 'answered')

    if (damage === 'corrupt') return
    // Node.js reads a module again that was not there, but not one that it has read.
    rmSync(part, { recursive: true, force: true })
    cpSync(join(WHOLE, PART), part)
    t.equal(await call('get-labels'), 'answered')
  })
}

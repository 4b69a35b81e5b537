/** `svc-mcp doctor` as a person runs it: what it finds against PCEs that are well and PCEs that are not, and its exit status. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { bundleProgram } from '../bundle-program.js'
import { makeCertificate } from '../edge/support/make-certificate.js'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'
import { listen, startServer, type Reply } from '../pce-client/support.js'

const PROGRAM = bundleProgram('stdio')
const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
t.teardown(() => simulator.close())
const pceUrl = new URL(await simulator.listen({ port: 0 }))
const PCE = {
  PCE_HOST: 'http://127.0.0.1',
  PCE_PORT: pceUrl.port,
  PCE_ORG_ID: String(simulator.orgId),
  API_KEY: simulator.credentials.key,
  API_SECRET: simulator.credentials.secret,
}
const RELEASE: Reply = { body: { version: '25.2.10', long_display: '25.2.10-17' } }

interface Line {
  state: string
  check: string
  found: string
  remedy?: string
}

/** Runs it in an empty folder: exit status, the findings, and the last line. */
function examine(env: Record<string, string>): Promise<{ code: number; lines: Line[]; end: string; all: string }> {
  const cwd = mkdtempSync(join(tmpdir(), 'doctor-'))
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, 'doctor'], { cwd, env }, (error, stdout, stderr) => {
      const lines: Line[] = []
      for (const line of stdout.split('\n')) {
        const [, state, check, found] = /^(ok|WARN|FAIL|-) +(\S+) +(.*)$/.exec(line) ?? []
        if (state !== undefined) lines.push({ state, check: check!, found: found! })
        const [, remedy] = /^ {6}→ (.*)$/.exec(line) ?? []
        if (remedy !== undefined) lines.at(-1)!.remedy = remedy
      }
      const code = error === null ? 0 : (error.code as unknown as number)
      resolve({ code, lines, end: stdout.trimEnd().split('\n').at(-1)!, all: stdout + stderr })
    })
  })
}

const outline = ({ lines }: { lines: Line[] }) => lines.map(({ state, check }) => `${state} ${check}`)

t.test('a PCE that is well', async (t) => {
  const report = await examine(PCE)
  t.equal(report.code, 0)
  t.same(outline(report), [
    'ok configuration',
    'ok address',
    'ok connection',
    'WARN certificate',
    'ok PCE',
    'ok credentials',
    'ok organisation',
    'ok clock',
  ])
  partial(t, report.lines[3], { found: 'none: the connection is plain HTTP', remedy: /Anyone on the network can read/ })
  t.match(report.lines[4]!.found, /^release \d+\.\d+/)
  t.equal(report.lines[6]!.found, PCE.PCE_ORG_ID)
  t.equal(report.end, 'The PCE can be used. 1 warning.')
  t.match(report.all, /^svc-mcp \d+\.\d+\.\d+ on Node\.js v/)
  t.notMatch(report.all, new RegExp(`${PCE.API_SECRET}|${PCE.API_KEY}`), 'and says no secret')
})

t.test('each fault by itself, with what to do', async (t) => {
  const nobody = String(await freePort())
  const [unset, absent, wrongKey, wrongOrg] = await Promise.all([
    examine({ API_KEY: 'api_x' }),
    examine({ ...PCE, PCE_PORT: nobody }),
    examine({ ...PCE, API_SECRET: 'wrong' }),
    examine({ ...PCE, PCE_ORG_ID: '999' }),
  ])
  t.same([unset.code, absent.code, wrongKey.code, wrongOrg.code], [1, 1, 1, 1])
  partial(t, unset.lines[0], {
    state: 'FAIL',
    check: 'configuration',
    found: /PCE_HOST, API_SECRET/,
    remedy: /^Set /,
  })
  t.equal(unset.lines.length, 1, 'and nothing else is tried')
  t.same(outline(absent), ['ok configuration', 'ok address', 'FAIL connection'])
  t.equal(absent.lines[2]!.found, `nothing answers at 127.0.0.1, port ${nobody} (ECONNREFUSED)`)
  t.match(absent.lines[2]!.remedy, /^No program listens there/)
  t.same(outline(wrongKey).slice(5), ['FAIL credentials', '- organisation'])
  t.match(wrongKey.lines[5]!.remedy, /has expired/)
  t.same(outline(wrongOrg).slice(5), ['ok credentials', 'FAIL organisation', 'ok clock'])
  partial(t, wrongOrg.lines[6], { found: /organisation 999/, remedy: /PCE_ORG_ID/ })
})

t.test('the certificate: who signed it, for which name, until when', async (t) => {
  const { cert, key, certPath } = makeCertificate(t)
  const server = https.createServer({ cert, key }, (_request, response) => response.end('{"version":"25.2.10"}'))
  const port = String(await listen(t, server))
  const secure = { ...PCE, PCE_HOST: 'https://localhost', PCE_PORT: port }
  const [foreign, known, unverified] = await Promise.all([
    examine(secure),
    examine({ ...secure, PCE_CA_FILE: certPath }),
    examine({ ...secure, PCE_TLS_VERIFY: '0' }),
  ])
  t.same([foreign.code, outline(foreign).at(-1)], [1, 'FAIL certificate'])
  partial(t, foreign.lines.at(-1), {
    found: '"localhost", issued by "localhost" is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)',
    remedy: /PCE_CA_FILE/,
  })
  partial(t, known.lines[3], {
    state: 'WARN',
    found: /^"localhost", issued by "localhost", valid until \d{4}-\d\d-\d\d$/,
    remedy: /renew/,
  })
  t.equal(known.code, 0)
  const [certificate] = unverified.lines.filter(({ check }) => check === 'certificate')
  partial(t, certificate, { state: 'WARN', found: /not verified/, remedy: /PCE_CA_FILE/ })
})

t.test('a clock that is off, and something that is no PCE', async (t) => {
  const { port } = await startServer(t, () => ({
    ...RELEASE,
    headers: { date: new Date(Date.now() - 120_000).toUTCString() },
  }))
  const other = await startServer(t, () => ({ status: 404, body: 'no such page' }))
  const [behind, stranger, plain] = await Promise.all([
    examine({ ...PCE, PCE_PORT: String(port) }),
    examine({ ...PCE, PCE_PORT: String(other.port) }),
    examine({ ...PCE, PCE_HOST: 'https://127.0.0.1', PCE_PORT: String(other.port) }),
  ])
  partial(t, behind.lines.at(-1), {
    state: 'WARN',
    check: 'clock',
    found: /^this machine is 1[12]\d s ahead of the PCE$/,
    remedy: /NTP/,
  })
  partial(t, stranger.lines[4], {
    state: 'WARN',
    check: 'PCE',
    found: 'the answer does not say that it is a PCE',
    remedy: /something else/,
  })
  t.equal(stranger.code, 1)
  partial(t, plain.lines.at(-1), {
    state: 'FAIL',
    check: 'certificate',
    found: /^no TLS connection could be made \(\w+\)$/,
  })
  t.equal(plain.code, 1)
})

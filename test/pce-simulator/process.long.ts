import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import t from 'tap'
import { createCaller } from './call-pce.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Started {
  url: string
  pce_host: string
  pce_port: number
  users: { role: string; scope: Record<string, string>; api_key: string; api_secret: string }[]
  org_id: number
  api_key: string
  api_secret: string
}

/** Resolves with what the process printed once it listens, or with how it ended before. */
async function run(test: { teardown(end: () => unknown): unknown }, ...options: string[]) {
  const child = spawn(process.execPath, ['scripts/pce-sim.mjs', ...options], { cwd: ROOT })
  test.teardown(() => child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const listening = new Promise<void>((resolve) => child.stdout.on('data', () => stdout.endsWith('\n') && resolve()))
  await Promise.race([listening, once(child, 'close')])
  return { child, stdout: () => stdout, stderr: () => stderr }
}

async function end(child: ChildProcess, signal: NodeJS.Signals) {
  const closed = once(child, 'close')
  child.kill(signal)
  return (await closed)[0] as number | null
}

t.test('faults hit only the next requests of a path', async (t) => {
  const { simulator, org, call } = await startPce(t)
  const labels = '/orgs/1/labels'
  const failure = async (work: Promise<unknown>) =>
    work.then(
      () => 'no failure',
      (error: Error) => `${error.message} ${(error.cause as Error | undefined)?.message}`,
    )

  simulator.faults.add({ kind: 'retry-after', path: labels, times: 2, retryAfter: 7 })
  const busy = await org('GET', '/labels?max_results=1')
  t.same([busy.status, busy.headers.get('retry-after'), busy.body[0].token], [429, '7', 'too_many_requests_error'])
  t.equal((await org('GET', '/workloads')).status, 200, 'another path')
  t.equal((await org('GET', '/labels/1')).status, 429, 'below the path')
  t.equal((await org('GET', '/labels')).status, 200, 'used up')

  simulator.faults.add({ kind: 'status', path: labels, method: 'POST', times: 1, status: 503, skip: 1 })
  t.equal((await org('POST', '/labels', { key: 'app', value: 'a' })).status, 201, 'the first is let through')
  t.equal((await org('POST', '/labels', { key: 'app', value: 'lost' })).status, 503)
  t.equal((await org('GET', '/labels?value=lost')).body.length, 0, 'a 503 was never processed')

  simulator.faults.add({ kind: 'html', path: /labels$/, times: 1 })
  const page = await org('GET', '/labels')
  partial(t, [page.status, page.headers.get('content-type'), page.text], [502, 'text/html', /<html>/])

  simulator.faults.add({ kind: 'truncate', path: labels, times: 1 })
  const cut = await org('GET', '/labels')
  t.equal(cut.status, 200)
  t.match(cut.text, /^\[\{/)
  t.equal(cut.body, undefined, 'no JSON any more')

  simulator.faults.add({ kind: 'headers', path: labels, times: 1, headers: { 'x-total-count': 'abc', etag: null } })
  const odd = await org('GET', '/labels')
  t.same([odd.headers.get('x-total-count'), odd.headers.get('etag')], ['abc', null])

  for (const kind of ['reset', 'cut-body', 'commit-then-drop'] as const) {
    simulator.faults.add({ kind, path: labels, times: 1 })
    t.match(await failure(org('GET', '/labels')), /ECONNRESET|other side closed|terminated/, kind)
  }
  simulator.faults.add({ kind: 'commit-then-drop', path: labels, times: 1 })
  await failure(org('POST', '/labels', { key: 'app', value: 'kept' }))
  t.equal((await org('GET', '/labels?value=kept')).body.length, 1, 'it was written, though nobody was told')
  t.equal(simulator.requests.findLast(({ method }) => method === 'POST')!.status, null)

  for (const kind of ['hang', 'stall-body'] as const) {
    simulator.faults.add({ kind, path: labels, times: 1 })
    const authorization = `Basic ${btoa(`${simulator.credentials.key}:${simulator.credentials.secret}`)}`
    const options = { headers: { authorization }, signal: AbortSignal.timeout(kind === 'hang' ? 200 : 3000) }
    const answer = fetch(`${simulator.url}/api/v2${labels}`, options)
    if (kind === 'stall-body') t.equal((await answer).status, 200)
    t.match(await failure(answer.then((response) => response.text())), /timeout/i, kind)
  }
  t.same(simulator.faults.pending(), [])
  simulator.faults.add({ kind: 'slow', path: '/product_version', times: 1, delayMs: 30 })
  t.equal((await call('GET', '/product_version')).status, 200)
})

t.test('records requests without credentials', async (t) => {
  const { simulator, org } = await startPce(t)
  await org('POST', '/labels?a=b', { key: 'app', value: 'x' })
  partial(t, simulator.requests, [
    { method: 'POST', path: '/api/v2/orgs/1/labels', query: { a: 'b' }, body: { key: 'app', value: 'x' }, status: 201 },
  ])
  t.notOk('authorization' in simulator.requests[0]!.headers)
  simulator.clearRequests()
  t.same(simulator.requests, [])
})

t.test('rate limits, when they are on', async (t) => {
  let now = 0
  const { org } = await startPce(t, { now: () => now, rateLimit: { requestsPerMinute: 3 } })
  for (let count = 0; count < 3; count += 1) t.equal((await org('GET', '/labels?max_results=0')).status, 200)
  now = 20_000
  const refused = await org('GET', '/labels')
  t.same([refused.status, refused.headers.get('retry-after')], [429, '40'])
  now = 60_000
  t.equal((await org('GET', '/labels')).status, 200)
})

t.test('the process: one JSON line, the estate of its seed, control over HTTP, a clean exit', async (t) => {
  const { child, stdout, stderr } = await run(t, ...'--port 0 --seed 5 --workloads 40 --flows 200 --org 7'.split(' '))
  t.equal(stdout().trim().split('\n').length, 1)
  const started = JSON.parse(stdout()) as Started
  partial(t, started, {
    url: /^http:\/\/127\.0\.0\.1:\d+$/,
    pce_host: 'http://127.0.0.1',
    pce_port: Number(new URL(started.url).port),
    users: [],
    org_id: 7,
    api_key: /^api_[0-9a-f]+$/,
    api_secret: /^[0-9a-f]+$/,
  })
  const credentials = { key: started.api_key, secret: started.api_secret }
  const call = createCaller({ url: started.url, credentials })

  const paths = ['labels', 'workloads', 'sec_policy/active/rule_sets', 'sec_policy/draft/services', 'pairing_profiles']
  const read = async (call: ReturnType<typeof createCaller>) => {
    const created = await call('POST', '/orgs/7/sec_policy/draft/label_groups', { name: 'G', key: 'env' })
    const texts = await Promise.all(paths.map(async (path) => (await call('GET', `/orgs/7/${path}`)).text))
    // Who is online was heard of just now, whenever that is.
    const heard = /"last_heartbeat_on":"[^"]+"/g
    return [created.body.href as string, ...texts.map((text) => text.replaceAll(heard, '"last_heartbeat_on":"…"'))]
  }
  const readAnother = async (seed: number) => {
    const another = await createPceSimulator({ seed, workloads: 40, flows: 200, orgId: 7 })
    await another.listen()
    t.teardown(() => another.close())
    return { credentials: another.credentials, contents: await read(createCaller(another)) }
  }
  const contents = await read(call)
  t.ok(
    contents.slice(1, 4).every((text) => text.length > 500),
    'there is an estate',
  )
  t.same(await readAnother(5), { credentials, contents }, 'ids of new objects and credentials included')
  t.notSame((await readAnother(6)).contents, contents)

  const control = (method: string, path: string, body?: unknown) =>
    fetch(`${started.url}/_sim/${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
  t.equal((await control('POST', 'faults', { kind: 'status', path: 're:/labels$', times: 1, status: 500 })).status, 204)
  t.equal((await control('POST', 'faults', { kind: 'nonsense', path: '/', times: 1 })).status, 400)
  await control('DELETE', 'requests')
  t.equal((await call('GET', '/orgs/7/labels')).status, 500)
  partial(t, await (await control('GET', 'requests')).json(), [{ path: '/api/v2/orgs/7/labels', status: 500 }])

  t.equal(await end(child, 'SIGTERM'), 0)
  t.same(parseEnv(stderr()), {
    PCE_HOST: 'http://127.0.0.1',
    PCE_PORT: String(started.pce_port),
    PCE_ORG_ID: '7',
    API_KEY: started.api_key,
    API_SECRET: started.api_secret,
  })
})

t.test('the process: users of other roles, and how to connect as each, ready to paste', async (t) => {
  const roles = ['--role', 'read_only', '--role', 'ruleset_manager:app=payments,env=prod']
  const { child, stdout, stderr } = await run(t, ...'--workloads 40 --flows 200'.split(' '), ...roles)
  while (stderr().split('API_SECRET').length < 4) await once(child.stderr, 'data')
  const started = JSON.parse(stdout()) as Started
  const [reader, manager] = started.users
  t.same(
    started.users.map(({ role, scope }) => [role, scope]),
    [
      ['read_only', {}],
      ['ruleset_manager', { app: 'payments', env: 'prod' }],
    ],
  )
  const blocks = stderr().trim().split('\n\n')
  t.same(
    blocks.map((block) => block.split('\n', 1)[0]),
    ['# owner', '# read_only', '# ruleset_manager of app=payments,env=prod'],
  )
  for (const [at, key] of [started, reader!, manager!].entries()) {
    const pasted = execFileSync('sh', ['-c', `${blocks[at]}\nenv`], {
      env: { PATH: process.env['PATH'] },
      encoding: 'utf8',
    })
    const env = parseEnv(pasted)
    t.same(parseEnv(blocks[at]!), {
      PCE_HOST: 'http://127.0.0.1',
      PCE_PORT: String(started.pce_port),
      PCE_ORG_ID: '1',
      API_KEY: key.api_key,
      API_SECRET: key.api_secret,
    })
    t.equal(env['API_SECRET'], key.api_secret, 'in a shell as well')
    const credentials = { key: env['API_KEY']!, secret: env['API_SECRET']! }
    const call = createCaller({ url: `${env['PCE_HOST']}:${env['PCE_PORT']}`, credentials })
    const { status } = await call('POST', '/orgs/1/labels', { key: 'app', value: `of ${at}` })
    t.equal(status, at === 0 ? 201 : 403)
    t.equal((await call('GET', '/orgs/1/labels')).status, 200)
  }

  for (const [given, message] of [
    ['king', /There is no role king; the roles are owner, admin, read_only/],
    ['read_only:app', /must be a role, or a role and labels/],
    ['ruleset_manager:app=none', /The estate has no label app=none/],
  ] as const) {
    const refused = await run(t, '--workloads', '40', '--flows', '200', '--role', given)
    t.equal(refused.stdout(), '')
    partial(t, refused.stderr(), message)
  }
  const help = execFileSync(process.execPath, ['scripts/pce-sim.mjs', '--help'], { cwd: ROOT, encoding: 'utf8' })
  partial(t, help.replace(/\s+/g, ' '), /--role <role> .* read_only, global_object_provisioner, /)
})

t.test('the process: TLS, and options it cannot work with', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'pce-sim-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync(
    'openssl',
    [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-keyout',
        key,
        '-out',
        cert,
      ],
      ...['-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ],
    { stdio: 'ignore' },
  )
  const secure = await run(t, '--tls-cert', cert, '--tls-key', key, '--workloads', '20', '--flows', '10')
  const { url } = JSON.parse(secure.stdout()) as Started
  t.match(url, /^https:/)
  const status = await new Promise((resolve, reject) => {
    const options = { ca: readFileSync(cert), agent: false as const }
    httpsRequest(`${url}/api/v2/node_available`, options, (response) => resolve(response.statusCode))
      .on('error', reject)
      .end()
  })
  t.equal(status, 200)

  const cases: [string[], RegExp][] = [
    [['--port', '65536'], /--port.*whole number from 0 to 65535/],
    [['--reality', 'core-9'], /--reality.*Allowed choices are lab, core-25\.2/],
    [['--tls-cert', cert], /--tls-cert and --tls-key go together/],
    [['--port', new URL(url).port], /EADDRINUSE/],
  ]
  const ended = await Promise.all(cases.map(([options]) => run(t, ...options, '--workloads', '20', '--flows', '10')))
  for (const [index, { child, stdout, stderr }] of ended.entries()) {
    t.equal(child.exitCode, 1, cases[index]![0].join(' '))
    t.equal(stdout(), '')
    partial(t, stderr(), cases[index]![1])
  }
})

/** The Helm chart, without Helm and without a cluster: what it renders, what it refuses, and its sidecar as a process. */
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn, spawnSync } from 'node:child_process'
import { request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { Ajv } from 'ajv'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { buildRenderer, kubernetesText } from '../../scripts/chart/render-chart.js'
import { freePort } from '../free-port.js'
import { faultsOf, parseManifests, ROOT, UNKNOWN_KINDS, type Manifest } from '../deploy/manifests.js'
import { createWorld } from './support/authenticated-world.js'
import { makeCertificate } from './support/make-certificate.js'
import { found } from './support/within.js'

const renderer = buildRenderer()
t.teardown(renderer.remove)
const SETS = {
  'deploy/kubernetes/values.yaml': [
    ...['ConfigMap', 'ConfigMap', 'Deployment', 'Ingress', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'],
    'ServiceAccount',
  ],
  'deploy/helm/svc-mcp/ci/full-values.yaml': [
    ...['ConfigMap', 'ConfigMap', 'Deployment', 'ExternalSecret', 'HorizontalPodAutoscaler', 'HTTPRoute'],
    ...['BackendTLSPolicy', 'Ingress', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'ServiceAccount'],
    'ServiceMonitor',
  ],
  'deploy/helm/svc-mcp/ci/file-values.yaml': [
    ...['ConfigMap', 'ConfigMap', 'Deployment', 'PersistentVolumeClaim', 'Service', 'ServiceAccount'],
  ],
}
const FULL = 'deploy/helm/svc-mcp/ci/full-values.yaml'
const FILE = 'deploy/helm/svc-mcp/ci/file-values.yaml'

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** Renders a set of values with others laid over it. */
function renderWith(t: Test, set: string, over: object = {}): Manifest[] {
  const folder = t.testdir({ 'over.yaml': stringify(over) })
  return parseManifests(renderer.render(join(ROOT, set), join(folder, 'over.yaml')))
}

interface Asked {
  headers?: Record<string, string>
  at?: number
  method?: string
}

interface Container {
  name: string
  image: string
  command: string[]
  args: string[]
  env: { name: string; value?: string }[]
  securityContext: object
  startupProbe: Probe
  readinessProbe: Probe
  livenessProbe: Probe
}

interface Item {
  key: string
}

interface Rule {
  to: object[]
  ports: object[]
}

interface Probe {
  httpGet: { path: string }
}

interface Pod {
  automountServiceAccountToken: boolean
  securityContext: { runAsNonRoot: boolean; runAsUser: number; runAsGroup: number; seccompProfile: object }
  initContainers: Container[]
  containers: Container[]
}

const podOf = (manifests: readonly Manifest[]) =>
  (manifests.find(({ kind }) => kind === 'Deployment')!.spec!.template as { spec: Pod }).spec

for (const [set, kinds] of Object.entries(SETS)) {
  t.test(set, async (t) => {
    const manifests = parseManifests(renderer.render(join(ROOT, set)))
    t.same(
      manifests.map(({ kind }) => kind),
      kinds,
    )
    t.same(await faultsOf(manifests), [], 'types and schemas of the APIs')
    t.same(
      kinds.filter((kind) => UNKNOWN_KINDS.includes(kind)),
      set === FULL ? UNKNOWN_KINDS : [],
    )
  })
}

t.test('the check finds a field that nobody knows, and a value of the wrong type', async (t) => {
  const text = textOf('deploy/kubernetes/svc-mcp.yaml')
  const broken = text.replace('replicas: 3', 'replicas: three').replace('initContainers:', 'initContainer:')
  t.same(await faultsOf(parseManifests(broken)), [
    'Deployment: data/spec/replicas must be integer',
    "Type 'string' is not assignable to type 'number'.",
    `Object literal may only specify known properties, and '"initContainer"' does not exist in type 'IPodSpec'.`,
  ])
})

t.test('deploy/kubernetes is what the chart renders', async (t) => {
  t.equal(textOf('deploy/kubernetes/svc-mcp.yaml'), kubernetesText(renderer), 'npm run generate -- kubernetes')
})

t.test('what is missing or contradicts itself is refused, by name', async (t) => {
  const refusals: [string, object, string][] = [
    [FULL, { image: { digest: '' } }, 'image.digest: pin the image by its digest, sha256:…; a tag can be moved'],
    [FULL, { image: { digest: 'v1' } }, "image.digest: 'v1' is not sha256: and 64 hexadecimal digits"],
    [FULL, { image: { repository: '' } }, 'image.repository: where the image is'],
    [
      FULL,
      { tls: { image: { digest: '' } } },
      'tls.image.digest: pin the image by its digest, sha256:…; a tag can be moved',
    ],
    [
      FULL,
      { tls: { existingSecret: '' } },
      'tls.existingSecret: name the Secret (kubernetes.io/tls) with the certificate of the sidecar',
    ],
    [FULL, { config: { MCP_OAUTH_ISSUER: null } }, 'config.MCP_OAUTH_ISSUER: an authenticated server needs it'],
    [
      FULL,
      { config: { API_SECRET: 'x' } },
      'config.API_SECRET: a ConfigMap is no place for a secret; put it into the Secret and its name into secrets.names',
    ],
    [FULL, { config: { MCP_METRICS_PORT: 1 } }, 'config.MCP_METRICS_PORT: the chart sets it'],
    [FULL, { config: { MCP_DEV_INSECURE: 1 } }, 'config.MCP_DEV_INSECURE: this chart runs authenticated servers only'],
    [
      FULL,
      { secrets: { externalSecret: { enabled: false } } },
      'secrets.existingSecret: name the Secret with MCP_KEK and the rest, or enable secrets.externalSecret',
    ],
    [
      FULL,
      { secrets: { externalSecret: { data: [{ secretKey: 'MCP_KEK', remoteRef: { key: 'x' } }] } } },
      'secrets.externalSecret.data: nothing for MCP_KEK_PREVIOUS, which secrets.names has',
    ],
    [FULL, { secrets: { names: ['MCP_KEK'] } }, 'state.kind: postgresql needs MCP_STATE_URL in secrets.names'],
    [
      FILE,
      { replicaCount: 2 },
      'state.kind: file means one replica (replicaCount: 1, no autoscaling); several need postgresql',
    ],
    [FULL, { networkPolicy: { egress: { pce: { to: [] } } } }, 'networkPolicy.egress.pce.to: where the PCE is'],
    [
      FULL,
      { networkPolicy: { ingressFrom: [] } },
      'networkPolicy.ingressFrom: who may connect, such as the namespace of the ingress controller',
    ],
    [FULL, { metrics: { enabled: false } }, 'metrics.serviceMonitor.enabled needs metrics.enabled'],
    [
      FULL,
      { notifications: { existingSecret: '' } },
      'notifications.existingSecret: name the Secret with MCP_NOTIFY_WEBHOOK_URL, or put it into secrets.names',
    ],
    [
      FILE,
      { secrets: { names: ['MCP_CONFIRM_HMAC_KEY', 'MCP_NOTIFY_SECRET'] } },
      'secrets.names has MCP_NOTIFY_SECRET, which needs notifications.enabled',
    ],
    [FILE, { config: { MCP_NOTIFY_NAMES: 1 } }, 'config.MCP_NOTIFY_NAMES: notifications.names sets it'],
    [
      FULL,
      { networkPolicy: { egress: { notifications: { to: [] } } } },
      'networkPolicy.egress.notifications.to: where the receiver of notifications is',
    ],
  ]
  for (const [set, over, message] of refusals) {
    let said = 'rendered'
    try {
      renderWith(t, set, over)
    } catch (error) {
      said = (error as Error).message.trim()
    }
    t.equal(said.slice(-message.length), message)
  }
})

t.test('notifications: where the server reads its settings, and the way to the receiver', async (t) => {
  const NAMES = ['MCP_NOTIFY_WEBHOOK_URL', 'MCP_NOTIFY_SECRET']
  const url = 'https://relay.example.com/hook'
  const off = { notifications: { enabled: false } }
  const shown = (over: object, set = FULL) => {
    const manifests = renderWith(t, set, over)
    const pod = podOf(manifests) as Pod & {
      volumes: { name: string; secret?: { secretName: string; items: Item[] } }[]
    }
    const { secret } = pod.volumes.find(({ name }) => name === 'notifications') ?? {}
    const { egress } =
      (manifests.find(({ kind }) => kind === 'NetworkPolicy')?.spec as { egress?: Rule[] } | undefined) ?? {}
    return {
      env: Object.fromEntries(
        pod.containers[0]!.env.flatMap(({ name, value }) => (name.startsWith('MCP_NOTIFY') ? [[name, value]] : [])),
      ),
      secret: secret && [secret.secretName, secret.items.map(({ key }) => key)],
      way: egress?.filter(({ to }) => JSON.stringify(to).includes('relay')).flatMap(({ ports }) => ports),
    }
  }
  const way = [{ protocol: 'TCP', port: 8443 }]
  const files = (names: string[], folder: string) =>
    Object.fromEntries(names.map((name) => [`${name}_FILE`, `/etc/svc-mcp/${folder}/${name}`]))
  t.same(shown({}), {
    env: { ...files(NAMES, 'notifications'), MCP_NOTIFY_NAMES: '1' },
    secret: ['svc-mcp-notifications', NAMES],
    way,
  })
  t.same(shown({ notifications: { url, names: false } }), {
    env: { MCP_NOTIFY_WEBHOOK_URL: url, ...files(['MCP_NOTIFY_SECRET'], 'notifications') },
    secret: ['svc-mcp-notifications', ['MCP_NOTIFY_SECRET']],
    way,
  })
  t.same(shown({ secrets: { names: ['MCP_CONFIRM_HMAC_KEY', ...NAMES] }, notifications: { enabled: true } }, FILE), {
    env: files(NAMES, 'secrets'),
    secret: undefined,
    way: undefined,
  })
  t.same(shown(off), { env: {}, secret: undefined, way: [] })
})

t.test('the schema of the values', async (t) => {
  const validate = new Ajv({ allowUnionTypes: true }).compile(
    JSON.parse(textOf('deploy/helm/svc-mcp/values.schema.json')),
  )
  const faults = (values: unknown) => {
    validate(values)
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
  for (const set of ['deploy/helm/svc-mcp/values.yaml', ...Object.keys(SETS)])
    t.same(faults(parse(textOf(set))), [], set)
  t.same(faults({ image: { digest: 'latest' } }), ['/image/digest must match pattern "^(sha256:[0-9a-f]{64})?$"'])
  t.same(faults({ notifications: { url: 'http://relay.example.com' } }), [
    '/notifications/url must match pattern "^(https://.+)?$"',
  ])
  t.same(faults({ replicas: 3 }), [' must NOT have additional properties'])
  t.same(faults({ image: { tag: '1' } }), ['/image must NOT have additional properties'])
})

t.test('no pod has more rights than it needs', async (t) => {
  for (const set of Object.keys(SETS)) {
    const pod = podOf(renderWith(t, set))
    t.equal(pod.automountServiceAccountToken, false)
    t.same([pod.securityContext.runAsNonRoot, pod.securityContext.seccompProfile], [true, { type: 'RuntimeDefault' }])
    for (const { name, image, securityContext } of [...pod.initContainers, ...pod.containers]) {
      t.same(
        securityContext,
        { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        name,
      )
      t.equal(/@sha256:[0-9a-f]{64}$/.test(image), true, image)
    }
  }
})

t.test('the sidecar carries probes, calls and the address of the client to the server', async (t) => {
  const world = await createWorld(t, { publicUrl: 'https://mcp.example.com' })
  const manifests = renderWith(t, FULL, { tls: { trustedProxies: ['127.0.0.1'] } })
  const pod = podOf(manifests)
  const server = pod.containers[0]!
  const [port, metricsPort, serverPort] = [await freePort(), await freePort(), await freePort()]
  const env = Object.fromEntries(
    server.env.flatMap(({ name, value }) => (name === 'MCP_TRUSTED_PROXIES' ? [[name, value]] : [])),
  )
  const args = server.args.map((arg) => (arg === '8080' ? String(serverPort) : arg))
  await world.serve({ args, env: { ...env, MCP_AUDIT_LOG_PATH: world.auditPath } })

  const folder = mkdtempSync(join(tmpdir(), 'sidecar-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  const inside = (path: string) => join(folder, path)
  mkdirSync(inside('tls'))
  mkdirSync(inside('tmp'))
  const give = ({ certPath, keyPath }: { certPath: string; keyPath: string }) => {
    copyFileSync(certPath, inside('tls/tls.crt'))
    copyFileSync(keyPath, inside('tls/tls.key'))
  }
  give(world.certificate)
  const config = manifests.find(({ metadata }) => metadata.name === 'svc-mcp-proxy')!.data!['nginx.conf']!
  writeFileSync(
    inside('nginx.conf'),
    config
      .replaceAll(/ \/tmp\//g, ` ${inside('tmp')}/`)
      .replaceAll('/etc/svc-mcp/tls', inside('tls'))
      .replace('listen 8443', `listen 127.0.0.1:${port}`)
      .replace('listen 9443', `listen 127.0.0.1:${metricsPort}`)
      .replace('127.0.0.1:8080', `127.0.0.1:${serverPort}`),
  )
  // As the pod runs it: a user that is not root, and a command without the image's own start script.
  const { runAsUser, runAsGroup } = pod.securityContext
  const tls = pod.initContainers[0]!
  if (process.getuid?.() === 0) spawnSync('chown', ['-R', `${runAsUser}:${runAsGroup}`, folder])
  const words = tls.command.map((word) => (word.startsWith('/etc/') ? inside('nginx.conf') : word))
  const asUser =
    process.getuid?.() === 0 ? ['setpriv', `--reuid=${runAsUser}`, `--regid=${runAsGroup}`, '--clear-groups'] : []
  const [command, ...rest] = [...asUser, ...words] as [string, ...string[]]
  const child = spawn(command, rest, { env: { PATH: `${process.env.PATH}:/usr/sbin` }, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGQUIT')
    await ended
  })

  /** The kubelet's way: by address, without a look at the certificate. */
  const ask = (path: string, { headers = {}, at = port, method = 'GET' }: Asked = {}) =>
    new Promise<{ status: number; body: string; serial: string }>((resolve, reject) => {
      const asking = request({
        host: '127.0.0.1',
        port: at,
        path,
        method,
        headers,
        rejectUnauthorized: false,
        agent: false,
      })
      asking.once('error', reject)
      asking.once('response', (answer) => {
        const serial = (answer.socket as TLSSocket).getPeerCertificate().serialNumber
        let body = ''
        answer.setEncoding('utf8')
        answer.on('data', (chunk: string) => (body += chunk))
        answer.once('end', () => resolve({ status: answer.statusCode!, body, serial }))
      })
      asking.end()
    })
  await found(
    () =>
      ask('/healthz').then(
        () => true,
        () => false,
      ),
    'the sidecar listens',
  )

  for (const probe of [server.startupProbe, server.readinessProbe, server.livenessProbe])
    t.equal((await ask(probe.httpGet.path, { headers: { host: '10.1.2.3:8443' } })).status, 200, probe.httpGet.path)
  t.equal((await ask('/mcp', { method: 'POST', headers: { host: 'mcp.example.com' } })).status, 401)
  t.equal((await ask('/other', { at: metricsPort })).status, 404, 'the port of the metrics has nothing else')
  t.equal((await ask('/metrics', { at: metricsPort })).status, 502, 'and nobody behind it here')

  const token = await world.tokenOf('alice')
  const headers = {
    host: 'mcp.example.com',
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'x-forwarded-for': '203.0.113.9, 198.51.100.7',
  }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'get-labels', arguments: {} },
  })
  await new Promise<void>((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers, rejectUnauthorized: false },
      (answer) => answer.resume().once('end', () => resolve()),
    )
    call.once('error', reject)
    call.end(body)
  })
  t.same(
    world.auditEntries().map(({ client_address }) => client_address),
    ['198.51.100.7'],
    'the last one that a trusted proxy has seen, not what the client claims',
  )

  const before = (await ask('/healthz')).serial
  give(makeCertificate(t))
  const after = (await ask('/healthz')).serial
  t.not(after, before, 'a renewed certificate is there at once')
})

/** HAProxy and Apache as processes of the test's own, with the example configurations that users copy. */
import { readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { Certificate } from './make-certificate.js'
import { adaptExample, proxyFolder, runProxy } from './run-proxy.js'

interface Test {
  teardown(fn: () => unknown): void
}

const isRoot = userInfo().uid === 0

export interface ProxyOptions {
  port: number
  certificate: Certificate
  /** The port on which the server listens. */
  serverPort: number
}

/**
 * Starts HAProxy. With `reuses` it shares its connections to the server among clients, which the example does not.
 */
export async function startHaproxy(
  t: Test,
  { port, certificate, serverPort, reuses = false }: ProxyOptions & { reuses?: boolean },
): Promise<void> {
  const { path } = proxyFolder(t, 'haproxy')
  writeFileSync(path('mcp.pem'), readFileSync(certificate.certPath, 'utf8') + readFileSync(certificate.keyPath, 'utf8'))
  const text = adaptExample('haproxy.cfg', 4, [
    [/ 0\.0\.0\.0:443 ssl crt \/etc\/haproxy\/certs\/mcp\.pem /gm, ` 127.0.0.1:${port} ssl crt ${path('mcp.pem')} `],
    [/^ +bind :::443 .*# <-$/gm, ''],
    [/ 127\.0\.0\.1:8080 # <-.*$/gm, ` 127.0.0.1:${serverPort}`],
    [/^ +user haproxy\n +group haproxy$/gm, isRoot ? 'user haproxy\ngroup haproxy' : ''],
    [/^ +option http-server-close$/gm, reuses ? 'http-reuse always' : 'option http-server-close'],
  ])
  writeFileSync(path('haproxy.cfg'), text)
  await runProxy(t, 'haproxy', ['-db', '-f', path('haproxy.cfg')], port)
}

/** Starts Apache with the modules that the example names. */
export async function startApache(t: Test, { port, certificate, serverPort }: ProxyOptions): Promise<void> {
  const { folder, path } = proxyFolder(t, 'apache')
  const text = adaptExample('apache.conf', 5, [
    [/^<VirtualHost \*:443>$/gm, `<VirtualHost 127.0.0.1:${port}>`],
    [/(?<=# <- The host of MCP_PUBLIC_URL\.\n) +ServerName mcp\.example\.com$/gm, 'ServerName localhost'],
    [/(?<=# <-\n) +SSLCertificateFile .*$/gm, `SSLCertificateFile ${certificate.certPath}`],
    [/(?<=# <-\n) +SSLCertificateKeyFile .*$/gm, `SSLCertificateKeyFile ${certificate.keyPath}`],
    [/(?<=^ +ProxyPass \/ )http:\/\/127\.0\.0\.1:8080\//gm, `http://127.0.0.1:${serverPort}/`],
  ])
  writeFileSync(path('site.conf'), text)
  const modules = ['mpm_event', 'authz_core', 'ssl', 'http2', 'proxy', 'proxy_http', 'headers']
  writeFileSync(
    path('apache.conf'),
    `ServerRoot ${folder}
ServerName localhost
PidFile ${path('apache.pid')}
DefaultRuntimeDir ${folder}
ErrorLog ${path('error.log')}
${isRoot ? 'User www-data\nGroup www-data' : ''}
${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
StartServers 1
ServerLimit 2
ThreadsPerChild 16
MaxRequestWorkers 32
MaxSpareThreads 32
Listen 127.0.0.1:${port}
Include ${path('site.conf')}
`,
  )
  await runProxy(t, 'apache2', ['-D', 'FOREGROUND', '-f', path('apache.conf')], port)
}

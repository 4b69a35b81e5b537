/** nginx as a process of the test's own, with the example configuration that users copy. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { Certificate } from './make-certificate.js'
import { adaptExample, proxyFolder, runProxy } from './run-proxy.js'

interface Test {
  teardown(fn: () => unknown): void
}

export interface NginxOptions {
  port: number
  certificate: Certificate
  /** Lines of `upstream`, in place of the one that the example has. */
  servers: readonly string[]
  /** Whether the lines for a MCP_PUBLIC_URL with the path /policy count. */
  hasPath?: boolean
}

/** The example with its marked lines changed, and the port. Throws Error when it does not have exactly the lines that it says. */
function adaptNginx({ port, certificate, servers, hasPath = false }: NginxOptions): string {
  const text = adaptExample('nginx.conf', 5, [
    [/^ {4}server 127\.0\.0\.1:8080; +# <-.*$/gm, servers.join('\n')],
    [/^ {4}server_name mcp\.example\.com; +# <-.*$/gm, 'server_name localhost;'],
    [/^ {4}ssl_certificate .*# <-$/gm, `ssl_certificate ${certificate.certPath};`],
    [/^ {4}ssl_certificate_key .*# <-$/gm, `ssl_certificate_key ${certificate.keyPath};`],
    [/^ {4}listen 443 /gm, `listen 127.0.0.1:${port} `],
    [/^ {4}listen \[::\]:443 .*$/gm, ''],
  ])
  const rewrites = /^ {4}# {3}(?=rewrite )/gm
  if (text.match(rewrites)?.length !== 2) throw new Error('the example has not two lines for a path')
  return hasPath ? text.replace(rewrites, '    ') : text
}

/** Starts it, without root where nobody is root, and waits until it takes connections. It is stopped at the end of the test. */
export async function startNginx(t: Test, options: NginxOptions) {
  const { folder, path } = proxyFolder(t, 'nginx')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  for (const name of temporary) mkdirSync(path(name))
  writeFileSync(path('svc-mcp.conf'), adaptNginx(options))
  // What Debian's own nginx.conf does around the files of conf.d, in this folder.
  writeFileSync(
    path('nginx.conf'),
    `daemon off;
${userInfo().uid === 0 ? 'user root;' : ''}
worker_processes 2;
pid ${path('nginx.pid')};
error_log ${path('error.log')} info;
events { worker_connections 768; }
http {
  access_log ${path('access.log')};
  gzip on;
  # Whom the test pretends to be.
  set_real_ip_from 127.0.0.1;
  real_ip_header X-Test-Address;
  ${temporary.map((name) => `${name}_temp_path ${path(name)};`).join('\n  ')}
  include ${path('svc-mcp.conf')};
}
`,
  )
  const args = ['-p', folder, '-e', path('error.log'), '-c', path('nginx.conf')]
  await runProxy(t, 'nginx', args, options.port)

  return {
    /** What it logged so far. */
    log: (name: 'access' | 'error') => readFileSync(path(`${name}.log`), 'utf8'),
  }
}

/** nginx as a process of the test's own, with the example configuration that users copy. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Certificate } from './make-certificate.js'
import { found } from './within.js'

interface Test {
  teardown(fn: () => unknown): void
}

export const EXAMPLE = fileURLToPath(new URL('../../../deploy/proxy/nginx.conf', import.meta.url))

export interface NginxOptions {
  port: number
  certificate: Certificate
  /** Lines of `upstream`, in place of the one that the example has. */
  servers: readonly string[]
  /** Whether the lines for a MCP_PUBLIC_URL with the path /policy count. */
  hasPath?: boolean
}

/** The example with its marked lines changed, and the port. Throws Error when it does not have exactly the lines that it says. */
export function adaptExample({ port, certificate, servers, hasPath = false }: NginxOptions): string {
  const changes: [RegExp, string][] = [
    [/^ {4}server 127\.0\.0\.1:8080; +# <-.*$/gm, servers.join('\n')],
    [/^ {4}server_name mcp\.example\.com; +# <-.*$/gm, 'server_name localhost;'],
    [/^ {4}ssl_certificate .*# <-$/gm, `ssl_certificate ${certificate.certPath};`],
    [/^ {4}ssl_certificate_key .*# <-$/gm, `ssl_certificate_key ${certificate.keyPath};`],
    [/^ {4}listen 443 /gm, `listen 127.0.0.1:${port} `],
    [/^ {4}listen \[::\]:443 .*$/gm, ''],
  ]
  let text = readFileSync(EXAMPLE, 'utf8')
  const marks = text.match(/<-/g)?.length
  if (marks !== 5) throw new Error(`the example has ${marks} marks, the heading's included`)
  for (const [line, changed] of changes) {
    if (text.match(line)?.length !== 1) throw new Error(`the example has not one line ${line.source}`)
    text = text.replace(line, () => changed)
  }
  const rewrites = /^ {4}# {3}(?=rewrite )/gm
  if (text.match(rewrites)?.length !== 2) throw new Error('the example has not two lines for a path')
  return hasPath ? text.replace(rewrites, '    ') : text
}

/** Starts it, without root where nobody is root, and waits until it takes connections. It is stopped at the end of the test. */
export async function startNginx(t: Test, options: NginxOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'edge-nginx-'))
  const path = (name: string) => join(folder, name)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  for (const name of temporary) mkdirSync(path(name))
  writeFileSync(path('svc-mcp.conf'), adaptExample(options))
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
  const child = spawn('nginx', ['-p', folder, '-e', path('error.log'), '-c', path('nginx.conf')], {
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<void>((resolve, reject) => {
    child.once('close', () => resolve())
    child.once('error', reject)
  })
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const failed = ended.then(() => {
    throw new Error(`nginx ended: ${stderr}`)
  })
  failed.catch(() => {})
  await found(() => Promise.race([answers(options.port), failed]), 'nginx listens')

  return {
    /** What it logged so far. */
    log: (name: 'access' | 'error') => readFileSync(path(`${name}.log`), 'utf8'),
  }
}

/** Whether someone listens there. */
const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const probe = connect(port, '127.0.0.1', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })

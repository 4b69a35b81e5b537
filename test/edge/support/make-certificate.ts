import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  cert: string
  key: string
  certPath: string
  keyPath: string
}

/** A certificate for localhost and 127.0.0.1 that is its own authority. */
export function makeCertificate(t: { teardown(fn: () => unknown): void }): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'edge-pki-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', keyPath, '-out', certPath], {
    stdio: 'pipe',
  })
  return { cert: readFileSync(certPath, 'utf8'), key: readFileSync(keyPath, 'utf8'), certPath, keyPath }
}

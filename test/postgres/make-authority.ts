import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from '../edge/support/make-certificate.js'

/** A certificate whose authority is another one: what `sslrootcert` names. */
export interface IssuedCertificate extends Certificate {
  authorityPath: string
}

export interface Issue {
  /** `DNS:localhost,IP:127.0.0.1` */
  names: string
  /** Was over yesterday. */
  hasExpired?: boolean
}

const KIND = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
const DAY_MS = 24 * 60 * 60 * 1000

/** An authority of the test's own, and certificates of it. Its files are gone with the test. */
export function makeAuthority(t: { teardown(fn: () => unknown): void }) {
  const folder = mkdtempSync(join(tmpdir(), 'authority-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe', cwd: folder })
  const [path, keyPath] = [at('ca.pem'), at('ca.key')]
  openssl('req', '-x509', ...KIND, '-days', '2', '-subj', '/CN=CA of a test', '-keyout', keyPath, '-out', path)
  writeFileSync(at('issued'), '')
  writeFileSync(
    at('ca.cnf'),
    `[ca]
default_ca = test
[test]
database = ${at('issued')}
new_certs_dir = ${folder}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
`,
  )
  let issued = 0
  return {
    path,
    issue({ names, hasExpired = false }: Issue): IssuedCertificate {
      const name = `${issued++}`
      const [request, own, ownKey] = [at(`${name}.csr`), at(`${name}.pem`), at(`${name}.key`)]
      const extensions = ['-addext', `subjectAltName=${names}`, '-addext', 'basicConstraints=critical,CA:FALSE']
      openssl('req', '-new', ...KIND, '-subj', '/CN=database', ...extensions, '-keyout', ownKey, '-out', request)
      const end = Date.now() + (hasExpired ? -DAY_MS : DAY_MS)
      const times = ['-startdate', timeOf(end - 10 * DAY_MS), '-enddate', timeOf(end)]
      const by = ['-config', at('ca.cnf'), '-cert', path, '-keyfile', keyPath]
      openssl('ca', '-batch', '-notext', ...by, ...times, '-in', request, '-out', own)
      return {
        cert: readFileSync(own, 'utf8'),
        key: readFileSync(ownKey, 'utf8'),
        certPath: own,
        keyPath: ownKey,
        authorityPath: path,
      }
    },
  }
}

/** `20261125120000Z` */
const timeOf = (ms: number) => new Date(ms).toISOString().replace(/\.\d+|[-:T]/g, '')

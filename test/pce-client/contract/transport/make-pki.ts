import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** A certification authority and a certificate of `localhost` by it, made with openssl; gone when the test ends. */
export function makePki(t: Test) {
  const directory = mkdtempSync(join(tmpdir(), 'contract-pki-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const path = (name: string) => join(directory, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' })
  const key = (name: string) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', name]
  for (const name of ['ca', 'other']) {
    openssl('req', '-x509', ...key(`${name}.key`), '-out', `${name}.pem`, '-days', '2', '-subj', `/CN=Contract ${name}`)
  }
  writeFileSync(path('names.txt'), 'subjectAltName=DNS:localhost\n')
  openssl('req', '-new', ...key('server.key'), '-out', 'server.csr', '-subj', '/CN=localhost')
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2']
  openssl('x509', '-req', '-in', 'server.csr', ...signed, '-out', 'server.pem', '-extfile', 'names.txt')
  openssl('req', '-new', ...key('client.key'), '-out', 'client.csr', '-subj', '/CN=contract client')
  openssl('x509', '-req', '-in', 'client.csr', ...signed, '-out', 'client.pem')
  const read = (name: string) => readFileSync(path(name), 'utf8')
  writeFileSync(path('client-both.pem'), read('client.pem') + read('client.key'))
  return { path, read }
}

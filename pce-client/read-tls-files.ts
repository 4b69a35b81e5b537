import { readFileSync } from 'node:fs'
import { PceError } from './errors.js'

/** Arguments of Node's TLS connections, ready to use. */
export interface TlsSettings {
  /** False accepts any certificate. */
  verify: boolean
  /** PEM of the only authorities that are trusted; absent means Node's own store (with NODE_EXTRA_CA_CERTS). */
  ca?: string
  cert?: string
  key?: string
}

/**
 * Reads the files that `setTlsSettings` names, and makes sure that OpenSSL can use them, so that a bad file is reported
 * where it was named and not as a failed handshake later.
 *
 * @param verify true, false, or the path of a PEM bundle that replaces the default trust store.
 * @param cert path of one PEM with certificate and key, or the paths of both.
 * @throws {PceError} `invalid_argument`, naming the path.
 */
export function readTlsFiles(
  verify: boolean | string = true,
  cert: string | readonly [string, string] | null = null,
): TlsSettings {
  const settings: TlsSettings = { verify: verify !== false }
  if (typeof verify === 'string') {
    settings.ca = readPem('CA bundle', verify, 'CERTIFICATE')
    tryInOpenssl({ ca: settings.ca }, `CA bundle ${verify}`)
  }
  if (cert !== null) {
    const [certPath, keyPath] = typeof cert === 'string' ? [cert, cert] : cert
    settings.cert = readPem('client certificate', certPath, 'CERTIFICATE')
    settings.key = readPem('client key', keyPath, 'PRIVATE KEY')
    const paths = certPath === keyPath ? certPath : `${certPath} with key ${keyPath}`
    tryInOpenssl({ cert: settings.cert, key: settings.key }, `client certificate ${paths}`)
  }
  return settings
}

function readPem(what: string, path: string, block: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new PceError('invalid_argument', `cannot read the ${what} ${path}: ${reason}`, { reason })
  }
  if (!text.includes(`${block}-----`)) {
    throw new PceError('invalid_argument', `the ${what} ${path} holds no PEM block of type ${block}`)
  }
  if (block === 'PRIVATE KEY' && /BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(text)) {
    throw new PceError(
      'invalid_argument',
      `the ${what} ${path} is encrypted: save it without a passphrase, for example with openssl pkey`,
    )
  }
  return text
}

function tryInOpenssl(parts: { ca?: string; cert?: string; key?: string }, what: string): void {
  try {
    // Not imported: loading TLS takes milliseconds that a start without certificate files can do without.
    process.getBuiltinModule('node:tls').createSecureContext(parts)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new PceError('invalid_argument', `the ${what} cannot be used: ${message}`, { reason: code })
  }
}

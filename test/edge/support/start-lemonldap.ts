/** LemonLDAP::NG of Debian as a process of the test's own: its portal, with the people of its demonstration, on loopback. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../free-port.js'
import type { Browser, Page } from '../../identity/browser.js'
import { keyPairFor } from '../../identity/key-pairs.js'
import { found } from './within.js'

interface Test {
  teardown(fn: () => unknown): void
}

const PORTAL = '/usr/share/lemonldap-ng/portal/htdocs/index.psgi'
const TEMPLATES = '/usr/share/lemonldap-ng/portal/templates'

export interface Client {
  id: string
  /** Absent for a public client. */
  secret?: string
  redirectUri: string
}

export interface LemonldapOptions {
  /** `aud` of the access tokens, beside the client. */
  audience: string
  clients: readonly Client[]
}

/** Starts it and waits until it answers. It is stopped at the end of the test. */
export async function startLemonldap(t: Test, options: LemonldapOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'edge-lemonldap-'))
  const path = (name: string) => join(folder, name)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  for (const name of ['conf', 'sessions/lock', 'persistent/lock', 'cache']) mkdirSync(path(name), { recursive: true })
  writeFileSync(path('conf/lmConf-1.json'), JSON.stringify(configuration(origin, path, options)))
  writeFileSync(
    path('lemonldap-ng.ini'),
    `[all]
logLevel = notice
[configuration]
type = File
dirName = ${path('conf')}
localStorage = Cache::FileCache
localStorageOptions = ${perlHash({ namespace: 'configuration', cache_root: path('cache'), default_expires_in: '600' })}
[portal]
templateDir = ${TEMPLATES}
staticPrefix = /static
languages = en
`,
  )
  const where = ['--server', 'HTTP::Server::PSGI', '--env', 'deployment', '--host', '127.0.0.1', '--port', String(port)]
  const child = spawn('plackup', [...where, PORTAL], {
    env: {
      PATH: process.env.PATH,
      LLNG_DEFAULTCONFFILE: path('lemonldap-ng.ini'),
      LLNG_DEFAULTLOGGER: 'Lemonldap::NG::Common::Logger::Std',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const output = { stderr: '' }
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const ended = new Promise<void>((resolve, reject) => {
    child.once('close', () => resolve())
    child.once('error', reject)
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const failed = ended.then(() => {
    throw new Error(`LemonLDAP::NG ended (.ci/install-packages installs it): ${output.stderr}`)
  })
  failed.catch(() => {})
  const answers = () =>
    fetch(`${origin}/.well-known/openid-configuration`).then(
      async (answer) => {
        if (!answer.ok) throw new Error(`LemonLDAP::NG does not start: ${output.stderr}`)
        return (await answer.json()) as Record<string, unknown>
      },
      () => null,
    )
  const metadata = await found(() => Promise.race([answers(), failed]), 'LemonLDAP::NG answers')

  return {
    /** The issuer, which is the address of the portal as well. */
    origin,
    /** Its discovery document. */
    metadata,
    output,
    /** Logs a person of the demonstration in, whose password is their name, from any page that asks for it. */
    logIn: (browser: Browser, page: Page, login: string, stopAt?: string): Promise<Page> =>
      page.body.includes('name="password"')
        ? browser.submit(page, { user: login, password: login }, stopAt)
        : Promise.resolve(page),
  }
}

const perlHash = (facts: Record<string, string>) =>
  `{ ${Object.entries(facts)
    .map(([name, value]) => `'${name}' => '${value}'`)
    .join(', ')} }`

/** The parameters of docs/identity-providers/lemonldap-ng.md, by their keys, and what a portal needs beside them. */
function configuration(origin: string, path: (name: string) => string, { audience, clients }: LemonldapOptions) {
  const { privateKey, publicKey } = keyPairFor('RS256')
  const forClients = <Value>(valueOf: (client: Client) => Value) =>
    Object.fromEntries(clients.map((client, at) => [`rp${at}`, valueOf(client)]))
  const sessionsIn = (name: string) => ({ Directory: path(name), LockDirectory: path(`${name}/lock`) })
  return {
    cfgNum: 1,
    cfgDate: 1,
    cfgAuthor: 'test',
    cfgVersion: '2.16.1',
    portal: `${origin}/`,
    domain: '127.0.0.1',
    securedCookie: 0,
    key: 'of the tests',
    authentication: 'Demo',
    userDB: 'Same',
    passwordDB: 'Null',
    registerDB: 'Null',
    demoExportedVars: { uid: 'uid', cn: 'cn', mail: 'mail' },
    locationRules: { '127.0.0.1': { default: 'accept' } },
    // The portal loads a captcha even where no form has one, and Debian's draws it with ImageMagick. This one draws none.
    captcha: '::Password::Null',
    globalStorage: 'Apache::Session::File',
    globalStorageOptions: sessionsIn('sessions'),
    persistentStorage: 'Apache::Session::File',
    persistentStorageOptions: sessionsIn('persistent'),
    localSessionStorage: 'Cache::FileCache',
    localSessionStorageOptions: { namespace: 'sessions', cache_root: path('cache'), default_expires_in: 600 },
    issuerDBOpenIDConnectActivation: 1,
    oidcServiceMetaDataIssuer: origin,
    oidcServiceAllowAuthorizationCodeFlow: 1,
    oidcServicePrivateKeySig: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    oidcServicePublicKeySig: publicKey.export({ type: 'spki', format: 'pem' }),
    oidcServiceKeyIdSig: 'of-the-tests',
    oidcRPMetaDataOptions: forClients(({ id, secret, redirectUri }) => ({
      oidcRPMetaDataOptionsClientID: id,
      ...(secret === undefined ? { oidcRPMetaDataOptionsPublic: 1 } : { oidcRPMetaDataOptionsClientSecret: secret }),
      oidcRPMetaDataOptionsRedirectUris: redirectUri,
      oidcRPMetaDataOptionsRequirePKCE: 1,
      oidcRPMetaDataOptionsBypassConsent: 1,
      oidcRPMetaDataOptionsIDTokenSignAlg: 'RS256',
      oidcRPMetaDataOptionsAccessTokenJWT: 1,
      oidcRPMetaDataOptionsAccessTokenSignAlg: 'RS256',
      oidcRPMetaDataOptionsAccessTokenClaims: 1,
      oidcRPMetaDataOptionsAdditionalAudiences: audience,
      oidcRPMetaDataOptionsAccessTokenExpiration: 3600,
    })),
    oidcRPMetaDataExportedVars: forClients(() => ({ name: 'cn', groups: 'groups;string;always' })),
    oidcRPMetaDataOptionsExtraClaims: forClients(() => ({ 'svc-mcp.use': 'groups' })),
  }
}

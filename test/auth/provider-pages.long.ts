/**
 * docs/identity-providers/, held against the server: every settings block is read as the server reads it, and every token below it is
 * signed and sent. What the page says must happen.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfig } from '../../config/index.js'
import type { PerUserConfig } from '../../schemas/config.js'
import { tools } from '../../tools/index.js'
import { startService } from '../contract/authenticated-service.js'
import { readPage, ROOT, runCommand, emptyFolder } from '../docs/commands.js'
import { freePort } from '../free-port.js'
import { claimsFor, forgeKey } from '../identity/forge.js'
import { startKeyServer } from '../identity/key-server.js'
import { partial } from '../partial.js'
import { parseChallenge } from './auth-app.js'

const FOLDER = 'docs/identity-providers'
/** By page, how many of its tokens give somebody a role. */
const ACCEPTED = {
  'ad-fs': 2,
  'any-openid-connect': 2,
  auth0: 2,
  'entra-id': 3,
  google: 0,
  keycloak: 2,
  'lemonldap-ng': 1,
  okta: 1,
  ping: 4,
}
/** A minute after the tokens of the pages were issued. */
const NOW = 1_795_680_060_000
const STATUS = 'check-pce-credentials-status'

interface Example {
  title: string
  /** A payload to sign, or an opaque token. */
  token: object | string
  /** `typ` of the header; undefined where it has none. */
  typ?: string
  expected: { role: string } | { refused: string } | { error: 'forbidden_no_role'; reason?: string }
}

interface Section {
  settings: Record<string, string>
  examples: Example[]
}

const OUTCOME =
  /→ (?:role `(?<role>\w+)`|`401` `(?<refused>[^`]+)`|`forbidden_no_role`(?:, reason `(?<reason>\w+)`)?):$/

/** The settings of a page, each with the tokens that follow it. Throws Error for a token whose outcome the page does not say. */
function readSections(page: string): Section[] {
  const sections: Section[] = []
  for (const [, line, language, text] of page.matchAll(/^(?:(.+)\n\n)?```(\w+)\n([\s\S]*?)```$/gm)) {
    if (language === 'ini') {
      const lines = text!.trim().split('\n')
      const settings = Object.fromEntries(lines.map((one) => /^(\w+)=(.+)$/.exec(one)!.slice(1) as [string, string]))
      sections.push({ settings, examples: [] })
    } else if (language === 'json' || language === 'text') {
      const said = OUTCOME.exec(line ?? '')?.groups
      if (said === undefined) throw new Error(`the page does not say what happens: ${line}`)
      const { role, refused, reason } = said
      const none = { error: 'forbidden_no_role', ...(reason !== undefined && { reason }) } as const
      sections.at(-1)!.examples.push({
        title: line!,
        token: language === 'json' ? (JSON.parse(text!) as object) : text!.trim(),
        typ: line!.includes('(no `typ`)') ? undefined : (/"typ": "([^"]+)"/.exec(line!)?.[1] ?? 'JWT'),
        expected: role !== undefined ? { role } : refused !== undefined ? { refused } : none,
      })
    }
  }
  return sections
}

const key = forgeKey('RS256')
const SECRETS = {
  MCP_KEK: Buffer.alloc(32, 7).toString('base64'),
  MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 9).toString('base64'),
}

/** The service with the settings of a page, and the key set of the test in the place of the provider's. */
async function serve(t: Test, settings: Record<string, string>) {
  const env = { ...settings, ...SECRETS }
  const config = readConfig('http', env, { host: '127.0.0.1', port: 8080 }) as PerUserConfig
  const keys = await startKeyServer(t, key)
  const service = await startService(t, {
    tools: tools.filter(({ name }) => name === STATUS),
    config: {
      http: { ...config.http, port: 0 },
      oauth: { ...config.oauth, jwksUrl: keys.url },
      roles: config.roles,
    },
    now: () => NOW,
  })
  const { host } = new URL(config.http.publicUrl)
  const send = (token: string) =>
    service.send(
      token,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: STATUS, arguments: {} } },
      { headers: { host } },
    )
  return { ...service, config, host, send }
}

const pages = readdirSync(join(ROOT, FOLDER))
  .filter((name) => name.endsWith('.md') && name !== 'README.md')
  .map((name) => name.slice(0, -3))

t.test('every provider has its page, its place in the table, and a link to it', (t) => {
  t.same(pages, Object.keys(ACCEPTED))
  const [, head] = /^(\| \|.+)$/m.exec(readPage(`${FOLDER}/README.md`))!
  for (const page of pages) t.ok(head!.includes(`](${page}.md`), page)
  t.end()
})

for (const page of pages) {
  t.test(`${page}: its settings are taken, and its tokens do what it says`, async (t) => {
    const sections = readSections(readPage(`${FOLDER}/${page}.md`))
    const examples = sections.flatMap((section) => section.examples)
    t.equal(examples.filter(({ expected }) => 'role' in expected).length, ACCEPTED[page as keyof typeof ACCEPTED])
    t.ok(examples.some(({ expected }) => 'refused' in expected))

    for (const { settings, examples } of sections) {
      const { app, config, host, send, audit } = await serve(t, settings)
      const resource = await app.inject({ url: '/.well-known/oauth-protected-resource', headers: { host } })
      partial(t, resource.json(), {
        resource: settings.MCP_PUBLIC_URL,
        authorization_servers: [settings.MCP_OAUTH_ISSUER],
        scopes_supported: (settings.MCP_OAUTH_REQUEST_SCOPE ?? 'svc-mcp.use').split(' '),
      })

      for (const { title, token, typ, expected } of examples) {
        const answer = await send(typeof token === 'string' ? token : await key.sign(token, { typ }))
        if ('refused' in expected) {
          t.equal(answer.statusCode, 401, title)
          partial(t, answer.json(), { error: { data: { error: 'unauthorized', reason: expected.refused } } }, title)
          const { parameters } = parseChallenge(String(answer.headers['www-authenticate']))
          t.same(
            [parameters[0]![1], parameters.find(([name]) => name === 'error_description')?.[1]],
            [`${settings.MCP_PUBLIC_URL}/.well-known/oauth-protected-resource`, expected.refused],
            title,
          )
          continue
        }
        t.equal(answer.statusCode, 200, `${title} ${answer.body}`)
        const entry = audit.findLast(({ phase }) => phase === 'decision')
        if ('role' in expected) {
          partial(t, entry, { role: expected.role, decision: 'allowed', iss: config.oauth.issuer }, title)
          continue
        }
        const { error, reason } = JSON.parse(answer.json().result.content[0].text as string)
        t.same({ error, ...(reason !== undefined && { reason }) }, expected, title)
      }
    }
  })
}

t.test('the reasons in the tables are those that the server gives', (t) => {
  const source = readFileSync(join(ROOT, 'plugins/auth/read-token.ts'), 'utf8')
  const reasons = [...source.matchAll(/^ {2}\| '(.+)'$/gm)].map(([, reason]) => reason!)
  const [, table] = /## What a refusal means\n([\s\S]*?)\n\n`forbidden/.exec(readPage(`${FOLDER}/README.md`))!
  const named = [...table!.matchAll(/^\| `(.+?)` \| [A-Z]/gm)].map(([, reason]) => reason!)
  t.ok(named.length > 10 && reasons.length > 15)
  t.same(
    named.filter((reason) => !reasons.includes(reason)),
    [],
  )
  for (const page of pages) {
    const [, troubles = ''] = /## Known troubles\n([\s\S]*)/.exec(readPage(`${FOLDER}/${page}.md`)) ?? []
    const cells = [...troubles.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell!)
    const ours = cells.flatMap((cell) => [...cell.matchAll(/`([a-z]+(?: [a-z]+)+)`/g)].map(([, reason]) => reason!))
    t.same(
      ours.filter((reason) => !reasons.includes(reason)),
      [],
      page,
    )
  }
  t.end()
})

t.test('the command that checks a token says each of the three things', async (t) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const service = await startService(t, {
    tools: tools.filter(({ name }) => name === STATUS),
    config: { http: { host: '127.0.0.1', port, publicUrl: url, allowedHosts: [], maxInFlight: 256 } },
  })
  await service.app.listen({ host: '127.0.0.1', port })
  const ask = async (token: string) =>
    runCommand(t, 'docs/identity-providers/README.md#check-it', {
      cwd: emptyFolder(t),
      env: { TOKEN: token },
      own: { 'https://mcp.example.com': url },
    })
  t.match(await ask(await service.tokenOf('ann')), /"registered"/)
  t.match(await ask(await service.tokenOf('ann', null)), /forbidden_no_role/)
  const foreign = claimsFor({ ...service.oauth, audience: 'https://other.example' })
  t.match(await ask(await service.key.sign(foreign)), /unauthorized[^]*aud mismatch/)
})

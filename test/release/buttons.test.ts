/** The buttons of the README, decoded as the editors do: what they would add starts a server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readConfig } from '../../config/index.js'
import { StartupError } from '../../schemas/config.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const { bin } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { bin: Record<string, string> }

/** The addresses of the links whose text begins with `Add to`, by what follows. */
const links = new Map(
  [...readme.matchAll(/\[\*\*Add to ([^*]+)\*\*\]\(([^)\s]+)\)/g)].map(([, client, url]) => [client!, new URL(url!)]),
)

interface Entry {
  command: string
  args: string[]
  env: Record<string, string>
}

t.test('VS Code asks for each value and starts the installed program with it', (t) => {
  const url = links.get('VS Code')!
  t.equal(url.origin + url.pathname, 'https://insiders.vscode.dev/redirect/mcp/install')
  t.equal(url.searchParams.get('name'), 'svc-mcp')
  const inputs = JSON.parse(url.searchParams.get('inputs')!) as { id: string; type: string; password?: boolean }[]
  const { command, args, env } = JSON.parse(url.searchParams.get('config')!) as Entry
  t.same([command in bin, args], [true, []])
  t.same(
    Object.values(env),
    inputs.map(({ id }) => `\${input:${id}}`),
    'every variable has its question',
  )
  t.same([...new Set(inputs.map(({ type }) => type))], ['promptString'])
  t.same(
    inputs.filter(({ password }) => password).map(({ id }) => id),
    ['api_key', 'api_secret'],
  )
  const answers: Record<string, string> = {
    pce_host: 'pce.example.com:8443',
    pce_org_id: '3',
    api_key: 'api_1',
    api_secret: 'secret-canary',
  }
  const filled = Object.entries(env).map(([name, value]) => [name, answers[/^\$\{input:(\w+)\}$/.exec(value)![1]!]!])
  const { pce } = readConfig('stdio', Object.fromEntries(filled) as Record<string, string>)
  t.same([pce.port, pce.orgId, pce.apiKey], ['8443', '3', 'api_1'])
  t.end()
})

t.test('Cursor adds the installed program, which says what is still a placeholder', (t) => {
  const url = links.get('Cursor')!
  t.equal(url.origin + url.pathname, 'https://cursor.com/en/install-mcp')
  t.equal(url.searchParams.get('name'), 'svc-mcp')
  const config = Buffer.from(url.searchParams.get('config')!, 'base64').toString('utf8')
  const { command, args, env } = JSON.parse(config) as Entry
  t.same([command in bin, args], [true, []])
  const problems = (() => {
    try {
      readConfig('stdio', env)
      return []
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      return error.faults.map(({ problem }) => problem)
    }
  })()
  t.same(
    problems,
    ['PCE_HOST', 'API_KEY', 'API_SECRET'].map((name) => `${name} still contains a placeholder`),
  )
  t.doesNotThrow(() =>
    readConfig('stdio', { ...env, PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret-canary' }),
  )
  t.end()
})

t.test('the block takes at most four lines', (t) => {
  const [, block = ''] = /<!-- BEGIN generated:install-buttons -->\n([\s\S]*?)\n<!-- END/.exec(readme) ?? []
  const lines = block.split('\n')
  t.equal(links.size === 2 && lines.length <= 4, true, `${lines.length} lines`)
  t.end()
})

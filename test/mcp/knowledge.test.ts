/** Documents for assistants as MCP resources (MCP server features, resources). */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { tools } from '../../tools/index.js'
import { insecureApp, request } from '../contract/insecure-app.js'
import { contains, partial } from '../partial.js'

/** Typed out: what clients and compliance-check refer to. */
const URIS = [
  'illumio://concepts/rule-processing',
  'illumio://concepts/enforcement-modes',
  'illumio://concepts/segmentation',
  'illumio://concepts/draft-active-policy',
  'illumio://concepts/workloads',
  'illumio://architecture/pce-ven',
  'illumio://architecture/labels',
  'illumio://methodology/first-principles',
  'illumio://methodology/core-services',
  'illumio://methodology/ringfencing-patterns',
  'illumio://methodology/crown-jewels',
  'illumio://operations/logging-monitoring',
  'illumio://compliance/pci-dss',
  'illumio://compliance/dora',
  'illumio://compliance/nist-800-53',
  'illumio://compliance/iso-27001',
  'illumio://compliance/swift-csp',
  'illumio://compliance/cis-controls',
  'illumio://compliance/hipaa',
  'illumio://compliance/segmentation-methodology',
  'illumio://changelog',
]

const { app, post } = await insecureApp(tools)
t.teardown(() => app.close())
const ask = async (method: string, params?: object) => (await post(request(method, params))).json()
const read = async (uri: string) => ask('resources/read', { uri })

t.test('lists 20 documents and the changelog, each with what it is about', async (t) => {
  const { resources } = (await ask('resources/list')).result
  t.same(
    resources.map(({ uri }: { uri: string }) => uri),
    URIS,
  )
  for (const { uri, name, description, mimeType } of resources) {
    t.equal(mimeType, 'text/markdown', uri)
    t.ok(name.length > 3 && description.length > 20 && description.length < 160, `${uri}: ${description}`)
  }
  t.equal(new Set(resources.map(({ name }: { name: string }) => name)).size, URIS.length)
  t.ok(JSON.stringify(resources).length < 6_000, 'a conversation may have to read the list')
})

t.test('every document is a dated page of its own that names existing tools', async (t) => {
  const names = new Set(tools.map(({ name }) => name))
  const said = new Set<string>()
  for (const uri of URIS.slice(0, -1)) {
    const { contents } = (await read(uri)).result
    t.equal(contents.length, 1, uri)
    const [{ text, ...rest }] = contents
    t.same(rest, { uri, mimeType: 'text/markdown' })
    t.match(text, /^# .+\n\nAs of \d{4}-\d\d-\d\d/, `${uri}: title and date`)
    t.notMatch(text, /\{\{|\}\}|undefined/, `${uri}: nothing is left to fill in`)
    t.ok(text.length > 2_000 && text.length < 6_000, `${uri}: one screen to three (${text.length})`)
    for (const [, word] of text.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)) if (names.has(word)) said.add(word)
    for (const [other] of text.matchAll(/illumio:\/\/[\w/-]+/g)) t.ok(URIS.includes(other), `${uri} refers to ${other}`)
  }
  t.ok(said.size > 25, `${said.size} tools are named`)
})

t.test('documents say what the facts are', async (t) => {
  const textOf = async (uri: string) => (await read(uri)).result.contents[0].text as string
  const order = await textOf('illumio://concepts/rule-processing')
  const steps = ['Essential rules', 'Override deny', 'Allow', 'Deny', 'Default'].map((step) =>
    order.indexOf(`. ${step}`),
  )
  t.ok(
    steps.every((at, index) => at > (steps[index - 1] ?? 0)),
    'the five steps stand in their order',
  )
  contains(t, order, '`selective`: allowed; `full`: dropped')
  for (const article of ['6', '7', '8', '10', '11', '17', '18', '25', '26', '28'])
    contains(t, await textOf('illumio://compliance/dora'), `| ${article} |`)
  for (const port of [22, 23, 445, 1433, 1521, 3306, 3389, 5432])
    t.match(await textOf('illumio://compliance/pci-dss'), new RegExp(`\\b${port}\\b`))
})

t.test('the changelog is the one that get-server-changelog reads', async (t) => {
  const page = readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8')
  const [{ text, mimeType }] = (await read('illumio://changelog')).result.contents
  t.equal(mimeType, 'text/markdown')
  t.ok(text.length <= 40_100)
  t.ok(page.startsWith(text.slice(0, 5_000)))
})

t.test('a resource that does not exist is not found', async (t) => {
  for (const uri of [
    'illumio://concepts',
    'illumio://concepts/rule-processing/',
    'illumio://concepts/../concepts/labels',
    'illumio://documents/concepts/labels',
    'file:///etc/passwd',
    'ILLUMIO://changelog',
    '',
    '__proto__',
  ]) {
    const { error } = await read(uri)
    partial(t, error, { code: -32002, message: 'Resource not found', data: { error: 'not_found', uri } }, uri)
  }
  const { error } = await read(`illumio://${'x'.repeat(5_000)}`)
  t.equal(error.data.uri.length, 300, 'an error does not repeat all of a long one')
})

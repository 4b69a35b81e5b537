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
  'illumio://operations/morning-report',
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

t.test('lists 21 documents and the changelog, each with what it is about', async (t) => {
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

const get = async (name: string, args?: object | null) =>
  ask('prompts/get', { name, ...(args !== undefined && { arguments: args }) })
const PAYMENTS = { application_name: 'payments', application_environment: 'prod' }
const textOfPrompt = async (name: string, args: object | null = PAYMENTS) =>
  (await get(name, args)).result.messages[0].content.text as string

t.test('lists eight prompts with their arguments', async (t) => {
  const { prompts } = (await ask('prompts/list')).result
  const application = ['application_name (required)', 'application_environment (required)']
  t.same(
    prompts.map(({ name, arguments: args }: { name: string; arguments: { name: string; required: boolean }[] }) => [
      name,
      args.map((one) => `${one.name}${one.required ? ' (required)' : ''}`),
    ]),
    [
      ['ringfence-application', application],
      ['analyze-application-traffic', application],
      ['emergency-isolate-application', application],
      ['onboard-application', application],
      ['explain-blocked-traffic', application],
      ['review-before-provisioning', []],
      ['morning-report', []],
      ['quarterly-compliance-review', ['framework (required)', 'application_name', 'application_environment']],
    ],
  )
  for (const { title, description } of prompts) t.ok(title.length > 3 && description.length > 20, title)
})

t.test('a prompt is one message of the user about exactly this application', async (t) => {
  const args = { application_name: 'pay "ments"\n', application_environment: 'pröd' }
  const { description, messages } = (await get('ringfence-application', args)).result
  t.match(description, /Stops before provisioning/)
  t.equal(messages.length, 1)
  t.equal(messages[0].role, 'user')
  const { type, text } = messages[0].content
  t.equal(type, 'text')
  contains(t, text, 'application "pay \\"ments\\"⟨U+000A⟩" in the environment "pröd"', 'a value neither ends nor hides')
  contains(t, await textOfPrompt('emergency-isolate-application'), '"EMERGENCY-ISOLATE-payments-prod"')
  contains(t, await textOfPrompt('ringfence-application'), '"payments-outbound"')
  const review = { framework: 'swift-csp' }
  contains(t, await textOfPrompt('quarterly-compliance-review', review), 'framework `swift-csp`, for everything')
  t.equal(
    await textOfPrompt('quarterly-compliance-review', { ...review, application_name: null }),
    await textOfPrompt('quarterly-compliance-review', review),
    'null for an optional argument counts as left out',
  )
  t.equal(await textOfPrompt('review-before-provisioning', null), await textOfPrompt('review-before-provisioning', {}))
  contains(
    t,
    await textOfPrompt('quarterly-compliance-review', { ...review, application_environment: 'prod' }),
    'for env "prod"',
  )
})

t.test('prompts drive dry runs, and only the emergency one goes on to provision, after a yes', async (t) => {
  const { prompts } = (await ask('prompts/list')).result
  for (const { name, arguments: args } of prompts as { name: string; arguments: { name: string }[] }[]) {
    const values = args.map((one) => [one.name, one.name === 'framework' ? 'general' : 'payments'])
    const text = await textOfPrompt(name, Object.fromEntries(values))
    t.notMatch(text, /\{\{|\}\}|undefined/, `${name}: nothing is left to fill in`)
    t.ok(text.length > 1_000 && text.length < 6_000, `${name} (${text.length})`)
    t.match(text, /Only read|[Ss]top(s)? (here|there)|after a person has said yes/, `${name}: says where it ends`)
    // A tool that changes anything is planned before it is called.
    for (const [tool] of text.matchAll(
      /create-(?:ringfence|ruleset|deny-rule|label)|update-workload|provision-policy/g,
    ))
      t.ok(new RegExp(`${tool}[^.;]*dry_run|dry run`).test(text), `${name}: ${tool}`)
  }
  const emergency = await textOfPrompt('emergency-isolate-application')
  const yes = emergency.indexOf('Wait.')
  t.ok(yes > 0)
  t.match(emergency.slice(0, yes), /cuts everything to and from it/)
  t.match(emergency, /consumers `ams`, and `unscoped_consumers` \*\*false\*\*/, 'outbound of the scope alone')
  t.notMatch(emergency.slice(0, yes), /`provision-policy`/, 'nothing is provisioned before the answer')
  t.match(emergency.slice(yes), /After yes: .*`provision-policy`/)
})

t.test('arguments that are missing, unknown or of no use are named', async (t) => {
  const cases: [string, object | undefined, RegExp][] = [
    ['ringfence-application', undefined, /application_name: required; application_environment: required/],
    ['ringfence-application', { application_name: 'payments' }, /: application_environment: required$/],
    ['ringfence-application', { ...PAYMENTS, app: 'x' }, /"app": unknown argument\. Known: application_name/],
    ['ringfence-application', { ...PAYMENTS, application_name: ' ' }, /application_name: must not be empty/],
    ['ringfence-application', { ...PAYMENTS, application_name: null }, /application_name: must be a string/],
    ['ringfence-application', { ...PAYMENTS, application_name: 5 }, /application_name: must be a string/],
    ['ringfence-application', { ...PAYMENTS, application_name: 'x'.repeat(256) }, /application_name: at most 255/],
    ['review-before-provisioning', PAYMENTS, /"application_name": unknown argument; it takes none/],
    ['quarterly-compliance-review', { framework: 'pci' }, /framework: one of pci-dss, dora/],
    ['ringfence', PAYMENTS, /There is no prompt "ringfence". Prompts: ringfence-application/],
    ['__proto__', PAYMENTS, /There is no prompt/],
  ]
  for (const [name, args, message] of cases) {
    const { error } = await get(name, args)
    t.equal(error.code, -32602, `${name} ${JSON.stringify(args)}`.slice(0, 100))
    partial(t, error.message, message)
  }
})

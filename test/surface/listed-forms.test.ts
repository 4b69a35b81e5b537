/** What the instructions and the descriptions say can be said through the schemas of the list (D243). */
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { INSTRUCTIONS } from '../../plugins/mcp/instructions.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { IN_INSTRUCTIONS } from '../../tools/catalogue/portable-schema.js'
import { listTool } from '../../plugins/mcp/list-tools.js'
import { tools } from '../../tools/index.js'

interface Listed {
  type: string
  description?: string
  enum?: string[]
  items?: Listed
  anyOf?: Listed[]
  properties?: Record<string, Listed>
}

const listed = tools.map((tool) => ({
  tool,
  input: listTool(catalogueOf([tool])[0]!).inputSchema as unknown as Listed,
}))
const argumentsOf = ({ properties = {} }: Listed) => Object.entries(properties)

/** Every part of a schema, with its path. */
function* walk(schema: Listed, path: string): Generator<[string, Listed]> {
  yield [path, schema]
  if (schema.items !== undefined) yield* walk(schema.items, `${path}[]`)
  for (const [name, part] of argumentsOf(schema)) yield* walk(part, `${path}.${name}`)
}

/** Every property in a schema, those of all its alternatives included. */
function* propertiesIn(schema: Listed): Generator<[string, Listed]> {
  for (const [name, part] of argumentsOf(schema)) {
    yield [name, part]
    yield* propertiesIn(part)
  }
  if (schema.items !== undefined) yield* propertiesIn(schema.items)
  for (const choice of schema.anyOf ?? []) yield* propertiesIn(choice)
}

t.test('beside `exact`, what says nothing finds parts, and elsewhere the list says so', (t) => {
  const said =
    'Beside exact, a text filter without a description, or with "Contains", finds what contains it, unless exact: true.'
  t.ok(INSTRUCTIONS.join('\n').includes(said))
  /** Texts that are no filters, and filters that nobody takes for one by parts: a whole reference, and bounds. */
  const isOther = (name: string) =>
    ['cursor', 'start_date', 'end_date', 'policy_version', 'href'].includes(name) || /_(?:gte|lte|before)$/.test(name)
  for (const { tool, input } of listed) {
    const findsParts = (name: string) =>
      /^Contains\b/.test((tool.input.properties as Record<string, { description?: string }>)[name]!.description ?? '')
    const texts = argumentsOf(input).filter(([, { type, enum: values }]) => type === 'string' && values === undefined)
    const saysSo = ({ description }: Listed) =>
      description === undefined ? input.properties?.exact !== undefined : /^Contains\b/.test(description)
    for (const [name, schema] of texts)
      if (!isOther(name) && (findsParts(name) || input.properties?.exact !== undefined))
        t.equal(saysSo(schema), findsParts(name), `${tool.name}: ${name}`)
  }
  t.end()
})

/** How the instructions name what they explain for all tools, where that is not by the name of the argument. */
const EXPLAINED: Record<string, string> = {
  href: 'Objects are named by href or exact name, if only one has it',
  ingress_services: 'A service is {port, proto, to_port?}',
  name: 'Objects are named by href or exact name, if only one has it',
  proto: '(proto 6 is tcp, 17 udp; in traffic its name)',
  ruleset_name: 'Objects are named by href or exact name, if only one has it',
  service: '{service: "NAME"}',
}

t.test('a description that the instructions replace is explained there', (t) => {
  const text = INSTRUCTIONS.join('\n')
  for (const name of [...Object.keys(IN_INSTRUCTIONS), 'detail_level'])
    t.ok(text.includes(EXPLAINED[name] ?? `${name}: `), name)
  const described = tools.flatMap(({ input }) => [...propertiesIn(input as unknown as Listed)])
  for (const [name, description] of Object.entries(IN_INSTRUCTIONS))
    t.ok(
      described.some(([one, schema]) => one === name && schema.description === description),
      `an argument ${name} has that description`,
    )
  t.end()
})

t.test('the instructions are as long as clients that shorten them show', (t) => {
  // Claude Code cuts what is longer (D258).
  t.ok(INSTRUCTIONS.join('\n').length <= 2048, `${INSTRUCTIONS.join('\n').length} characters`)
  t.end()
})

/** Something in braces or in quotes. */
const FORM = /\{[^}]*\}|"[^"]*"/g
const inRule = (part: object) => ({
  ruleset_href: '/orgs/1/sec_policy/draft/rule_sets/1',
  providers: ['ams'],
  consumers: ['ams'],
  ingress_services: [{ service: 'S' }],
  ...part,
})
const service = (one: object) => ['create-rule', inRule({ ingress_services: [one] })] as const
const actor = (one: string) => ['create-rule', inRule({ consumers: [one] })] as const
/** A call for each form that the instructions name. */
const CALLS: Record<string, readonly [tool: string, args: object]> = {
  '"key=value"': ['get-workloads', { labels: ['app=pay'] }],
  '"!key=value"': actor('!app=pay'),
  '"iplist:NAME"': actor('iplist:Office'),
  '"labelgroup:NAME"': actor('labelgroup:Web'),
  '"workload:NAME"': actor('workload:web-1'),
  '"ams"': actor('ams'),
  '{port, proto, to_port?}': service({ port: 80, proto: 6, to_port: 90 }),
  '{service: "NAME"}': service({ service: 'SSH' }),
  '{href}': service({ href: '/orgs/1/sec_policy/draft/services/2' }),
  '{service: "All Services"}': service({ service: 'All Services' }),
  '"name"': ['get-workloads', { fields: ['name'] }],
}
/** What is quoted and no form. */
const WORDS = ['"Contains"']

t.test('the forms that the instructions name are valid', (t) => {
  const ajv = new Ajv2020({ strict: true })
  const found = INSTRUCTIONS.join('\n').match(FORM)!
  t.same(
    found.filter((form) => !WORDS.includes(form) && CALLS[form] === undefined),
    [],
    'each has a call here',
  )
  for (const [form, [name, args]] of Object.entries(CALLS))
    t.ok(ajv.validate(listed.find(({ tool }) => tool.name === name)!.input, args), form)
  t.end()
})

t.test('a form in a description is one that the schema beside it takes', (t) => {
  for (const { tool, input } of listed)
    for (const [path, schema] of walk(input, tool.name)) {
      let one = schema
      while (one.items !== undefined) one = one.items
      for (const form of schema.description?.match(FORM) ?? []) {
        const names = [...form.matchAll(/\b([a-z_]+)\??(?=[,:}])/g)].map(([, name]) => name!)
        const fits = form.startsWith('{')
          ? one.type === 'object' && names.every((name) => one.properties?.[name] !== undefined)
          : one.type === 'string'
        t.ok(fits, `${path} (${one.type}): ${form}`)
      }
    }
  t.end()
})

/** A client that compares arguments with the list can send back what answers show (D243). */
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { listTool } from '../../plugins/mcp/list-tools.js'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const ajv = new Ajv2020({ strict: true })
const isListed = (name: string, args: Json): boolean =>
  ajv.validate(listTool(catalogueOf(tools).find((tool) => tool.name === name)!).inputSchema, args)

const ESTATE = handMade({
  hosts: {
    'web-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: 'full' },
    'odd-1': { ip: '10.0.2.1', labels: 'app=odd env=prod role=api', mode: 'full' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod role=api', mode: 'full' },
  },
  services: {
    ports: { service_ports: [{ port: 80, to_port: 90, proto: 6 }, { proto: 47 }, { proto: 1, icmp_type: 8 }] },
    windows: { windows_services: [{ service_name: 'W3SVC', port: 80, proto: 6 }] },
  },
  ruleSets: [
    {
      name: 'pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'app=crm', to: 'role=web', services: [{ port: 443, proto: 6 }], extra: true }],
    },
  ],
})

// A blank at the end, which no text can say.
for (const label of ESTATE.labels) if (label.value === 'odd') label.value = 'odd '

t.test('services, and the ports of rules', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const listsOf = async (name: string) => {
    const {
      href: _href,
      name: _name,
      description: _none,
      ...lists
    } = (await bench.ok('get-services', { name, exact: true })).services[0]
    return lists as object
  }
  for (const name of ['ports', 'windows']) {
    const made = { name: `${name} again`, ...(await listsOf(name)) }
    t.ok(isListed('create-service', made), JSON.stringify(made))
    await bench.ok('create-service', made)
    const { update_type: _new, ...lists } = (await listsOf(made.name)) as Json
    t.same({ name: made.name, ...lists }, made)
  }
  for (const detail_level of ['standard', 'full']) {
    const rulesOf = async () => (await bench.ok('get-rulesets', { name: 'pay', detail_level })).rulesets[0]
    const { href, rules } = await rulesOf()
    const rule = {
      ruleset_href: href,
      providers: ['ams'],
      consumers: ['ams'],
      ingress_services: rules[0].ingress_services,
    }
    t.ok(isListed('create-rule', rule), JSON.stringify(rule))
    await bench.ok('create-rule', rule)
    t.same((await rulesOf()).rules.at(-1).ingress_services, rule.ingress_services)
  }
})

t.test('the domain names of an IP list, with their descriptions', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const fqdns = [{ fqdn: 'a.example.com', description: 'the first' }, { fqdn: '*.example.org' }]
  const made = { name: 'Names', ip_ranges: [{ from_ip: '10.9.0.1' }], fqdns }
  t.ok(isListed('create-iplist', made))
  await bench.ok('create-iplist', made)
  const shown = async () => (await bench.ok('get-iplists', { name: 'Names' })).ip_lists[0]
  const more = { name: 'Names', fqdns: [...(await shown()).fqdns, { fqdn: 'b.example.com' }] }
  t.ok(isListed('update-iplist', more))
  await bench.ok('update-iplist', more)
  const last = { name: 'Names', add_fqdns: [{ fqdn: 'c.example.com', description: 'the last' }] }
  t.ok(isListed('edit-ip-list-ranges', last))
  await bench.ok('edit-ip-list-ranges', last)
  t.same((await shown()).fqdns, [...fqdns, { fqdn: 'b.example.com' }, ...last.add_fqdns])
})

t.test('what suggest-rule suggests', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const ends = { source: 'crm-1', destination: 'web-1' }
  for (const [asked, creates] of [
    [{ ...ends, port: 8443, proto: 'tcp' }, ['create_rule']],
    [{ ...ends, proto: 'gre' }, ['create_service', 'create_rule']],
    [{ ...ends, proto: '50' }, ['create_service', 'create_rule']],
    [{ ...ends, source: '198.51.100.7', port: 22, proto: 'tcp' }, ['create_iplist', 'create_rule']],
    // A label that no text can say.
    [{ ...ends, source: 'odd-1', port: 22, proto: 'tcp' }, ['create_rule']],
    [{ source: 'web-1', destination: 'odd-1', port: 22, proto: 'tcp' }, ['create_ruleset']],
    [{ source: 'web-1', destination: 'crm-1', port: 22, proto: 'tcp' }, ['create_ruleset']],
  ] as const) {
    const { suggestion } = await bench.ok('suggest-rule', asked)
    const calls = Object.entries<Json>(suggestion).filter(([key]) => key.startsWith('create_'))
    t.same(
      calls.map(([key]) => key),
      creates,
    )
    for (const [key, args] of calls)
      t.ok(isListed(key.replace('_', '-'), args), `${JSON.stringify(args)} ${ajv.errorsText()}`)
  }
})

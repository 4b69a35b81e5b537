/**
 * Two objects of a name, for every argument of every tool: it is refused with both, or the answer has both. Arguments come from the
 * contract and their forms from the schemas, so that a new tool is tried without a word here.
 */
import t from 'tap'
import { Value } from '@sinclair/typebox/value'
import { tools } from '../../tools/index.js'
import { CONTRACT } from '../surface/contract.js'
import type { Json } from './harness.js'
import { startListed } from './listed-pce.js'

const ORG = '/orgs/1'
const DRAFT = `${ORG}/sec_policy/draft`
const twins = (path: string, one: object = {}, other: object = one): Json[] => [
  { href: `${path}/101`, name: 'twin', description: 'the first', ...one },
  { href: `${path}/102`, name: 'twin', description: 'the second', ...other },
]
const labels = ['app=pay', 'env=prod', 'app=twin', 'env=twin'].map((text, at) => ({
  href: `${ORG}/labels/${at + 1}`,
  key: text.split('=')[0],
  value: text.split('=')[1],
}))
const host = (address: string) => ({
  managed: true,
  enforcement_mode: 'visibility_only',
  labels: [] as object[],
  interfaces: [{ name: 'eth0', address }],
})
const rule = { enabled: true, providers: [{ actors: 'ams' }], consumers: [{ actors: 'ams' }], ingress_services: [] }
const set = {
  enabled: true,
  scopes: [labels.slice(0, 2).map(({ href }) => ({ label: { href } }))],
  rules: [],
  deny_rules: [],
}
const ALL = { href: `${DRAFT}/services/1`, name: 'All Services', service_ports: [{ proto: -1 }] }
const LISTS = {
  labels,
  workloads: [
    { ...host('10.0.0.3'), href: `${ORG}/workloads/1`, name: 'pay-1', hostname: 'pay-1', labels: labels.slice(0, 2) },
    // Nothing but the name of one and the host name of the other is equal.
    { ...host('10.0.0.1'), href: `${ORG}/workloads/101`, name: 'twin', hostname: null, managed: false },
    { ...host('10.0.0.2'), href: `${ORG}/workloads/102`, name: null, hostname: 'twin' },
  ],
  'sec_policy/ip_lists': twins(`${DRAFT}/ip_lists`, { ip_ranges: [{ from_ip: '10.1.0.0/16' }], fqdns: [] }),
  'sec_policy/services': [ALL, ...twins(`${DRAFT}/services`, { service_ports: [{ port: 1, proto: 6 }] })],
  'sec_policy/rule_sets': [{ href: `${DRAFT}/rule_sets/1`, name: 'Pay', ...set }, ...twins(`${DRAFT}/rule_sets`, set)],
  'sec_policy/label_groups': [
    { href: `${DRAFT}/label_groups/1`, name: 'Pay', key: 'app', labels: [] },
    ...twins(`${DRAFT}/label_groups`, { key: 'app', labels: [] }),
  ],
  'sec_policy/virtual_services': [
    { href: `${DRAFT}/virtual_services/1`, name: 'Pay', labels: [], service_ports: [{ port: 1, proto: 6 }] },
    ...twins(`${DRAFT}/virtual_services`, { labels: [] }),
  ],
  'sec_policy/virtual_servers': twins(`${DRAFT}/virtual_servers`, { labels: [] }),
  container_clusters: twins(`${ORG}/container_clusters`),
  pairing_profiles: twins(`${ORG}/pairing_profiles`, { labels: [] }),
  vens: twins(`${ORG}/vens`, { labels: [] }),
  // upgrade-vens refuses any other release before it looks for VENs.
  'software/ven/releases': [{ href: `${ORG}/software/ven/releases/25.2.20-118`, release: '25.2.20-118' }],
  sec_policy: [1, 2, 3].map((version) => ({ href: `${ORG}/sec_policy/${version}`, version })),
}
const OBJECTS = {
  'sec_policy/pending': { ip_lists: twins(`${DRAFT}/ip_lists`, { update_type: 'update' }) },
  ...Object.fromEntries(
    ['sec_rules', 'deny_rules'].map((kind) => {
      const path = `sec_policy/draft/rule_sets/1/${kind}/1`
      return [path, { ...rule, href: `${ORG}/${path}` }]
    }),
  ),
}

/** What a call says beside the argument that is tried, by the names of arguments that a tool or an entry requires. */
const REQUIRED: Record<string, unknown> = {
  ...{
    name: 'other',
    key: 'app',
    value: 'pay',
    app_name: 'pay',
    env_name: 'prod',
    version: 3,
    from: 1,
    rule_type: 'allow',
  },
  ...{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 5, proto: 'tcp' }], scopes: [['app=pay']] },
  services: [{ port: 5, proto: 'tcp' }],
  ...{ ip_addresses: ['10.0.0.9'], ip_ranges: [{ from_ip: '10.9.0.0/16' }], from_ip: '10.9.0.0/16', fqdn: 'a.test' },
  ...{ source: '10.0.0.3', destination: '10.0.0.3', proto: 'tcp', port: 5, enforcement_mode: 'full' },
  ...{ pce_host: 'pce.test', pce_port: 1, pce_org_id: 1, api_key: 'a', api_secret: 'b' },
  apps: [{ app_name: 'pay', env_name: 'prod' }],
  virtual_service: 'Pay',
  display_name: 'Other',
  ...{ status: 'suspended', firewall_restore: 'saved', release: '25.2.20-118' },
  profile_href: `${ORG}/container_clusters/1/container_workload_profiles/1`,
}

const NAMED_PAY = new Set(['update-ruleset', 'update-label-group', 'update-virtual-service'])

/** What a call says beside its required arguments, so that it comes to look for what the argument that is tried names. */
function alongside(tool: string, takes: object, tried: string): Record<string, unknown> {
  const labelling = { ...(tried !== 'csv' && { set: ['env=prod'] }) }
  return {
    ...('ruleset_href' in takes && !tried.startsWith('ruleset') && { ruleset_name: 'Pay' }),
    ...('source' in takes && { port: 443 }),
    ...('selective' in takes && { selective: true }),
    ...('add_ranges' in takes && { add_ranges: ['10.9.0.0/16'] }),
    ...(tool === 'label-workloads' && labelling),
    ...(/^(?:update|delete)-(?:sec|deny)-rule$/.test(tool) && {
      href: `${DRAFT}/rule_sets/1/${tool.slice(7, -5)}_rules/1`,
    }),
    ...(NAMED_PAY.has(tool) && tried !== 'name' && { name: 'Pay' }),
    ...('new_name' in takes && tried === 'name' && { new_name: 'other' }),
  }
}

/** The forms of references, by the arguments that take them in whichever tool. Any other argument is no reference by name. */
const FORMS: Record<string, string> = {
  'providers consumers provider consumer actor': 'workload iplist labelgroup',
  'include_sources exclude_sources include_destinations exclude_destinations': 'workload iplist labelgroup',
  'source destination': 'name workload iplist',
  'scopes labels': 'labelgroup',
  'ingress_services egress_services service services deny_service': 'name',
  'ruleset_name rule_set container_cluster workloads csv virtual_service sub_groups': 'name',
  applies_to: 'name workload',
}

/** Tools of which `labels` are those that workloads are looked for by, in the form of a list alone. */
const FILTERED = new Set(['find-listeners', 'get-compatibility-reports', 'find-stale-vens'])

/** The forms in which an argument of a tool refers to objects. */
function formsOf(tool: string, path: string): string[] {
  const { arguments: takes, mutating } = CONTRACT[tool]!
  const argument = path.split('.').at(-1)!
  if (argument === 'name') return 'href' in takes && (mutating || 'kind' in takes) ? ['name'] : []
  // A table to import says what is to be. A row whose name two workloads have is a conflict, and is not written.
  if (tool === 'import-workloads') return []
  if (tool === 'update-label-group' && ['add', 'remove'].includes(argument)) return ['labelgroup']
  // The rule set of a closure has no scope, so that those of this name that have one are in its way, and none is meant.
  if (tool === 'plan-port-closure' && argument === 'ruleset_name') return []
  // Where a call is about an application, so are its sources.
  if (argument === 'exclude_sources' && !('include_sources' in takes)) return []
  // Labels to have are labels, and so are those that rules are looked for by. Those that workloads are looked for by may be a group.
  const isFilter = takes['labels']?.type === 'string | array' || FILTERED.has(tool)
  if (argument === 'labels' && !isFilter && !path.includes('.')) return []
  const [, forms = ''] = Object.entries(FORMS).find(([names]) => names.split(' ').includes(argument)) ?? []
  return forms.split(' ').filter(Boolean)
}

/** Arguments whose text names no object, in any tool. */
const NEVER =
  /(?:^|\.)(?:description|new_name|hostname|proto|\w*process(?:_name)?|service_name|user_name|query_name|text|author|cursor|fields|\w+_[gl]te|\w+_date|since|until|ip_address\w*|fqdns?|from_ip|to_ip|api_\w+|external\w+|\w*version|\w*token|key|value|\w*href\w*)$/

type Schema = Json

/** Every value of this schema in which one text stands, with the path to it. */
function* shapes(schema: Schema, text: string, path: string): Generator<{ path: string; value: unknown }> {
  if (schema.type === 'string' && schema.const === undefined && schema.enum === undefined)
    yield { path, value: path === 'csv' ? `name,env\n${text},prod\n` : text }
  for (const one of schema.anyOf ?? []) yield* shapes(one, text, path)
  if (schema.type === 'array')
    for (const inner of shapes(schema.items, text, path)) yield { path: inner.path, value: [inner.value] }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const others = (schema.required ?? []).filter((other: string) => other !== name)
    const filled = {
      ...Object.fromEntries(others.map((other: string) => [other, REQUIRED[other]])),
      ...('selective' in schema.properties && { selective: true }),
    }
    for (const inner of shapes(property, text, `${path}.${name}`))
      yield { path: inner.path, value: { ...filled, [name]: inner.value } }
  }
}

/** The hrefs of all twins without the last digit, in any version. */
const PAIRS = Object.values(LISTS)
  .flat()
  .flatMap(({ href }) => (href.endsWith('/101') ? [href.slice(0, -1).replace('/draft/', '/[a-z0-9]+/')] : []))
const has = (text: string, stem: string, digit: number) => new RegExp(`${stem}${digit}(?![0-9])`).test(text)
const halvesIn = (text: string) => PAIRS.filter((stem) => has(text, stem, 1) !== has(text, stem, 2))

/** The error in an answer that lists candidates, of a call or of one of its entries. */
function findCandidates(answer: Json): Json {
  if (typeof answer !== 'object' || answer === null) return undefined
  return Array.isArray(answer.candidates) ? answer : Object.values(answer).map(findCandidates).find(Boolean)
}

/** What is wrong with a refusal that should list exactly two objects, with what tells them apart. */
function faultOf({ candidates: [one, other, ...more] }: Json): string | undefined {
  const isPair = PAIRS.some((stem) => has(one?.href, stem, 1) && has(other?.href, stem, 2))
  if (!isPair || more.length > 0) return 'is not about both'
  const differs = Object.keys({ ...one, ...other }).some((field) => field !== 'href' && one[field] !== other[field])
  return differs ? undefined : 'does not tell them apart'
}

t.test('two objects of a name are refused with both, or both are answered', async (t) => {
  const bench = await startListed(t, { lists: LISTS, objects: OBJECTS })
  const faults: string[] = []
  for (const [tool, { arguments: takes, mutating }] of Object.entries(CONTRACT)) {
    const { properties } = tools.find(({ name }) => name === tool)!.input as Schema
    const required = Object.entries(takes).flatMap(([name, one]) => (one.required ? [[name, REQUIRED[name]]] : []))
    const refusing = new Map<string, Set<string>>()
    for (const [argument, schema] of Object.entries<Schema>(properties))
      for (const form of ['name', 'workload', 'iplist', 'labelgroup'])
        for (const { path, value } of shapes(schema, form === 'name' ? 'twin' : `${form}:twin`, argument)) {
          refusing.set(path, refusing.get(path) ?? new Set())
          if (NEVER.test(path) || !Value.Check(schema, value)) continue
          for (const kind of (argument === 'name' && takes['kind']?.enum) || [null]) {
            const others = { ...Object.fromEntries(required), ...alongside(tool, takes, argument) }
            const before = bench.sent().length
            const answer = await bench.answer(tool, { ...others, ...(kind && { kind }), [argument]: value })
            const sent = bench.sent().slice(before)
            const wrote = sent.filter((request) => !/^(?:GET|POST \S*async_queries)/.test(request))
            const refusal = findCandidates(answer)
            // Whoever creates is told of one that has the name, and a search by its own name beside that of its host means it alone.
            const isOne = answer.error === 'already_exists' || (!mutating && argument === 'name' && 'hostname' in takes)
            const half = isOne ? [] : halvesIn(JSON.stringify(answer) + sent.join(' '))
            const fault =
              refusal !== undefined
                ? (faultOf(refusal) ?? (wrote.length > 0 ? `wrote ${wrote.join(', ')}` : undefined))
                : half.length > 0
                  ? `means one alone: ${half.join(', ')}`
                  : undefined
            if (refusal !== undefined) refusing.get(path)!.add(form)
            if (fault !== undefined)
              faults.push(`${tool} ${path} ${form} ${kind ?? ''} ${fault}: ${JSON.stringify(answer).slice(0, 300)}`)
          }
        }
    for (const [path, forms] of refusing) {
      const wanted = formsOf(tool, path)
      if (String(wanted) !== String([...forms]))
        faults.push(`${tool} ${path} refuses ${[...forms].join()}, not ${wanted.join()}`)
    }
  }
  t.same(faults, [])
})

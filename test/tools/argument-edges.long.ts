/**
 * What no argument of the tools beyond the contract may be: of another type, empty, out of range, of an unknown word, hidden characters, the name
 * of nothing, of several, or a part of a name. Each refusal names the argument, and nothing is written.
 */
import type { TSchema } from '@sinclair/typebox'
import t from 'tap'
import { isInDefault, type AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const BEYOND = tools.filter((tool) => !isInDefault(tool))

/** Values that a schema refuses, and texts that are none. Null is refused only where nothing can be left out (D242). */
function badValues(schema: TSchema, isRequired: boolean): unknown[] {
  const kinds = ((schema.anyOf as TSchema[] | undefined) ?? [schema]).map((one) => one.type as string | undefined)
  const isWord =
    schema.enum !== undefined || (schema.anyOf as TSchema[] | undefined)?.every((one) => one.const !== undefined)
  const wrong = [{}, [{ no: 1 }], null, true, 5, 'x'].filter((value) => {
    const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    return (
      (value !== null || isRequired) &&
      !kinds.includes(type) &&
      !(type === 'number' && kinds.includes('integer')) &&
      kinds.every((kind) => kind !== undefined)
    )
  })
  const numbers = kinds.includes('integer') || kinds.includes('number') ? [-1, 1.5, 1e15, Number.MAX_SAFE_INTEGER] : []
  const texts = kinds.includes('string') ? (isWord === true ? ['no-such-word', ''] : TEXTS) : []
  const lists = kinds.includes('array') ? [[5], [null], [''], ['  '], ['no-such-item'], [HIDDEN]] : []
  return [...wrong, ...numbers, ...texts, ...lists]
}
const HIDDEN = 'pay\u0000\u202Eyap\u200B'
const TEXTS = ['', '   ', HIDDEN, 'no-such-thing', '/orgs/1/no_such_things/1']

const outcome = async (bench: Bench, name: string, args: object): Promise<Json> => {
  try {
    return { ok: await bench.ok(name, args) }
  } catch (error) {
    const text = (error as Error).message
    return JSON.parse(text.slice(text.indexOf('{')))
  }
}

/** Filters and words that are compared as they are: whatever is in them, there is nothing that has it. */
const COMPARED = new Set([
  'account',
  'activation_type',
  'active_pce_fqdn',
  'author',
  'client_type',
  'condition',
  'description',
  'display_name',
  'hostname',
  'key',
  'name',
  'network',
  'new_name',
  'os',
  'process',
  'process_name',
  'text',
  'user_name',
  'windows_service_name',
])
/** Arguments that name what a call makes, so that any visible text is one. */
const NEW_NAMES: Record<string, string> = { 'plan-port-closure': 'ruleset_name' }
/** Names of what exists in the estate, where the example has none. */
const NAMED: Record<string, object> = { 'create-rule': { ruleset_name: 'Core services' } }

/** The tools that write objects: what their examples name is there before, and what they create has a new name in each call. */
const OBJECTS = new Set(tools.filter(({ toolset }) => toolset === 'objects-plus').map(({ name }) => name))
function forObjects(tool: AnyTool, call: number): object {
  if (!OBJECTS.has(tool.name)) return {}
  // An example that is a dry run would write nothing, whatever is wrong.
  if (!tool.name.startsWith('create-') || tool.name === 'create-pairing-key') return { dry_run: false }
  return 'key' in tool.input.properties && !('name' in tool.input.properties)
    ? { key: `new-${call}`, display_name: `New ${call}`, dry_run: false }
    : { name: `New ${call}`, dry_run: false }
}
async function makeObjects({ pce, simulator }: Bench): Promise<void> {
  const ports = { service_ports: [{ port: 443, proto: 6 }] }
  for (const name of ['NonProd', 'Retired environments']) await pce.labelGroups.create({ name, key: 'env' })
  for (const name of ['web frontend', 'retired frontend']) await pce.virtualServices.create({ name, ...ports })
  for (const name of ['Web servers', 'Retired servers'])
    await pce.pairingProfiles.create({ name, enabled: true, key_lifespan: 60 })
  await pce.labelDimensions.create({ key: 'retired', display_name: 'Retired' })
  await pce.provisionPolicyChanges('Objects', simulator.state.pendingHrefs())
}

const nameIn = (example: { name?: string }) => example.name

/** A name or a value as messages quote it. */
function quoted(value: unknown): string {
  const [one] = Array.isArray(value) ? (value as unknown[]) : [value]
  return one === HIDDEN ? 'pay⟨U+0000⟩⟨U+202E⟩yap⟨U+200B⟩' : JSON.stringify(String(one)).slice(1, -1)
}

for (const tool of BEYOND)
  t.test(tool.name, async (t) => {
    const bench = await startBench(t, { workloads: 60, flows: 100 })
    if (OBJECTS.has(tool.name)) {
      await makeObjects(bench)
      bench.writes()
    }
    let calls = 0
    for (const [name, schema] of Object.entries(tool.input.properties)) {
      for (const value of badValues(schema, tool.input.required?.includes(name) === true)) {
        const what = `${name}: ${JSON.stringify(value)}`
        const more = { ...NAMED[tool.name], ...forObjects(tool, (calls += 1)) }
        const answer = await outcome(bench, tool.name, { ...tool.example, ...more, [name]: value })
        const writes = bench.writes().length
        if (answer.ok !== undefined) {
          t.ok(
            COMPARED.has(name) ||
              (tool.effect === 'write' && ['add_fqdns', 'remove_fqdns'].includes(name)) ||
              (NEW_NAMES[tool.name] === name && (value as string).trim() !== '' && value !== HIDDEN),
            `accepted: ${what}`,
          )
          // The example names it in the calls that follow.
          if (name === 'new_name')
            await outcome(bench, tool.name, { ...tool.example, ...more, name: value, new_name: nameIn(tool.example) })
          bench.writes()
          continue
        }
        t.equal(writes, 0, `${what}: nothing is written`)
        t.not(answer.error, 'internal', what)
        const { message, argument, arguments: several, problems } = answer
        const said = JSON.stringify([message, argument, several, problems])
        t.ok(said.includes(name) || said.includes(quoted(value)), `${what}: ${answer.error}: ${message}`)
      }
    }
  })

/** Names of which one is a part of another, and two that several have. */
const ESTATE = handMade({
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'pay-10': { ip: '10.0.0.10', labels: 'app=pay2 env=prod' },
    twin: { ip: '10.0.9.9', labels: 'app=pay env=prod' },
  },
  ipLists: { Office: ['192.168.0.0/16'], 'Office 2': ['172.16.0.0/16'] },
  services: {
    web: { service_ports: [{ port: 443, proto: 6 }] },
    'web 2': { service_ports: [{ port: 8443, proto: 6 }] },
  },
  ruleSets: [
    { name: 'Pay', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams', services: ['web'] }] },
    { name: 'Pay test', scope: 'app=pay2 env=prod' },
  ],
})
const FLOW = { source: 'pay-1', destination: 'pay-10', port: 443, proto: 'tcp' }
const RULE = {
  ruleset_name: 'Pay',
  rule_type: 'allow',
  providers: ['ams'],
  consumers: ['ams'],
  ingress_services: 'web',
}
const MODE = { enforcement_mode: 'full' }

/** A part of a name, a name in another case, an unknown one, and one that several have. */
const NO_NAMES: [tool: string, args: object, code: string][] = [
  ...['pay', 'pay-', 'PAY-1'].flatMap((name): [string, object, string][] => [
    ['explain-flow', { ...FLOW, source: name }, 'not_found'],
    ['suggest-rule', { ...FLOW, destination: name }, 'not_found'],
    ['find-rules', { applies_to: name }, 'not_found'],
    ['preview-enforcement-change', { workloads: [name], ...MODE }, 'not_found'],
    ['set-enforcement-mode', { workloads: ['pay-1', name], ...MODE }, 'not_found'],
    ['label-workloads', { workloads: ['pay-1', name], set: ['app=pay2'] }, 'not_found'],
    ['unpair-vens', { workloads: ['pay-1', name], firewall_restore: 'saved' }, 'not_found'],
    ['set-ven-status', { workloads: ['pay-1', name], status: 'suspended' }, 'not_found'],
    ['create-rule', { ...RULE, consumers: [`workload:${name}`] }, 'not_found'],
    ['who-changed', { name, kind: 'workload' }, 'not_found'],
  ]),
  ...['twin'].flatMap((name): [string, object, string][] => [
    ['explain-flow', { ...FLOW, source: name }, 'ambiguous_name'],
    ['find-rules', { applies_to: name }, 'ambiguous_name'],
    ['preview-enforcement-change', { workloads: [name], ...MODE }, 'ambiguous_name'],
    ['set-enforcement-mode', { workloads: ['pay-1', name], ...MODE }, 'ambiguous_name'],
    ['label-workloads', { workloads: ['pay-1', name], set: ['app=pay2'] }, 'ambiguous_name'],
    ['unpair-vens', { workloads: ['pay-1', name], firewall_restore: 'saved' }, 'ambiguous_name'],
    ['set-ven-status', { workloads: ['pay-1', name], status: 'suspended' }, 'ambiguous_name'],
    ['create-rule', { ...RULE, consumers: [`workload:${name}`] }, 'ambiguous_name'],
    ['who-changed', { name, kind: 'workload' }, 'ambiguous_name'],
  ]),
  ...['Offic', 'office', 'Office 3'].flatMap((name): [string, object, string][] => [
    ['explain-flow', { ...FLOW, source: `iplist:${name}` }, 'not_found'],
    ['edit-ip-list-ranges', { name, add_ranges: ['10.1.0.0/16'] }, 'not_found'],
    ['find-rules', { actor: `iplist:${name}` }, 'not_found'],
    ['create-rule', { ...RULE, consumers: [`iplist:${name}`] }, 'not_found'],
    ['who-changed', { name, kind: 'ip_list' }, 'not_found'],
  ]),
  ...['Pa', 'pay', 'Pay tes'].flatMap((name): [string, object, string][] => [
    ['create-rule', { ...RULE, ruleset_name: name }, 'not_found'],
    ['find-redundant-rules', { rule_set: name }, 'not_found'],
    ['who-changed', { name, kind: 'rule_set' }, 'not_found'],
  ]),
  ...['app=pa', 'app=PAY', 'app=pay3'].flatMap((label): [string, object, string][] => [
    ['explain-flow', { ...FLOW, source: label }, 'label_not_found'],
    ['find-rules', { actor: label }, 'label_not_found'],
    ['label-workloads', { workloads: ['pay-1'], set: [label] }, 'label_not_found'],
    ['get-vens', { labels: [label] }, 'unresolved_label_filter'],
    ['ven-health-report', { labels: [label] }, 'unresolved_label_filter'],
    ['find-stale-vens', { labels: [label] }, 'unresolved_label_filter'],
    ['get-compatibility-reports', { labels: [label] }, 'unresolved_label_filter'],
    ['find-unlabelled-workloads', { labels: [label] }, 'unresolved_label_filter'],
    ['get-label-groups', { label }, 'unresolved_label_filter'],
  ]),
  ['create-rule', { ...RULE, ingress_services: 'we' }, 'invalid_ingress_services'],
  ['find-rules', { service: 'we' }, 'invalid_argument'],
  ['compare-policy-versions', { from: 9 }, 'not_found'],
  ['restore-policy-version', { version: 9 }, 'not_found'],
  ['discard-draft-changes', { hrefs: ['/orgs/1/sec_policy/draft/rule_sets/99'] }, 'not_pending'],
]

t.test('names are whole names of one thing', async (t) => {
  const workloads = ESTATE.workloads.map((one) => ({ ...one }))
  const twin = { ...workloads[2]!, href: workloads[2]!.href.replace(/.$/, '9') }
  const bench = await startBench(t, { estate: { ...ESTATE, workloads: [...workloads, twin] } })
  for (const [name, args, code] of NO_NAMES) {
    const answer = await outcome(bench, name, args)
    t.equal(answer.error, code, `${name} ${JSON.stringify(args)}: ${answer.message}`)
    t.same(bench.writes(), [], 'nothing is written')
  }
})

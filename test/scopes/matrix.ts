/**
 * What scopes say of each tool that changes something: its arguments about what is inside, outside and half inside, for
 * the matrix of `matrix.test.ts`. A call that succeeds needs objects of its own for each role, which are named after the
 * tool and the role; `estate` and `prepare` make them.
 */
import type { Json } from '../contract/authenticated-service.js'
import { createPceClient } from '../../pce-client/index.js'
import type { PceSimulator } from '../../pce-simulator/index.js'
import type { ScopeRule } from '../../domain/scopes/place.js'
import { handMade, type HandMadeHost } from '../tools/hand-made.js'

export const ROLES = ['reader', 'operator', 'admin'] as const
const TAGS = ['operator', 'admin'] as const
export type Tag = (typeof TAGS)[number]

/** The groups of the callers. A stranger's group is in no entry. What is outside has `MARK` in its name. */
export const GROUPS = {
  payments: { scopes: [{ app: 'payments' }] },
  limited: { scopes: [{ app: 'payments' }], reads: 'scoped' },
  creating: {
    scopes: [{ app: 'payments' }],
    create: ['ip_lists', 'services', 'labels', 'label_groups', 'pairing_profiles'],
  },
  core: { scopes: '*' },
}
export type Group = keyof typeof GROUPS | 'strangers'

type Args = Record<string, unknown>
/** What the arguments need to know of the estate. */
export interface Known {
  tag: Tag
  href: (ruleSet: string) => string
  ruleOf: (ruleSet: string, kind: 'rules' | 'deny_rules') => string
  release: string
  /** The hrefs of everything that is pending now. */
  pending: () => string[]
  /** The container workload profile that gives these labels. */
  profile: (app: string) => string
}

type Unseen = readonly [outside: Told, half?: Told]
/** An error, `reads` for the condition of `out_of_scope`, or `done` for what has no error; absent as others are told. */
type Told = 'not_found' | 'not_pending' | 'invalid_argument' | 'reads' | 'done'
const ABSENT: Unseen = ['not_found']
const BOTH_ABSENT: Unseen = ['not_found', 'not_found']

/** How scopes limit a tool. */
export type Entry =
  /** Each object that it writes is inside or not. `half` is a call only a part of which is inside. */
  | {
      is: 'placed'
      rule: ScopeRule
      inside: (known: Known) => Args
      outside: (known: Known) => Args
      half: ((known: Known) => [Args, ScopeRule]) | 'one object is inside or not'
      /** What a limited reader is told of the calls outside and half inside, for whom what is outside does not exist. */
      unseen?: Unseen
    }
  /** Its objects have no scope. `creates` if the file can allow it. */
  | { is: 'unscoped'; creates?: true; args: (known: Known) => Args }
  /** It writes only what is the caller's own on this server. */
  | { is: 'own' }

const IN = ['app=payments', 'env=prod']
const OUT = ['app=shop', 'env=prod']
const RULE = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 22, proto: 'tcp' }] }
const PORTS = { service_ports: [{ port: 443, proto: 'tcp' }] }
const EXPIRED = '[expires: 2020-01-31]'
/** Tools that write to a rule set, each with one of its own for each role. */
const ON_RULE_SETS = [
  'create-deny-rule',
  'create-rule',
  'delete-deny-rule',
  'delete-ruleset',
  'delete-sec-rule',
  'discard-draft-changes',
  'provision-policy',
  'restore-policy-object',
  'retire-expired',
  'update-deny-rule',
  'update-ruleset',
  'update-sec-rule',
]
const ON_WORKLOADS = [
  'bind-workloads',
  'delete-workload',
  'label-workloads',
  'request-ven-support-reports',
  'set-enforcement-mode',
  'set-ven-status',
  'unpair-vens',
  'update-workload',
  'upgrade-vens',
]
const ON_VIRTUAL_SERVICES = ['delete-virtual-service', 'update-virtual-service']
/** Objects without a scope, that other tools change or delete. */
const UNSCOPED = ['update', 'delete']

const onRules = (kind: 'rules' | 'deny_rules', tool: string, more: Args): Entry => ({
  is: 'placed',
  rule: 'rule_set_scope',
  inside: ({ tag, ruleOf }) => ({ href: ruleOf(`${tool}-${tag}`, kind), ...more }),
  outside: ({ ruleOf }) => ({ href: ruleOf('FOREIGN set', kind), ...more }),
  half: ({ ruleOf }) => [{ href: ruleOf('Both', kind), ...more }, 'rule_set_scope'],
  unseen: ABSENT,
})

const onRuleSet = (tool: string, key: string, more: Args): Entry => ({
  is: 'placed',
  rule: 'rule_set_scope',
  inside: ({ tag }) => ({ [key]: `${tool}-${tag}`, ...more }),
  outside: () => ({ [key]: 'FOREIGN set', ...more }),
  half: () => [{ [key]: 'Both', ...more }, 'rule_set_scope'],
  unseen: ABSENT,
})

const onWorkloads = (tool: string, more: (known: Known) => Args): Entry => ({
  is: 'placed',
  rule: 'workload_labels',
  inside: (known) => ({ workloads: [`${tool}-${known.tag}`], ...more(known) }),
  outside: (known) => ({ workloads: ['FOREIGN-1'], ...more(known) }),
  half: (known) => [{ workloads: [`${tool}-${known.tag}`, 'FOREIGN-1'], ...more(known) }, 'workload_labels'],
  unseen: BOTH_ABSENT,
})

const onPending = (tool: string): Entry => ({
  is: 'placed',
  rule: 'rule_set_scope',
  inside: ({ tag, href }) => ({ hrefs: [href(`${tool}-${tag}`)] }),
  outside: ({ href }) => ({ hrefs: [href('FOREIGN set')] }),
  half: ({ tag, href }) => [{ hrefs: [href(`${tool}-${tag}`), href('FOREIGN set')] }, 'rule_set_scope'],
  unseen: ['not_pending', 'not_pending'],
})

const unscoped = (args: (known: Known) => Args): Entry => ({ is: 'unscoped', args })
const creating = (args: (known: Known) => Args): Entry => ({ is: 'unscoped', creates: true, args })

export const ENTRIES: Record<string, Entry> = {
  'bind-workloads': {
    is: 'placed',
    rule: 'virtual_service',
    inside: ({ tag }) => ({ virtual_service: 'own', workloads: [`bind-workloads-${tag}`] }),
    outside: () => ({ virtual_service: 'FOREIGN service', workloads: ['FOREIGN-1'] }),
    half: ({ tag }) => [
      { virtual_service: 'own', workloads: [`bind-workloads-${tag}`, 'FOREIGN-1'] },
      'workload_labels',
    ],
    unseen: BOTH_ABSENT,
  },
  'create-deny-rule': onRuleSet('create-deny-rule', 'ruleset_name', RULE),
  'create-iplist': creating(({ tag }) => ({ name: `new ${tag}`, ip_ranges: [{ from_ip: '192.0.2.0/24' }] })),
  'create-label': creating(({ tag }) => ({ key: 'role', value: `new-${tag}` })),
  'create-label-dimension': unscoped(({ tag }) => ({ key: `new${tag}`, display_name: `New ${tag}` })),
  'create-label-group': creating(({ tag }) => ({ name: `new ${tag}`, labels: ['app=payments'] })),
  'create-pairing-key': unscoped(() => ({ name: 'update' })),
  'create-pairing-profile': creating(({ tag }) => ({ name: `new ${tag}`, labels: IN })),
  'create-ringfence': {
    is: 'placed',
    rule: 'rule_set_scope',
    inside: ({ tag }) => ({ app_name: 'payments', env_name: tag === 'admin' ? 'prod' : 'dev' }),
    outside: () => ({ app_name: 'shop', env_name: 'prod' }),
    half: 'one object is inside or not',
    unseen: ['reads'],
  },
  'create-rule': onRuleSet('create-rule', 'ruleset_name', RULE),
  'create-ruleset': {
    is: 'placed',
    rule: 'rule_set_scope',
    inside: ({ tag }) => ({ name: `new ${tag}`, scopes: [IN] }),
    outside: () => ({ name: 'new', scopes: [OUT] }),
    half: () => [{ name: 'new', scopes: [IN, OUT] }, 'rule_set_scope'],
  },
  'create-service': creating(({ tag }) => ({ name: `new ${tag}`, ...PORTS })),
  'create-virtual-service': {
    is: 'placed',
    rule: 'virtual_service',
    inside: ({ tag }) => ({ name: `new ${tag}`, labels: IN, ...PORTS }),
    outside: () => ({ name: 'new', labels: OUT, ...PORTS }),
    half: () => [{ name: 'new', labels: IN, ...PORTS, ip_overrides: ['10.1.0.1'] }, 'address_taken'],
  },
  'create-workload': {
    is: 'placed',
    rule: 'workload_labels',
    inside: ({ tag }) => ({
      name: `new-${tag}`,
      labels: IN,
      ip_addresses: [tag === 'admin' ? '10.9.0.1' : '10.9.0.2'],
    }),
    outside: () => ({ name: 'new', labels: OUT, ip_addresses: ['10.9.0.3'] }),
    half: () => [{ name: 'new', labels: IN, ip_addresses: ['10.1.0.1'] }, 'address_taken'],
  },
  'delete-deny-rule': onRules('deny_rules', 'delete-deny-rule', {}),
  'delete-iplist': unscoped(() => ({ name: 'delete' })),
  'delete-label': unscoped(() => ({ key: 'role', value: 'delete' })),
  'delete-label-dimension': unscoped(() => ({ key: 'delete' })),
  'delete-label-group': unscoped(() => ({ name: 'delete' })),
  'delete-pairing-keys': unscoped(() => ({ name: 'update' })),
  'delete-pairing-profile': unscoped(() => ({ name: 'delete' })),
  'delete-pce-credentials': { is: 'own' },
  'delete-ruleset': onRuleSet('delete-ruleset', 'name', {}),
  'delete-sec-rule': onRules('rules', 'delete-sec-rule', {}),
  'delete-service': unscoped(() => ({ name: 'delete' })),
  'delete-virtual-service': {
    is: 'placed',
    rule: 'virtual_service',
    inside: ({ tag }) => ({ name: `delete-virtual-service-${tag}` }),
    outside: () => ({ name: 'FOREIGN service' }),
    half: () => [{ name: 'shared' }, 'virtual_service'],
    unseen: ABSENT,
  },
  'delete-workload': {
    is: 'placed',
    rule: 'workload_labels',
    inside: ({ tag }) => ({ name: `delete-workload-${tag}` }),
    outside: () => ({ name: 'FOREIGN-2' }),
    half: 'one object is inside or not',
    unseen: ABSENT,
  },
  'discard-draft-changes': onPending('discard-draft-changes'),
  'edit-ip-list-ranges': unscoped(() => ({ name: 'update', add_ranges: [{ from_ip: '203.0.113.0/24' }] })),
  'import-workloads': {
    is: 'placed',
    rule: 'workload_labels',
    inside: ({ tag }) => ({ csv: csvOf(`imported-${tag},10.9.1.${tag === 'admin' ? 1 : 2},payments`) }),
    outside: () => ({ csv: csvOf('imported,10.9.1.3,shop') }),
    half: () => [{ csv: csvOf('imported,10.9.1.3,payments', 'other,10.9.1.4,shop') }, 'workload_labels'],
  },
  'label-workloads': onWorkloads('label-workloads', () => ({ set: ['env=dev'] })),
  'plan-port-closure': unscoped(() => ({ services: [{ port: 22, proto: 6 }] })),
  'provision-policy': onPending('provision-policy'),
  'register-pce-credentials': { is: 'own' },
  'request-ven-support-reports': onWorkloads('request-ven-support-reports', () => ({})),
  'restore-policy-object': onRuleSet('restore-policy-object', 'name', { kind: 'rule_sets', version: 2 }),
  'restore-policy-version': unscoped(({ pending }) => ({ version: 1, drop_pending: pending() })),
  'retire-expired': {
    is: 'placed',
    rule: 'rule_set_scope',
    inside: ({ tag, ruleOf }) => ({ hrefs: [ruleOf(`retire-expired-${tag}`, 'rules')] }),
    outside: ({ ruleOf }) => ({ hrefs: [ruleOf('FOREIGN set', 'rules')] }),
    half: ({ tag, ruleOf }) => [
      { hrefs: [ruleOf(`retire-expired-${tag}`, 'rules'), ruleOf('FOREIGN set', 'rules')] },
      'rule_set_scope',
    ],
    unseen: ['invalid_argument', 'invalid_argument'],
  },
  'ringfence-batch': {
    is: 'placed',
    rule: 'rule_set_scope',
    inside: () => ({ apps: [{ app_name: 'payments', env_name: 'test' }] }),
    outside: () => ({ apps: [{ app_name: 'shop', env_name: 'prod' }] }),
    half: () => [
      {
        apps: [
          { app_name: 'payments', env_name: 'test', ruleset_name: 'half' },
          { app_name: 'shop', env_name: 'prod' },
        ],
      },
      'rule_set_scope',
    ],
    unseen: ['done', 'done'],
  },
  'set-enforcement-mode': onWorkloads('set-enforcement-mode', () => ({ enforcement_mode: 'full' })),
  'set-ven-status': onWorkloads('set-ven-status', () => ({ status: 'suspended' })),
  'unpair-vens': onWorkloads('unpair-vens', () => ({ firewall_restore: 'saved' })),
  'update-container-workload-profile': {
    is: 'placed',
    rule: 'profile_labels',
    inside: ({ tag, profile }) => ({
      profile_href: profile('payments'),
      enforcement_mode: tag === 'admin' ? 'full' : 'selective',
    }),
    outside: ({ profile }) => ({ profile_href: profile('shop'), enforcement_mode: 'full' }),
    half: ({ profile }) => [{ profile_href: profile('payments'), assign_labels: OUT }, 'profile_labels'],
    unseen: ABSENT,
  },
  'update-deny-rule': onRules('deny_rules', 'update-deny-rule', { enabled: false }),
  'update-iplist': unscoped(({ tag }) => ({ name: 'update', description: tag })),
  'update-label': unscoped(() => ({
    key: 'role',
    value: 'update',
    external_data_set: 'x',
    external_data_reference: 'y',
  })),
  'update-label-dimension': unscoped(() => ({ key: 'loc', display_name: 'Site' })),
  'update-label-group': unscoped(() => ({ name: 'update', description: 'x' })),
  'update-pairing-profile': unscoped(() => ({ name: 'update', description: 'x' })),
  'update-ruleset': onRuleSet('update-ruleset', 'name', { description: 'changed' }),
  'update-sec-rule': onRules('rules', 'update-sec-rule', { enabled: false }),
  'update-service': unscoped(() => ({ name: 'update', description: 'x' })),
  'update-virtual-service': {
    is: 'placed',
    rule: 'virtual_service',
    inside: ({ tag }) => ({ name: `update-virtual-service-${tag}`, description: 'changed' }),
    outside: () => ({ name: 'FOREIGN service', description: 'changed' }),
    half: ({ tag }) => [{ name: `update-virtual-service-${tag}`, labels: OUT }, 'virtual_service'],
    unseen: ABSENT,
  },
  'update-workload': {
    is: 'placed',
    rule: 'workload_labels',
    inside: ({ tag }) => ({ name: `update-workload-${tag}`, description: 'changed' }),
    outside: () => ({ name: 'FOREIGN-1', description: 'changed' }),
    half: ({ tag }) => [{ name: `update-workload-${tag}`, labels: OUT }, 'workload_labels'],
    unseen: ABSENT,
  },
  'upgrade-vens': onWorkloads('upgrade-vens', ({ release }) => ({ release })),
}

const csvOf = (...rows: string[]) => ['name,ip_addresses,app,env', ...rows.map((row) => `${row},prod`)].join('\n')

/** The estate of the matrix. */
export function estate() {
  const names = ON_WORKLOADS.flatMap((tool) => TAGS.map((tag) => `${tool}-${tag}`))
  const own: Record<string, HandMadeHost> = Object.fromEntries(
    names.map((name, at) => [
      name,
      { ip: `10.0.0.${at + 1}`, labels: 'app=payments env=prod', managed: !name.startsWith('delete-') },
    ]),
  )
  const rules = {
    allow: [{ from: 'ams', to: 'ams', services: [{ port: 443, proto: 6 }], description: EXPIRED }],
    deny: [{ from: 'ams', to: 'ams', services: [{ port: 23, proto: 6 }] }],
  }
  return handMade({
    hosts: {
      ...own,
      dev1: { ip: '10.0.1.1', labels: 'app=payments env=dev' },
      test1: { ip: '10.0.1.2', labels: 'app=payments env=test' },
      'FOREIGN-1': { ip: '10.1.0.1', labels: 'app=shop env=prod' },
      'FOREIGN-2': { ip: '10.1.0.2', labels: 'app=shop env=prod', managed: false },
    },
    labels: UNSCOPED.map((value) => `role=${value}`),
    ipLists: Object.fromEntries(UNSCOPED.map((name) => [name, ['198.51.100.0/24']])),
    services: Object.fromEntries(UNSCOPED.map((name) => [name, { service_ports: [{ port: 8443, proto: 6 }] }])),
    ruleSets: [
      { name: 'FOREIGN set', scope: 'app=shop env=prod', ...rules },
      ...ON_RULE_SETS.flatMap((tool) =>
        TAGS.map((tag) => ({ name: `${tool}-${tag}`, scope: 'app=payments env=prod', ...rules })),
      ),
    ],
  })
}

/**
 * Makes the rest of the estate: what the words of the hand-made estate do not have, provisioned as version 2, and
 * changes of the platform team that are pending. `call` calls tools as the platform team.
 */
export async function prepare(
  simulator: PceSimulator,
  call: (tool: string, args: object) => Promise<Json>,
): Promise<Omit<Known, 'tag'>> {
  const { protocol, hostname, port } = new URL(simulator.url)
  const pce = createPceClient({ url: `${protocol}//${hostname}`, port })
  pce.setCredentials(simulator.credentials.key, simulator.credentials.secret)
  pce.setTlsSettings(false)
  const ruleSets = await pce.ruleSets.getAll()
  const hrefs = new Map(ruleSets.map(({ name, href }) => [name, href]))
  const both = await call('create-ruleset', { name: 'Both', scopes: [IN, OUT], rules: [RULE] })
  hrefs.set('Both', both.ruleset.href as string)
  await call('create-deny-rule', { ruleset_name: 'Both', ...RULE })
  const virtual = [...ON_VIRTUAL_SERVICES.flatMap((tool) => TAGS.map((tag) => `${tool}-${tag}`)), 'own', 'shared']
  for (const name of virtual) await call('create-virtual-service', { name, labels: IN, ...PORTS })
  await call('create-virtual-service', { name: 'FOREIGN service', labels: OUT, ...PORTS })
  for (const name of UNSCOPED) {
    await call('create-label-group', { name, labels: ['app=payments'] })
    await call('create-pairing-profile', { name })
  }
  await call('create-label-dimension', { key: 'delete', display_name: 'Deleted' })
  await call('provision-policy', { all_pending: true })
  await call('bind-workloads', { virtual_service: 'shared', workloads: ['FOREIGN-1'] })
  const pending = ['discard-draft-changes', 'provision-policy', 'restore-policy-object']
  for (const name of ['FOREIGN set', 'Both', ...pending.flatMap((tool) => TAGS.map((tag) => `${tool}-${tag}`))])
    await call('update-ruleset', { name, description: 'pending' })
  const profiles = new Map<string, string>()
  const cluster = await pce.post('/container_clusters', { json: { name: 'cluster' } })
  const { href: at } = cluster.json<{ href: string }>()
  const labels = await pce.labels.getAll()
  for (const app of ['payments', 'shop']) {
    const assigned = [`app=${app}`, 'env=prod'].map((text) =>
      labels.find(({ key, value }) => `${key}=${value}` === text),
    )
    const made = await pce.post(`${at}/container_workload_profiles`, {
      includeOrg: false,
      json: {
        name: app === 'shop' ? 'FOREIGN profile' : app,
        managed: true,
        assign_labels: assigned.map((label) => ({ href: label!.href })),
      },
    })
    profiles.set(app, made.json<{ href: string }>().href)
  }
  const releases = await pce.get('/software/ven/releases')
  const [{ release = '' } = {}] = releases.json<{ release: string }[]>()
  pce.close()
  const draft = (name: string) => simulator.state.find(hrefs.get(name)!) as Record<string, { href: string }[]>
  return {
    release,
    pending: () => simulator.state.pendingHrefs(),
    href: (name) => hrefs.get(name)!,
    ruleOf: (name, kind) => draft(name)[kind]![0]!.href,
    profile: (app) => profiles.get(app)!,
  }
}

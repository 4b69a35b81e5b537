/** How many requests a call of each tool beyond the contract sends to the PCE, on an estate made to need many, at two sizes. */
import t, { type Test } from 'tap'
import { isInDefault } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const FLOW = { source: 'src-1', destination: 'dst-1', port: 5432, proto: 'tcp' }

/**
 * `n` rule sets, each with a rule about one flow that names a workload, a label group, an IP list and a service of its own, was written by
 * one of `authors`, and is changed in the draft; `n` groups, each inside the next.
 */
async function startCrowd(t: Test, n: number, authors: number): Promise<Bench> {
  const each = Array.from({ length: n }, (_, at) => at)
  const mode = 'visibility_only' as const
  const estate = handMade({
    hosts: {
      'src-1': { ip: '10.0.0.1', labels: 'app=src env=prod loc=here', mode: 'full' },
      'dst-1': { ip: '10.0.0.2', labels: 'app=dst env=prod', mode: 'full' },
      ...Object.fromEntries(
        each.map((at) => [`named-${at}`, { ip: `10.0.1.${at}`, labels: 'app=named env=prod', mode }]),
      ),
    },
    ipLists: Object.fromEntries(each.map((at) => [`List ${at}`, [`192.168.${at}.0/24`]])),
    services: Object.fromEntries(each.map((at) => [`Service ${at}`, { service_ports: [{ port: 5432, proto: 6 }] }])),
    flows: [{ from: 'src-1', to: 'dst-1', port: 5432 }],
    ruleSets: each.map((at) => ({
      name: `Set ${at}`,
      scope: '',
      allow: [{ from: 'app=src', to: 'app=dst', services: [`Service ${at}`], extra: true, enabled: false }],
      deny: [{ from: 'app=src', to: 'app=dst', services: [`Service ${at}`], extra: true }],
    })),
  })
  const userOf = (at: number) => ({ href: `/users/${(at % authors) + 1}` })
  const { workloads, ruleSets } = estate
  const bench = await startBench(t, {
    estate: {
      ...estate,
      users: each
        .slice(0, authors)
        .map((at) => ({ ...userOf(at), username: `user-${at}@example.com`, full_name: `User ${at}` })),
      ruleSets: ruleSets.map((set, at) => {
        const more = (rule: Json) => ({
          ...rule,
          updated_by: userOf(at),
          consumers: [...rule.consumers, { workload: { href: workloads[at + 2]!.href } }, listOf(at)],
        })
        return { ...set, rules: set.rules!.map(more), deny_rules: set.deny_rules!.map(more) }
      }),
    },
  })
  const here = (await bench.pce.labels.getAll()).find(({ value }) => value === 'here')!.href
  let inner: string | undefined
  for (const at of each) {
    const sub_groups = inner === undefined ? [] : [{ href: inner }]
    inner = (
      await bench.pce.labelGroups.create({ name: `Group ${at}`, key: 'loc', labels: [{ href: here }], sub_groups })
    ).href
  }
  for (const set of bench.simulator.state.find(`${DRAFT}/rule_sets`) as unknown as Json[])
    for (const [kind, rules] of [
      ['rules', set.rules],
      ['denyRules', set.deny_rules],
    ] as const)
      for (const rule of rules)
        await bench.pce[kind as 'rules'].update(rule.href, {
          consumers: [...rule.consumers, { label_group: { href: inner! } }],
        })
  return bench
}
const listOf = (at: number) => ({ ip_list: { href: `${DRAFT}/ip_lists/${at + 2}` } })

/** As releases that keep deny rules apart from rule sets. */
function keepApart({ simulator }: Bench): void {
  for (const version of [
    'draft',
    'active',
    ...Array.from({ length: simulator.state.policyVersion }, (_, at) => at + 1),
  ]) {
    const path = `/orgs/1/sec_policy/${version}/rule_sets`
    const bare = (simulator.state.find(path) as unknown as Json[]).map(({ deny_rules: _apart, ...set }) => set)
    const answer = { kind: 'status', status: 200, method: 'GET', times: 10_000 } as const
    simulator.faults.add({ ...answer, path: new RegExp(`${path}$`), body: bare })
    for (const set of bare) simulator.faults.add({ ...answer, path: new RegExp(`${set.href}$`), body: set })
  }
}

interface Case {
  args: object | ((n: number) => object)
  /** What the contract allows beyond its number for `n` of each thing. */
  and: (n: number) => number
  /** The same for a dry run, where that is more. */
  dry?: (n: number) => number
  /** What comes with each of a few that are in the number. */
  each?: number
  before?: (bench: Bench) => Promise<unknown>
}
const DRY_RUN = { dry_run: true }
/** Of preview-enforcement-change. */
const PREVIEW = 14
/** Of the traffic that a dry run of a change of policy reads, and of the draft. */
const OBSERVED = 12
const NOTHING = () => 0
const FEW = [0, 1, 2, 3, 4]
const names = (n: number) => Array.from({ length: n }, (_, at) => `named-${at}`)
const NAMED_APP = { app_name: 'named', env_name: 'prod', enforcement_mode: 'full' }
const provision = ({ pce, simulator }: Bench) => pce.provisionPolicyChanges('x', simulator.state.pendingHrefs())
const editList = ({ pce }: Bench) => pce.ipLists.update(`${DRAFT}/ip_lists/2`, { description: 'edited' })
const groups = (n: number) => Array.from({ length: n }, (_, at) => `Group ${at}`)
const profile = ({ pce }: Bench) => pce.pairingProfiles.create({ name: 'Old', enabled: true, key_lifespan: 60 })
/** A virtual service in force. */
async function offer(bench: Bench): Promise<void> {
  await bench.pce.virtualServices.create({ name: 'Offer', service: { href: `${DRAFT}/services/2` } })
  await provision(bench)
}
/** Of `n` groups inside each other. */
const deepest = (n: number) => [`labelgroup:Group ${n - 1}`]

/** Each rule set has two rules: one that allows, and is off, and one that denies. Both name its workload. */
const CASES: Record<string, Record<string, Case>> = {
  'explain-flow': {
    'two workloads': { args: FLOW, and: (n) => 3 * n },
    'many pairs': { args: { ...FLOW, source: 'env=prod' }, and: (n) => 3 * n },
  },
  // The deny rules of each rule set are read in the policy in force.
  'compare-traffic': { 'since yesterday': { args: {}, and: (n) => n } },
  'identity-reach': { 'the widest': { args: {}, and: (n) => n } },
  'exposure-report': {
    'named services': { args: (n) => ({ services: names(n).map((_, at) => `Service ${at}`) }), and: (n) => 2 * n },
  },
  'plan-port-closure': {
    'named services': { args: (n) => ({ services: names(n).map((_, at) => `Service ${at}`) }), and: (n) => 6 * n },
  },
  'suggest-rule': { 'two workloads': { args: FLOW, and: (n) => 4 * n } },
  'find-rules': {
    'all are read': { args: { applies_to: 'src-1', actor: 'iplist:List 0' }, and: (n) => 2 * n },
    'the PCE searches': { args: { consumer: 'app=src', provider: 'app=dst', service: 'Service 0' }, and: () => 1 },
  },
  'preview-enforcement-change': {
    'an application': { args: NAMED_APP, and: (n) => n },
    'by name': { args: (n) => ({ workloads: names(n), enforcement_mode: 'full' }), and: (n) => 3 * n },
  },
  'set-enforcement-mode': {
    'an application': { args: NAMED_APP, and: NOTHING, dry: (n) => PREVIEW + n },
    'by name': {
      args: (n) => ({ workloads: names(n), enforcement_mode: 'full' }),
      and: (n) => 3 * n,
      dry: (n) => PREVIEW + 3 * n,
    },
  },
  'set-ven-status': {
    'by name': {
      args: (n) => ({ workloads: names(n), status: 'suspended' }),
      and: (n) => 6 * n,
      dry: (n) => PREVIEW + 6 * n,
    },
  },
  'unpair-vens': {
    'by name': {
      args: (n) => ({ workloads: names(n), firewall_restore: 'saved' }),
      and: (n) => 5 * n,
      dry: (n) => PREVIEW + 5 * n,
    },
  },
  'upgrade-vens': {
    'by name': { args: (n) => ({ workloads: names(n), release: '25.2.20-118' }), and: (n) => 5 * n },
  },
  'request-ven-support-reports': { 'by name': { args: (n) => ({ workloads: names(n) }), and: (n) => 5 * n } },
  'create-rule': {
    'many consumers': {
      args: (n) => ({
        ruleset_name: 'Set 0',
        rule_type: 'allow',
        providers: ['labelgroup:Group 0'],
        consumers: [...names(n).map((name) => `workload:${name}`), 'iplist:List 0'],
        ingress_services: ['Service 0'],
      }),
      and: (n) => 3 * (n + 3),
      // The labels of five at most are read, which are in the number.
      each: 1,
    },
    'a deny': {
      args: {
        ruleset_name: 'Set 0',
        rule_type: 'deny',
        providers: ['app=dst'],
        consumers: ['app=src'],
        ingress_services: ['Service 0'],
      },
      and: () => 3 * 3,
      // The deny rules of 20 rule sets at most are read for the comparison, which are in the number.
      each: 1,
      // Deny rules kept apart are read in the draft and, as something is pending, in the policy in force.
      dry: (n) => 3 * 3 + OBSERVED + 2 * n,
    },
  },
  'edit-ip-list-ranges': {
    // Two rules use it, which name a workload and a service.
    'a list in rules': {
      args: { name: 'List 0', add_ranges: ['172.16.0.0/12'] },
      and: (n) => 2 * n + 2 * 2,
      dry: (n) => 2 * n + 2 * 2 + OBSERVED + 2 * n,
    },
  },
  'get-ip-list-matches': { 'a version': { args: { address: '10.0.0.0/8', policy_version: 1 }, and: NOTHING } },
  'get-label-groups': { 'by label': { args: { label: 'loc=here' }, and: (n) => n } },
  'list-policy-versions': {
    'the first page': { args: {}, and: NOTHING },
    'by author': { args: { author: 'nobody' }, and: NOTHING },
  },
  'compare-policy-versions': { 'with the draft': { args: { from: 'active', to: 'draft' }, and: (n) => 4 * n } },
  'who-changed': {
    'an application': { args: { application: 'src|prod' }, and: (n) => 1 + n + 2 * n },
    'a rule set': { args: { name: 'Set 0', kind: 'rule_set' }, and: () => 1 + 1 },
  },
  'resolve-policy': { 'an application': { args: { application: 'src|prod' }, and: (n) => n } },
  // Rule sets whose deny rules are apart in the draft and in the active policy, and the workloads that rules name.
  'review-draft': { 'all that is pending': { args: {}, and: (n) => 4 * n } },
  'retire-expired': {
    // All rules are over. Deny rules are apart in the draft and in the active policy, and each rule set names its workload.
    'all rules': {
      async before({ pce, simulator }) {
        for (const set of simulator.state.find(`${DRAFT}/rule_sets`) as unknown as Json[])
          for (const { href } of [...set.rules, ...set.deny_rules])
            await pce.put(href, { includeOrg: false, json: { description: '[expires: 2026-01-01]', enabled: true } })
      },
      args: {},
      and: (n) => 2 * n * 6 + 2 * n + 2 * n,
    },
  },
  'discard-draft-changes': {
    // The rule sets, the groups and a list; two of the kinds that rules name are read object by object.
    everything: { args: { all: true }, and: (n) => 2 * (2 * n + 1) + 2 * n + 4 * n, each: 2, before: editList },
  },
  'restore-policy-version': {
    'to the first': { args: { version: 1 }, and: (n) => 2 * n + 3 * n, before: provision },
  },
  'restore-policy-object': {
    // Its two rules differ; they name a workload, a list, a service and, in the draft, groups inside each other.
    'a rule set': {
      args: { version: 1, name: 'Set 0', kind: 'rule_sets' },
      and: (n) => 2 * n + 2 + 2 * 3,
      before: provision,
    },
  },
  'find-unused': { 'all kinds': { args: {}, and: (n) => n + 3 * n } },
  'find-redundant-rules': { 'one rule set': { args: { rule_set: 'Set 0' }, and: (n) => n } },
  'find-unlabelled-workloads': {
    'in a label group': { args: (n) => ({ labels: deepest(n), missing: ['role'] }), and: (n) => n - 1 },
  },
  'label-workloads': {
    'by name': {
      args: (n) => ({ workloads: names(n), set: [`role=new`, 'loc=new'], create_missing_labels: true }),
      // Ten at most are asked for, read again and read back one by one, and are in the number.
      and: (n) => 2 + 1 + Math.max(0, n - 10),
      each: 4,
    },
  },
  'import-workloads': {
    'new and known': {
      async before({ pce }) {
        for (const at of FEW)
          await pce.workloads.create({ name: `u-${at}`, interfaces: [{ name: 'eth0', address: `10.0.3.${at}` }] })
      },
      args: (n) => ({
        rows: [
          ...FEW.map((at) => ({ name: `u-${at}`, labels: ['role=new', 'loc=new'] })),
          ...names(n).map((name, at) => ({
            name: `new-${name}`,
            ip_addresses: [`10.0.2.${at}`],
            labels: ['role=new'],
          })),
        ],
        create_missing_labels: true,
      }),
      // Two labels, and a request each that creates and changes.
      and: () => 2 + 2,
      dry: (n) => 2 + 2 + n,
    },
  },
  'find-listeners': { 'in a label group': { args: (n) => ({ labels: deepest(n) }), and: (n) => 2 * n } },
  'find-stale-vens': { 'in a label group': { args: (n) => ({ labels: deepest(n) }), and: (n) => 3 * n } },
  'find-duplicate-workloads': { 'all kinds': { args: {}, and: (n) => 2 * n } },
  'create-label-group': {
    'of groups': { args: (n) => ({ name: 'New', sub_groups: groups(n) }), and: (n) => 2 * n },
  },
  'update-label-group': {
    // It is in all the others, and so in every rule; each names a workload, a list and a service of its own.
    'in every rule': {
      args: { name: 'Group 0', remove: ['loc=here'] },
      and: NOTHING,
      dry: (n) => 2 * n + 6 * n + OBSERVED + 2 * n,
    },
    'new groups': {
      before: ({ pce }) => pce.labelGroups.create({ name: 'Spare', key: 'loc' }),
      args: (n) => ({ name: 'Spare', add: groups(n).map((name) => `labelgroup:${name}`) }),
      and: (n) => 2 * n,
      dry: (n) => 2 * n + OBSERVED + 2 * n,
    },
  },
  'delete-label-group': {
    'a spare one': {
      before: ({ pce }) => pce.labelGroups.create({ name: 'Spare', key: 'loc' }),
      args: { name: 'Spare' },
      and: NOTHING,
      dry: (n) => 2 * n,
    },
  },
  'create-virtual-service': { 'of a service': { args: { name: 'New', service: 'Service 0' }, and: NOTHING } },
  'update-virtual-service': {
    'its ports': {
      before: offer,
      args: { name: 'Offer', service_ports: [{ port: 80, proto: 6 }] },
      and: NOTHING,
      dry: (n) => 2 * n,
    },
  },
  'delete-virtual-service': {
    'a spare one': { before: offer, args: { name: 'Offer' }, and: NOTHING, dry: (n) => 2 * n },
  },
  'bind-workloads': {
    'by name': {
      before: offer,
      args: (n) => ({ virtual_service: 'Offer', workloads: names(n) }),
      and: (n) => 3 * n + 1,
      dry: (n) => 3 * n + 2 * n,
    },
  },
  'delete-label-dimension': {
    'a spare one': {
      before: ({ pce }) => pce.labelDimensions.create({ key: 'bu', display_name: 'Unit' }),
      args: { key: 'bu' },
      and: (n) => 2 * n,
    },
  },
  'create-pairing-profile': { plain: { args: { name: 'Web' }, and: NOTHING, dry: (n) => n } },
  'create-pairing-key': { 'one that expires': { before: profile, args: { name: 'Old' }, and: NOTHING } },
  'delete-pairing-keys': { 'one with keys': { before: profile, args: { name: 'Old' }, and: NOTHING } },
  'delete-pairing-profile': { 'a spare one': { before: profile, args: { name: 'Old' }, and: NOTHING } },
  'get-compatibility-reports': { 'by name': { args: (n) => ({ workloads: names(n) }), and: (n) => 4 * n } },
  'get-vens': { 'in a label group': { args: (n) => ({ labels: deepest(n) }), and: (n) => n - 1 } },
  'ven-health-report': { 'in a label group': { args: (n) => ({ labels: deepest(n) }), and: (n) => n - 1 } },
}

/** Whether a running query is done: not counted. */
const POLLS = /\/traffic_flows\/async_queries\/[^/]+$|\/jobs\/[^/]+$/

async function countRequests(
  t: Test,
  name: string,
  { args, before }: Pick<Case, 'args' | 'before'>,
  { n, authors = 2 }: { n: number; authors?: number },
  more: object = {},
): Promise<number> {
  const bench = await startCrowd(t, n, authors)
  await before?.(bench)
  keepApart(bench)
  bench.advance(61_000)
  bench.simulator.clearRequests()
  await bench.ok(name, { ...(typeof args === 'function' ? (args as (n: number) => object)(n) : args), ...more })
  return bench.simulator.requests.filter(({ path }) => !POLLS.test(path)).length
}

for (const tool of tools.filter((one) => !isInDefault(one)))
  t.test(tool.name, async (t) => {
    const { name, example } = tool
    const { atMost, and: growth } = tool.pceRequests!
    const cases = CASES[name] ?? { 'its example': { args: example, and: NOTHING } }
    t.ok(name in CASES || growth === undefined, 'what sends more on a larger estate has cases of its own')
    for (const [what, one] of Object.entries(cases))
      for (const more of 'dry_run' in tool.input.properties ? [{}, DRY_RUN] : [{}]) {
        const [few, many] = [2, 8]
        const sent = await Promise.all([few, many].map((n) => countRequests(t, name, one, { n }, more)))
        const and = (more === DRY_RUN ? one.dry : undefined) ?? one.and
        for (const [at, n] of [few, many].entries())
          t.ok(sent[at]! <= atMost + and(n), `${what}: ${sent[at]} requests, ${atMost} and ${and(n)} at most`)
        const further = and(many) - and(few) + (one.each ?? 0) * (many - few)
        t.ok(sent[1]! - sent[0]! <= further, `${what}: ${sent.join(', then ')}, and ${further} more at most`)
      }
  })

/** The most authors that are asked for, and as many kinds of pairs as there are. */
t.test('a flow of many pairs, with rules by everybody', async (t) => {
  const args = { ...FLOW, source: 'env=prod', destination: 'env=prod' }
  const { atMost } = tools.find(({ name }) => name === 'explain-flow')!.pceRequests!
  const n = 24
  const sent = await countRequests(t, 'explain-flow', { args }, { n, authors: n })
  t.ok(sent <= atMost + 3 * n, `${sent} requests`)
  t.ok(sent > atMost + 3 * n - 16, `close to what is allowed: ${sent}`)
})

t.test('one write for each thousand workloads', async (t) => {
  for (const [size, writes] of [
    [1000, 1],
    [2001, 3],
  ] as const) {
    const hosts = Object.fromEntries(
      Array.from({ length: size }, (_, at) => {
        return [`h-${at}`, { ip: `10.${at >> 8}.${at & 255}.1`, labels: 'app=named env=prod' }]
      }),
    )
    const bench = await startBench(t, { estate: handMade({ hosts, labels: ['role=any'] }) })
    for (const [name, args, pages] of [
      ['set-enforcement-mode', NAMED_APP, 2],
      ['label-workloads', { selection: { labels: 'app=named' }, set: ['role=any'], max_matches: size }, 2],
    ] as const) {
      const { atMost } = tools.find((tool) => tool.name === name)!.pceRequests!
      bench.simulator.clearRequests()
      await bench.ok(name, args)
      const sent = bench.simulator.requests
      t.equal(sent.filter(({ method }) => method === 'PUT').length, writes, `${name}: ${size} workloads`)
      t.ok(sent.length <= atMost + writes - 1 + pages * Math.ceil((size - 500) / 500), `${sent.length} requests`)
    }
  }
})

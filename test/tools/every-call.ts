/**
 * Every tool called over an estate in which every text that people or machines wrote ends in a mark: in ways that succeed, in ways that
 * fail, and refused by the PCE. What leaves is handed to whoever looks at it.
 */
import type { Test } from 'tap'
import type { PceClient } from '../../pce-client/index.js'
import { generateEstate } from '../../pce-simulator/estate/generate.js'
import type { Estate } from '../../pce-simulator/model.js'
import { tools } from '../../tools/index.js'
import { startConfirming } from '../confirm/harness.js'
import { parseEvents } from '../contract/insecure-app.js'
import type { Json } from './harness.js'
import { WEEK } from './harness.js'

/** The end of every text: as it is stored, and as answers show it, which is how a client repeats it. */
export interface Mark {
  raw: string
  shown: string
}

/** A tool, calls of it that succeed, and calls that are refused. */
type Call = readonly [tool: string, good: readonly object[], bad: readonly object[]]

/** Free text of the estate, by the names of its properties. */
const WRITTEN_BY_PEOPLE = new Set([
  'name',
  'value',
  'hostname',
  'description',
  'username',
  'full_name',
  'process_name',
  'user',
  'user_name',
  'fqdn',
  'windows_service_name',
  'win_service_name',
  'service_name',
  'namespace',
  'os_detail',
  'data_center',
])
const BUILT_IN = new Set(['All Services', 'Any (0.0.0.0/0 and ::/0)', 'Default'])

const taint = (value: unknown, mark: (text: string) => string, key = ''): unknown => {
  if (typeof value === 'string')
    return WRITTEN_BY_PEOPLE.has(key) && value !== '' && !BUILT_IN.has(value) ? mark(value) : value
  if (Array.isArray(value)) return value.map((item) => taint(item, mark, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, taint(inner, mark, name)]))
}
const inCsv = (text: string) => `"${text.replaceAll('"', '""')}"`

/** The estate and the calls. */
export function markEverything({ raw: RAW, shown: SHOWN }: Mark) {
  const texts = new Set<string>()
  const mark = (text: string) => {
    texts.add(text)
    return `${text}${RAW}`
  }
  const estate = taint(generateEstate({ seed: 3, workloads: 80, flows: 800, orgId: 1 }), mark) as Estate

  /** A name as answers show it. */
  const shown = (name: string) => `${name}${SHOWN}`
  const PAYMENTS = { app_name: shown('payments'), env_name: shown('prod') }
  const FLOW = { source: `app=${shown('ordering')}`, destination: `app=${shown('payments')}`, port: 8443, proto: 'tcp' }
  /** What no object is called, so that errors say which there are. */
  const NOBODY = `payment${RAW}`
  const UNKNOWN = { app_name: NOBODY, env_name: shown('prod') }
  const PRINTER = { name: 'printer', ip_addresses: ['10.9.9.9'] }
  const DENY = {
    providers: ['ams'],
    consumers: [`app=${shown('payments')}`],
    ingress_services: [{ service: shown('SSH') }],
  }
  /** Calls of every tool: what succeeds, and what is refused for its arguments. In this order, since some undo others. */
  const callsOf = (ids: Record<'workload' | 'managed' | 'rule' | 'deny' | 'profile', string>): Call[] => [
    ['check-pce-connection', [{}], [{ [NOBODY]: 1 }]],
    ['check-pce-credentials-status', [{}], [{ [NOBODY]: 1 }]],
    ['delete-pce-credentials', [], [{}, { [NOBODY]: 1 }]],
    [
      'register-pce-credentials',
      [],
      [{ pce_host: NOBODY, pce_port: 1, pce_org_id: 1, api_key: 'k', api_secret: 's' }, { [NOBODY]: 1 }],
    ],
    ['get-server-changelog', [{}], [{ [NOBODY]: 1 }]],
    [
      'get-workloads',
      [{ detail_level: 'full', max_results: 5 }, { labels: [`app=${shown('payments')}`] }],
      [{ labels: [`app=${NOBODY}`] }, { labels: [NOBODY] }, { labels: [`${NOBODY}=x`] }],
    ],
    ['get-labels', [{}, { value: shown('payments') }], [{ key: 7 }]],
    ['get-vens', [{}, { labels: [`app=${shown('payments')}`] }], [{ labels: [NOBODY] }]],
    ['ven-health-report', [{ detail_level: 'full' }], [{ labels: [NOBODY] }]],
    ['find-stale-vens', [{ silent_days: 1 }], [{ labels: [NOBODY] }, { cursor: NOBODY }]],
    [
      'get-compatibility-reports',
      [{ labels: [`app=${shown('payments')}`], status: ['not_idle'] }, { workloads: [ids.managed] }],
      [{ labels: [NOBODY] }, { workloads: [NOBODY] }, { cursor: NOBODY }],
    ],
    [
      'set-ven-status',
      [
        { workloads: [ids.managed], status: 'suspended', dry_run: true },
        { workloads: [ids.managed], status: 'suspended' },
        { workloads: [ids.managed], status: 'active' },
      ],
      [
        { workloads: [NOBODY], status: 'active' },
        { selection: { labels: [NOBODY] }, status: 'active' },
      ],
    ],
    [
      'upgrade-vens',
      [{ workloads: [ids.managed], release: '25.2.20-118' }],
      [
        { workloads: [ids.managed], release: NOBODY },
        { workloads: [ids.workload], release: '25.2.20-118' },
      ],
    ],
    ['request-ven-support-reports', [{ workloads: [ids.managed] }], [{ workloads: [NOBODY] }]],
    [
      'unpair-vens',
      [{ workloads: [ids.managed], firewall_restore: 'saved', dry_run: true }],
      [{ workloads: [NOBODY], firewall_restore: 'saved' }],
    ],
    ['find-unlabelled-workloads', [{}], [{ missing: [NOBODY] }]],
    [
      'label-workloads',
      [
        { workloads: [ids.workload], set: [`app=${shown('payments')}`], dry_run: true },
        { workloads: [ids.workload], set: [`app=${shown('payments')}`] },
        { csv: `name,app\n${inCsv(ids.workload)},${inCsv(shown('billing'))}\n` },
      ],
      [
        { workloads: [NOBODY], set: [`app=${shown('payments')}`] },
        { workloads: [ids.workload], set: [`app=${NOBODY}`] },
        { csv: `name,app\n${inCsv(NOBODY)},x\n` },
      ],
    ],
    [
      'import-workloads',
      [
        { rows: [{ name: 'imported', ip_addresses: ['10.250.0.9'], labels: [`app=${shown('payments')}`] }] },
        { csv: `name,ip,app\nimported,10.250.0.9,${inCsv(shown('billing'))}\n`, dry_run: true },
      ],
      [
        { rows: [{ name: 'other', ip_addresses: ['10.250.0.8'], labels: [NOBODY] }] },
        { csv: `name,ip,app\nother,10.250.0.7,${inCsv(NOBODY)}\n` },
        { csv: `name,ip,${inCsv(NOBODY)}\nother,10.250.0.7,x\n` },
      ],
    ],
    ['find-duplicate-workloads', [{}], [{ cursor: NOBODY }]],
    [
      'find-listeners',
      [{ labels: [`app=${shown('payments')}`] }],
      [{ name: 'x', cursor: NOBODY }, { labels: [NOBODY] }],
    ],
    ['get-iplists', [{}], [{ cursor: NOBODY }]],
    ['get-ip-list-matches', [{ address: '10.0.0.0/8' }, { fqdn: `a${RAW}` }], [{ address: NOBODY }]],
    ['get-label-groups', [{}], [{ label: `app=${NOBODY}` }, { cursor: NOBODY }]],
    ['get-services', [{}], [{ proto: NOBODY }, { policy_version: NOBODY }]],
    ['get-rulesets', [{}], [{ cursor: NOBODY }]],
    ['get-pairing-profiles', [{}], [{ cursor: NOBODY }]],
    ['get-container-clusters', [{}], [{ cursor: NOBODY }]],
    ['get-container-workload-profiles', [{}], [{ cluster_href: NOBODY }]],
    ['get-kubernetes-workloads', [{}], [{ cluster_href: NOBODY }]],
    ['get-workload-enforcement-status', [{}, PAYMENTS], [{ app_name: NOBODY }]],
    ['get-traffic-flows', [WEEK], [{ ...WEEK, include_sources: [NOBODY] }]],
    ['get-traffic-flows-summary', [WEEK], [{ ...WEEK, include_sources: [`app=${NOBODY}`] }]],
    ['discover-process-egress', [{ lookback_days: 90 }], [{ include_sources: [NOBODY] }]],
    [
      'compare-traffic',
      [{}, { ...WEEK, group_by: ['labels', 'user_name'] }],
      [{ include_sources: [NOBODY] }, { group_by: [NOBODY] }],
    ],
    ['identity-reach', [{}, { account: shown('ops') }, { account: NOBODY }], [{ include_sources: [NOBODY] }]],
    ['exposure-report', [{}, { services: [shown('SSH')] }], [{ services: [NOBODY] }]],
    ['find-redundant-rules', [{}], [{ rule_set: NOBODY }]],
    ['find-rules', [{}, { text: shown('p') }], [{ actor: `iplist:${NOBODY}` }]],
    ['find-unused', [{}], [{ kinds: [NOBODY] }]],
    ['find-unmanaged-traffic', [{}], [{ direction: NOBODY }]],
    ['identify-infrastructure-services', [{}], [{ top_n: NOBODY }]],
    ['detect-lateral-movement-paths', [PAYMENTS], [UNKNOWN]],
    ['enforcement-readiness', [PAYMENTS], [UNKNOWN]],
    ['get-policy-coverage-report', [PAYMENTS], [UNKNOWN]],
    ['compliance-check', [{ framework: 'general', ...PAYMENTS }], [UNKNOWN]],
    [
      'explain-flow',
      [FLOW, { ...FLOW, source: ids.workload }],
      [
        { ...FLOW, source: NOBODY },
        { ...FLOW, proto: NOBODY },
      ],
    ],
    ['suggest-rule', [FLOW, { ...FLOW, source: ids.workload }], [{ ...FLOW, destination: [`app=${NOBODY}`] }]],
    ['create-label', [{ key: 'app', value: 'new' }], [{ key: 'app', value: shown('payments') }]],
    [
      'update-label',
      [{ key: 'app', value: shown('media'), new_value: 'media' }],
      [{ key: 'app', value: NOBODY, new_value: 'x' }],
    ],
    [
      'delete-label',
      [{ key: 'app', value: shown('wiki'), dry_run: true }],
      [
        { key: 'app', value: shown('payments') },
        { key: NOBODY, value: 'x' },
      ],
    ],
    ['create-label-dimension', [{ key: 'bu', display_name: 'Unit' }], [{ [NOBODY]: 1 }]],
    ['update-label-dimension', [{ key: 'bu', display_name: 'Business unit' }], [{ key: NOBODY, display_name: 'x' }]],
    ['delete-label-dimension', [{ key: 'bu' }], [{ key: 'app' }, { key: NOBODY }]],
    [
      'create-label-group',
      [{ name: 'group', description: `x${RAW}`, labels: [`app=${shown('payments')}`] }],
      [
        { name: 'other', labels: [`app=${NOBODY}`] },
        { name: 'other', key: 'app', sub_groups: [NOBODY] },
      ],
    ],
    [
      'update-label-group',
      [
        { name: 'group', add: [`app=${shown('billing')}`], dry_run: true },
        { name: 'group', labels: [`app=${shown('billing')}`] },
      ],
      [
        { name: NOBODY, description: 'x' },
        { name: 'group', remove: [`app=${shown('ordering')}`] },
      ],
    ],
    ['delete-label-group', [{ name: 'group', dry_run: true }, { name: 'group' }], [{ name: NOBODY }]],
    [
      'create-virtual-service',
      [
        {
          name: 'virtual',
          description: `x${RAW}`,
          service: shown('SSH'),
          labels: [`app=${shown('payments')}`],
          service_addresses: [{ fqdn: 'a.example.com', description: RAW }],
        },
      ],
      [
        { name: 'other', service: NOBODY },
        { name: 'other', service: shown('SSH'), labels: [`app=${NOBODY}`] },
        { name: 'other', service: shown('SSH'), service_addresses: [{ fqdn: NOBODY }] },
      ],
    ],
    [
      'update-virtual-service',
      [
        { name: 'virtual', labels: [`app=${shown('billing')}`], dry_run: true },
        { name: 'virtual', description: `y${RAW}` },
      ],
      [{ name: NOBODY, description: 'x' }],
    ],
    ['delete-virtual-service', [{ name: 'virtual', dry_run: true }], [{ name: NOBODY }]],
    [
      'create-pairing-profile',
      [{ name: 'profile', description: `x${RAW}`, labels: [`app=${shown('payments')}`] }],
      [
        { name: 'other', labels: [`app=${NOBODY}`] },
        { name: 'other', key_lifespan: NOBODY },
      ],
    ],
    [
      'update-pairing-profile',
      [
        { name: 'profile', labels: [`app=${shown('billing')}`], dry_run: true },
        { name: 'profile', labels: [`app=${shown('billing')}`] },
      ],
      [{ name: NOBODY, description: 'x' }],
    ],
    ['create-pairing-key', [{ name: 'profile', dry_run: true }, { name: 'profile' }], [{ name: NOBODY }]],
    ['delete-pairing-keys', [{ name: 'profile', dry_run: true }, { name: 'profile' }], [{ name: NOBODY }]],
    ['delete-pairing-profile', [{ name: 'profile', dry_run: true }, { name: 'profile' }], [{ name: NOBODY }]],
    [
      'create-workload',
      [
        { ...PRINTER, labels: [`app=${shown('payments')}`], dry_run: true },
        { ...PRINTER, labels: [`app=${shown('payments')}`] },
      ],
      [
        { ...PRINTER, name: shown('printer') },
        { ...PRINTER, labels: [{ href: NOBODY }] },
        { ...PRINTER, labels: [`app=${NOBODY}`] },
      ],
    ],
    [
      'update-workload',
      [
        { name: ids.workload, description: `seen${SHOWN}` },
        { name: ids.workload, description: 'x', dry_run: true },
      ],
      [
        { name: NOBODY, description: 'x' },
        { name: ids.workload, new_name: shown('x') },
      ],
    ],
    ['delete-workload', [{ name: ids.workload, dry_run: true }, { name: ids.workload }], [{ name: NOBODY }]],
    [
      'create-iplist',
      [{ name: 'list', ip_ranges: [{ from_ip: '10.0.0.1', description: RAW }] }],
      [{ name: NOBODY, ip_ranges: [{ from_ip: '10.0.0.1' }] }],
    ],
    [
      'update-iplist',
      [
        { name: shown('Branch offices'), description: `x${RAW}` },
        { name: shown('Branch offices'), description: 'y', dry_run: true },
      ],
      [{ name: NOBODY, description: 'x' }],
    ],
    [
      'edit-ip-list-ranges',
      [
        { name: shown('Branch offices'), add_ranges: [{ from_ip: '192.0.2.1', description: `x${RAW}` }] },
        { name: shown('Branch offices'), remove_ranges: ['192.0.2.1'], dry_run: true },
      ],
      [
        { name: NOBODY, add_ranges: ['192.0.2.1'] },
        { name: shown('Branch offices'), remove_fqdns: [NOBODY] },
      ],
    ],
    ['delete-iplist', [{ name: shown('Package mirrors') }], [{ name: NOBODY }]],
    [
      'create-service',
      [{ name: 'service', description: RAW, service_ports: [{ port: 1, proto: 'tcp' }] }],
      [{ name: NOBODY, service_ports: [{ port: 1, proto: 'tcp' }] }],
    ],
    [
      'update-service',
      [
        { name: shown('Telnet'), description: 'x' },
        { name: shown('Telnet'), description: 'y', dry_run: true },
      ],
      [{ name: NOBODY, description: 'x' }],
    ],
    ['delete-service', [{ name: shown('idle') }], [{ name: NOBODY }, { name: shown('SSH') }]],
    [
      'create-ruleset',
      [{ name: 'rules', scopes: [[`app=${shown('payments')}`]] }],
      [
        { name: 'rules', scopes: [[`app=${NOBODY}`]] },
        { name: shown('rules'), scopes: [] },
      ],
    ],
    [
      'update-ruleset',
      [
        { name: shown('ledger | prod'), description: 'x' },
        { name: shown('ledger | prod'), description: 'y', dry_run: true },
      ],
      [{ name: NOBODY, description: 'x' }],
    ],
    [
      'create-deny-rule',
      [{ ...DENY, ruleset_name: shown('ledger | prod') }],
      [
        { ...DENY, ruleset_name: NOBODY },
        { ...DENY, ruleset_name: shown('ledger | prod'), ingress_services: [{ service: NOBODY }] },
      ],
    ],
    [
      'create-rule',
      [{ ...DENY, ruleset_name: shown('ledger | prod') }],
      [
        { ...DENY, ruleset_name: NOBODY },
        { ...DENY, ruleset_name: shown('ledger | prod'), consumers: [`labelgroup:${NOBODY}`] },
      ],
    ],
    [
      'update-sec-rule',
      [{ href: ids.rule, ingress_services: [{ service: shown('SSH') }] }],
      [{ href: ids.rule, ingress_services: [{ service: NOBODY }] }],
    ],
    [
      'update-deny-rule',
      [{ href: ids.deny, consumers: [`app=${shown('billing')}`] }],
      [{ href: ids.deny, consumers: [`app=${NOBODY}`] }],
    ],
    ['delete-deny-rule', [{ href: ids.deny }], [{ href: NOBODY }]],
    ['delete-sec-rule', [{ href: ids.rule }], [{ href: NOBODY }]],
    ['delete-ruleset', [{ name: shown('catalog | prod') }], [{ name: NOBODY }]],
    [
      'update-container-workload-profile',
      [{ profile_href: ids.profile, assign_labels: [`app=${shown('billing')}`] }],
      [{ profile_href: ids.profile, assign_labels: [`app=${NOBODY}`] }],
    ],
    [
      'plan-port-closure',
      [{ services: [shown('SSH')], dry_run: true }, { services: [shown('SSH')] }],
      [{ services: [NOBODY] }, { services: [shown('SSH')], exceptions: [{ consumers: [NOBODY] }] }],
    ],
    ['create-ringfence', [{ ...PAYMENTS, dry_run: true }, PAYMENTS], [UNKNOWN]],
    ['compare-draft-active', [{}], [{ cursor: NOBODY }]],
    [
      'ringfence-batch',
      [{ apps: [{ ...PAYMENTS, app_name: shown('billing') }, UNKNOWN] }],
      [{ apps: [{ app_name: NOBODY }] }],
    ],
    [
      'preview-enforcement-change',
      [
        { ...PAYMENTS, enforcement_mode: 'full' },
        { ...PAYMENTS, enforcement_mode: 'idle' },
      ],
      [
        { ...UNKNOWN, enforcement_mode: 'full' },
        { workloads: [NOBODY], enforcement_mode: 'full' },
      ],
    ],
    [
      'set-enforcement-mode',
      [
        { ...PAYMENTS, enforcement_mode: 'selective', dry_run: true },
        { ...PAYMENTS, enforcement_mode: 'selective' },
      ],
      [
        { ...UNKNOWN, enforcement_mode: 'full' },
        { workloads: [ids.workload], enforcement_mode: 'full' },
      ],
    ],
    ['provision-policy', [{ change_description: `because${SHOWN}` }], [{ change_description: 'x', hrefs: [NOBODY] }]],
    [
      'bind-workloads',
      [
        { virtual_service: 'virtual', ...PAYMENTS, dry_run: true },
        { virtual_service: 'virtual', ...PAYMENTS },
      ],
      [
        { virtual_service: NOBODY, ...PAYMENTS },
        { virtual_service: 'virtual', workloads: [NOBODY] },
      ],
    ],
    ['get-events', [{}], [{ cursor: NOBODY }]],
    [
      'list-policy-versions',
      [{}, { text: `because${SHOWN}` }, { author: NOBODY }],
      [{ cursor: NOBODY }, { since: NOBODY }],
    ],
    ['compare-policy-versions', [{ from: 1 }, { from: 1, to: 'draft' }], [{ from: 1, cursor: NOBODY }, { from: 999 }]],
    [
      'who-changed',
      [{ kind: 'label', name: `app=${shown('payments')}` }, { application: `app=${shown('payments')}` }],
      [{ kind: 'rule_set', name: NOBODY }, { href: NOBODY }],
    ],
    ['review-draft', [{}], [{ cursor: NOBODY }, { name: NOBODY }]],
    [
      'resolve-policy',
      [
        { application: `app=${shown('payments')}`, detail_level: 'full' },
        { application: `app=${shown('payments')}`, csv: true, policy_version: 'draft' },
      ],
      [{ rule_set: NOBODY }, { labels: [NOBODY] }, { application: NOBODY }],
    ],
    [
      'restore-policy-version',
      [{ version: 1, dry_run: true }],
      [{ version: 999 }, { version: 1, drop_pending: [NOBODY] }],
    ],
    ['discard-draft-changes', [{ all: true, dry_run: true }], [{}, { hrefs: [NOBODY] }]],
    ['retire-expired', [{ dry_run: true }], [{ hrefs: [NOBODY] }]],
  ]

  /** Writes what the calls need beside the estate, and lists them. */
  const prepare = async (pce: PceClient): Promise<Call[]> => {
    const [ruleSet] = await pce.ruleSets.get('draft', null, { params: { name: `billing | prod${RAW}` } })
    const [cluster] = await pce.containerClusters.getAll()
    const profiles = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
    const profile = profiles.find(({ managed }) => managed === true)
    const workloads = await pce.workloads.getAll()
    const unmanaged = workloads.find(({ managed, name }) => managed !== true && typeof name === 'string')!
    const deny = await pce.denyRules.create(
      {
        enabled: true,
        providers: [{ actors: 'ams' }],
        consumers: [{ actors: 'ams' }],
        ingress_services: [{ port: 1, proto: 6 }],
      },
      ruleSet!.href,
    )
    await pce.services.create({ name: `idle${RAW}`, service_ports: [{ port: 1, proto: 6 }] })
    await pce.pairingProfiles.create({ name: `pair${RAW}`, enabled: true })
    await pce.provisionPolicyChanges(`made${RAW}`, [ruleSet!.href])
    const own = callsOf({
      workload: unmanaged.name!.replace(RAW, SHOWN),
      managed: workloads.find(({ managed }) => managed === true)!.href,
      rule: ruleSet!.rules![0]!.href,
      deny: deny.href,
      profile: profile!.href,
    })
    // A tool without calls of its own is called as its example does, and with an argument that it does not take.
    const others = tools.filter(({ name }) => !own.some(([tool]) => tool === name))
    return [...own, ...others.map(({ name, example }) => [name, [example], [{ [NOBODY]: 1 }]] as const)]
  }

  /** Calls every tool, and hands over each message that leaves. */
  const callAll = async (t: Test, look: (tool: string, message: Json, payload: string) => void, offered = tools) => {
    const service = await startConfirming(t, { estate, tools: offered })
    const { simulator } = service
    const calls = await prepare(service.pce)
    const failed: string[] = []
    const succeeded: string[] = []
    let tool = ''
    const leave = (payload: string): Json => {
      const messages: Json[] = payload.startsWith('{')
        ? [JSON.parse(payload)]
        : parseEvents(payload).events.map(({ data }) => data)
      for (const message of messages) look(tool, message, payload)
      const { result, error } = messages.at(-1)
      return {
        ...(result === undefined ? error : JSON.parse(result.content[0].text)),
        ok: result !== undefined && result.isError !== true,
      }
    }
    const call = async (args: object, token?: string): Promise<Json> => {
      const message = service.callOf(tool, args, token === undefined ? {} : { token })
      Object.assign((message.params as Json)._meta ?? ((message.params as Json)._meta = {}), { progressToken: 1 })
      const answer = leave((await service.post(message)).payload)
      if (answer.error !== 'confirm_required' || answer.confirm === undefined || token !== undefined) return answer
      const confirmed = await service.confirming(answer.confirm.body)
      return call(args, confirmed.json().confirm_token)
    }

    for (const [name, good, bad] of calls) {
      tool = name
      for (const args of bad) if ((await call(args)).ok) succeeded.push(`${tool} ${JSON.stringify(args)}`)
      if (good.length > 0 && tools.find((one) => one.name === name)?.requiresPce === true) {
        const body = [{ token: `refused${RAW}`, message: `Not for you${RAW}` }]
        simulator.faults.add({ kind: 'status', path: /./, times: 1, status: 403, body })
        await call(good[0]!)
        simulator.faults.clear()
      }
      for (const args of good) {
        const answer = await call(args)
        if (!answer.ok) failed.push(`${tool}: ${answer.message}`)
      }
    }
    return { failed, succeeded }
  }
  return { estate, texts, shown, PAYMENTS, FLOW, prepare, callAll }
}

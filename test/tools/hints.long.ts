/** What tools advise is done here: it shows more, leaves nothing out, or mends the error. */
import t, { type Test } from 'tap'
import { adviceInCode } from './advice-in-code.js'
import { handMade } from './hand-made.js'
import { readFreezes } from '../../config/read-freezes.js'
import type { Estate } from '../../pce-simulator/model.js'
import type { Role } from '../../schemas/caller.js'
import type { GuardrailsConfig } from '../../schemas/guardrails.js'
import { tools } from '../../tools/index.js'
import { startService } from '../contract/authenticated-service.js'
import { pausingTool, startRevocable } from '../revocation/revoked-service.js'
import { startBench, type Bench, type Json } from './harness.js'

interface Cut {
  tool: string
  args: object
  budget?: number
  /** Default the generated one. */
  estate?: Estate
  /** The advice, word for word, at the end of the note. */
  advice: string
  /** What is called with it. */
  then: object
  /** Whether the same lists get longer, nothing is cut any more, or all paths are shown. */
  shows: 'more' | 'all' | 'paths' | 'whole rows'
}

const SHOP = { app_name: 'ordering', env_name: 'prod' }
const DAYS = { lookback_days: 90 }
const FULL = { detail_level: 'full' }
const SUMMARY = 'get-traffic-flows-summary'
const OF_PATHS =
  'Fewer max_hops have fewer paths; without a start and a target, detail_level full shows more of the other lists.'
const ROOM = 800_000

/** Thirty rules say the same. */
const REPEATED = handMade({
  hosts: { a1: { ip: '10.0.0.1', labels: 'app=a env=prod' } },
  ruleSets: [
    { name: 'repeated', scope: '', allow: Array.from({ length: 30 }, () => ({ from: 'app=a', to: 'app=a' })) },
  ],
})

/** Over the generated estate, where none is given. */
const CUTS: Cut[] = [
  { tool: SUMMARY, args: DAYS, budget: ROOM, advice: 'detail_level full shows more.', then: FULL, shows: 'more' },
  {
    tool: SUMMARY,
    args: { ...DAYS, ...FULL },
    budget: 12_000,
    advice: 'sections with one name shows more of it.',
    then: { sections: ['app_to_app'] },
    shows: 'more',
  },
  {
    tool: SUMMARY,
    args: { ...DAYS, ...FULL, sections: ['blocked'] },
    budget: 6000,
    advice: 'Narrow the filters to see the rest.',
    then: { include_services: [{ port: 22, proto: 'tcp' }], include_destinations: ['app=ordering', 'env=prod'] },
    shows: 'all',
  },
  { tool: 'identity-reach', args: { limit: 2 }, advice: 'Raise limit.', then: { limit: 6 }, shows: 'more' },
  { tool: 'find-unmanaged-traffic', args: { top_n: 3 }, advice: 'Raise top_n.', then: { top_n: 6 }, shows: 'more' },
  {
    tool: 'find-unmanaged-traffic',
    args: { top_n: 500 },
    budget: 8000,
    advice: 'Raise min_connections, or choose one direction.',
    then: { min_connections: 20_000, direction: 'inbound' },
    shows: 'all',
  },
  { tool: 'discover-process-egress', args: { limit: 2 }, advice: 'Raise limit.', then: { limit: 9 }, shows: 'more' },
  {
    tool: 'discover-process-egress',
    args: { ...DAYS, limit: 500 },
    budget: 6000,
    advice: 'Narrow by process, source or decision.',
    then: { process: ['curl'], include_sources: ['app=ordering'], policy_decisions: ['blocked'] },
    shows: 'all',
  },
  {
    tool: 'identify-infrastructure-services',
    args: { top_n: 2 },
    advice: 'raise top_n to see others.',
    then: { top_n: 4 },
    shows: 'more',
  },
  {
    tool: 'identify-infrastructure-services',
    args: { top_n: 200 },
    budget: 4000,
    advice: 'a higher min_connections leaves some out.',
    then: { min_connections: 200_000 },
    shows: 'all',
  },
  {
    tool: 'identify-infrastructure-services',
    args: { top_n: 200 },
    budget: 9000,
    advice: 'A smaller top_n leaves them room.',
    then: { top_n: 11 },
    shows: 'whole rows',
  },
  {
    tool: 'detect-lateral-movement-paths',
    args: {},
    advice: 'detail_level full shows more.',
    then: FULL,
    shows: 'more',
  },
  {
    tool: 'detect-lateral-movement-paths',
    args: FULL,
    budget: 8000,
    advice: 'env_name narrows it.',
    then: { env_name: 'dev' },
    shows: 'all',
  },
  {
    tool: 'detect-lateral-movement-paths',
    args: { ...SHOP, max_hops: 4 },
    budget: 7000,
    advice: OF_PATHS,
    then: { max_hops: 1 },
    shows: 'paths',
  },
  {
    tool: 'detect-lateral-movement-paths',
    args: SHOP,
    advice: OF_PATHS,
    then: { ...FULL, app_name: undefined, env_name: undefined },
    shows: 'more',
  },
  {
    tool: 'find-redundant-rules',
    args: {},
    budget: ROOM,
    estate: REPEATED,
    advice: 'detail_level full shows more.',
    then: FULL,
    shows: 'more',
  },
  {
    tool: 'find-redundant-rules',
    args: FULL,
    budget: 6000,
    estate: REPEATED,
    advice: 'kinds and rule_set show fewer at a time.',
    then: { kinds: ['any_to_any'] },
    shows: 'all',
  },
  { tool: 'find-unused', args: {}, budget: ROOM, advice: 'detail_level full shows more.', then: FULL, shows: 'more' },
  {
    tool: 'find-unused',
    args: FULL,
    budget: 3000,
    advice: 'kinds shows fewer lists.',
    then: { kinds: ['label_groups'] },
    shows: 'all',
  },
  {
    tool: 'preview-enforcement-change',
    args: { ...SHOP, enforcement_mode: 'full' },
    budget: ROOM,
    advice: 'detail_level full shows more.',
    then: FULL,
    shows: 'more',
  },
  {
    tool: 'get-policy-coverage-report',
    args: { ...SHOP, ...FULL },
    budget: 5000,
    advice: 'A shorter window has fewer.',
    then: { start_date: '2026-06-14T11:00:00Z', end_date: '2026-06-14T11:01:00Z' },
    shows: 'all',
  },
  {
    tool: 'ven-health-report',
    args: {},
    budget: ROOM,
    advice: 'detail_level full shows more.',
    then: FULL,
    shows: 'more',
  },
  {
    tool: 'ven-health-report',
    args: FULL,
    budget: 4000,
    advice: 'sections and labels narrow it.',
    then: { sections: ['offline'], labels: ['app=ordering', 'env=dev'] },
    shows: 'all',
  },
  {
    tool: 'get-ip-list-matches',
    args: { address: '10.0.0.0/8' },
    budget: ROOM,
    advice: 'detail_level full shows more.',
    then: FULL,
    shows: 'more',
  },
  {
    tool: 'get-ip-list-matches',
    args: { address: '10.0.0.0/8', ...FULL },
    budget: 4000,
    advice: 'a narrower address has fewer.',
    then: { address: '10.0.0.1' },
    shows: 'all',
  },
]

/** The lists that an answer names as cut, by path. */
function listsOf(answer: Json): Map<string, number> {
  const at = (path: string) => path.split('.').reduce((value: Json, name) => value?.[name], answer)
  return new Map(
    ((answer.truncated_sections ?? []) as string[]).map((path) => [
      path,
      (answer[path] ?? at(path) ?? []).length as number,
    ]),
  )
}

const benches = new Map<string, Promise<Bench>>()
const benchWith = (t: Test, { budget = 24_000, estate }: Pick<Cut, 'budget' | 'estate'>): Promise<Bench> => {
  const id = `${budget} ${estate === undefined}`
  const bench = benches.get(id) ?? startBench(t, { flows: 2000, budget, ...(estate && { estate }) })
  benches.set(id, bench)
  return bench
}

t.test('lists that are cut', async (whole) => {
  for (const { tool, args, advice, then, shows, ...where } of CUTS)
    await whole.test(`${tool}: ${advice}`, async (t) => {
      const bench = await benchWith(whole, where)
      const before = await bench.ok(tool, args)
      t.equal((before.truncation_note ?? '').slice(-advice.length), advice, before.truncation_note)
      const call = Object.entries({ ...args, ...then }).filter(([, value]) => value !== undefined)
      const after = await bench.ok(tool, Object.fromEntries(call))
      if (shows === 'all') return t.equal(after.truncated_sections, undefined, after.truncation_note)
      if (shows === 'whole rows') return t.ok(after.results.length > before.results.length)
      if (shows === 'paths') {
        const shown = (answer: Json) => [answer.paths.length, answer.paths_total]
        const [few, all] = shown(before)
        t.ok(few < all, 'not all paths are shown')
        return t.equal(...(shown(after) as [number, number]))
      }
      const lists = [...listsOf(before)]
      const now = (name: string): number => (after[name] ?? []).length
      t.ok(
        lists.some(([name, length]) => now(name) > length),
        `${JSON.stringify(lists)} has more rows: ${lists.map(([name]) => now(name)).join(', ')}`,
      )
      t.same(
        lists.filter(([name, length]) => now(name) < length && !('sections' in then)),
        [],
        'and none has fewer',
      )
    })
})

interface Mended {
  hint: string
  tool: string
  args: object
  /** The code of the error; null for an answer that has the hint. */
  code: string | null
  /** What the hint says to call, and then the call that it is to mend. */
  then: [tool: string, args: object | ((error: Json) => object)][]
}

const A = { app_name: 'a', env_name: 'prod' }
const EGRESS = 'discover-process-egress'
const rule = { providers: ['ams'], consumers: ['ams'] }

/** In this order, over one small estate. */
const MENDED: Mended[] = [
  {
    hint: 'Check the labels with get-workloads: a workload has to have both.',
    tool: 'preview-enforcement-change',
    args: { app_name: 'a', env_name: 'dev', enforcement_mode: 'full' },
    code: 'no_workloads',
    then: [
      ['get-workloads', { labels: ['app=a'] }],
      ['preview-enforcement-change', { ...A, enforcement_mode: 'full' }],
    ],
  },
  {
    hint: 'Give kind together with name; names are unique only within a kind.',
    tool: 'who-changed',
    args: { name: 'of a' },
    code: 'missing_identifier',
    then: [['who-changed', { name: 'of a', kind: 'rule_set' }]],
  },
  {
    hint: 'Name an application as app|env, or all with one label as app=VALUE or env=VALUE.',
    tool: 'detect-lateral-movement-paths',
    args: { target: 'zzz' },
    code: 'not_found',
    then: [
      ['detect-lateral-movement-paths', { target: 'a|prod' }],
      ['detect-lateral-movement-paths', { target: 'env=prod' }],
    ],
  },
  {
    hint: 'Name another application, or leave out app_name and env_name to see who reaches this one.',
    tool: 'detect-lateral-movement-paths',
    args: { ...A, target: 'a|prod' },
    code: 'invalid_argument',
    then: [
      ['detect-lateral-movement-paths', { ...A, target: 'b|prod' }],
      ['detect-lateral-movement-paths', { target: 'a|prod' }],
    ],
  },
  {
    hint: 'No app label has a similar value; get-labels lists them.',
    tool: 'enforcement-readiness',
    args: { app_name: 'billing', env_name: 'prod' },
    code: 'not_found',
    then: [
      ['get-labels', { key: 'app' }],
      ['enforcement-readiness', A],
    ],
  },
  {
    hint: 'Nothing has a similar name; get-iplists lists them.',
    tool: 'update-iplist',
    args: { name: 'Printers', description: 'x', dry_run: true },
    code: 'not_found',
    then: [
      ['get-iplists', {}],
      ['update-iplist', { name: 'Offices', description: 'x', dry_run: true }],
    ],
  },
  {
    hint: 'Values are exact and case-sensitive; get-labels lists them.',
    tool: 'get-traffic-flows',
    args: { include_sources: ['app=nobody'] },
    code: 'unresolved_label_filter',
    then: [
      ['get-labels', { key: 'app' }],
      ['get-traffic-flows', { include_sources: ['app=a'] }],
    ],
  },
  {
    hint: 'Use one flat list, or an IP list that contains the network (iplist:<name>).',
    tool: 'get-traffic-flows',
    args: { include_sources: [['app=a'], ['10.9.0.0/16']] },
    code: 'invalid_argument',
    then: [
      ['get-traffic-flows', { include_sources: ['10.9.0.0/16'] }],
      ['get-traffic-flows', { include_sources: [['app=a'], ['iplist:Offices']] }],
    ],
  },
  {
    hint: 'Ask once per value.',
    tool: 'explain-flow',
    args: { source: ['app=a', 'app=b'], destination: 'b1', port: 443, proto: 'tcp' },
    code: 'invalid_argument',
    then: [['explain-flow', { source: ['app=a'], destination: 'b1', port: 443, proto: 'tcp' }]],
  },
  {
    hint: 'Leave them out.',
    tool: 'set-enforcement-mode',
    args: { workloads: ['a1', 'u1'], enforcement_mode: 'full', dry_run: true },
    code: 'invalid_argument',
    then: [['set-enforcement-mode', { workloads: ['a1'], enforcement_mode: 'full', dry_run: true }]],
  },
  {
    hint: 'set: ["env=prod"], add: ["role=web"] or remove: ["loc"].',
    tool: 'label-workloads',
    args: { workloads: ['a1'], dry_run: true },
    code: 'no_update_fields',
    then: [['label-workloads', { workloads: ['a1'], set: ['env=prod'], dry_run: true }]],
  },
  {
    hint: 'create_missing_labels makes labels that are new.',
    tool: 'label-workloads',
    args: { workloads: ['a1'], add: ['role=web'], dry_run: true },
    code: 'label_not_found',
    then: [['label-workloads', { workloads: ['a1'], add: ['role=web'], create_missing_labels: true, dry_run: true }]],
  },
  {
    hint: 'get-workloads takes the same filters: widen them until they find what you mean.',
    tool: 'label-workloads',
    args: { selection: { labels: ['app=a', 'env=dev'] }, set: ['env=prod'], dry_run: true },
    code: 'no_workloads',
    then: [
      ['get-workloads', { labels: ['app=a'] }],
      ['label-workloads', { selection: { labels: ['app=a'] }, set: ['env=prod'], dry_run: true }],
    ],
  },
  {
    hint: 'Use the existing label.',
    tool: 'create-label',
    args: { key: 'app', value: 'a' },
    code: 'already_exists',
    then: [['get-workloads', ({ existing_label: label }) => ({ labels: [label] })]],
  },
  {
    hint: 'Move it to egress_services and give the port in ingress_services.',
    tool: 'create-rule',
    args: { ruleset_name: 'of a', ...rule, ingress_services: ['outbound'], dry_run: true },
    code: 'egress_service_in_ingress',
    then: [
      [
        'create-rule',
        {
          ruleset_name: 'of a',
          ...rule,
          ingress_services: [{ port: 443, proto: 'tcp' }],
          egress_services: ['outbound'],
          dry_run: true,
        },
      ],
    ],
  },
  {
    hint: 'Deny the port, and allow the process in an allow rule.',
    tool: 'create-deny-rule',
    args: { ruleset_name: 'of a', ...rule, ingress_services: ['program'], dry_run: true },
    code: 'process_qualified_deny_unsupported',
    then: [
      [
        'create-deny-rule',
        { ruleset_name: 'of a', ...rule, ingress_services: [{ port: 443, proto: 'tcp' }], dry_run: true },
      ],
      ['create-rule', { ruleset_name: 'of a', ...rule, ingress_services: ['program'], dry_run: true }],
    ],
  },
  {
    hint: 'Give its href.',
    tool: 'update-workload',
    args: { name: 'twin', description: 'x', dry_run: true },
    code: 'ambiguous_name',
    then: [['update-workload', ({ candidates: [{ href }] }) => ({ href, description: 'x', dry_run: true })]],
  },
  {
    hint: 'Rename or delete all but one, or choose another ruleset_name.',
    tool: 'create-ringfence',
    args: { ...A, ruleset_name: 'double', dry_run: true },
    code: 'ambiguous_name',
    then: [['create-ringfence', { ...A, ruleset_name: 'single', dry_run: true }]],
  },
  {
    hint: 'It is there as a range, not as an exclusion: leave exclusion out.',
    tool: 'edit-ip-list-ranges',
    args: { name: 'Sites', remove_ranges: [{ from_ip: '10.8.0.0/16', exclusion: true }], dry_run: true },
    code: 'not_found',
    then: [['edit-ip-list-ranges', { name: 'Sites', remove_ranges: ['10.8.0.0/16'], dry_run: true }]],
  },
  {
    hint: 'It is there as an exclusion: give {from_ip, to_ip, exclusion: true} to remove that.',
    tool: 'edit-ip-list-ranges',
    args: { name: 'Sites', remove_ranges: ['10.8.1.0-10.8.1.9'], dry_run: true },
    code: 'not_found',
    then: [
      [
        'edit-ip-list-ranges',
        {
          name: 'Sites',
          remove_ranges: [{ from_ip: '10.8.1.0', to_ip: '10.8.1.9', exclusion: true }],
          dry_run: true,
        },
      ],
    ],
  },
  {
    hint: 'It is part of 10.8.0.0/16: add it with exclusion: true to take it out, or replace the wider range.',
    tool: 'edit-ip-list-ranges',
    args: { name: 'Sites', remove_ranges: ['10.8.2.0/24'], dry_run: true },
    code: 'not_found',
    then: [
      [
        'edit-ip-list-ranges',
        { name: 'Sites', add_ranges: [{ from_ip: '10.8.2.0/24', exclusion: true }], dry_run: true },
      ],
    ],
  },
  {
    hint: 'Name at least one field to change.',
    tool: 'update-iplist',
    args: { name: 'Sites' },
    code: 'no_update_fields',
    then: [['update-iplist', { name: 'Sites', description: 'x', dry_run: true }]],
  },
  {
    hint: 'Name it or give its href.',
    tool: 'update-iplist',
    args: { description: 'x' },
    code: 'missing_identifier',
    then: [['update-iplist', { name: 'Sites', description: 'x', dry_run: true }]],
  },
  {
    hint: 'Give only one of them.',
    tool: 'update-iplist',
    args: { name: 'Sites', href: '/orgs/1/sec_policy/draft/ip_lists/2', description: 'x' },
    code: 'conflicting_identifiers',
    then: [['update-iplist', { name: 'Sites', description: 'x', dry_run: true }]],
  },
  {
    hint: 'Give one of them its own ruleset_name.',
    tool: 'ringfence-batch',
    args: {
      apps: [
        { ...A, ruleset_name: 'x' },
        { app_name: 'b', env_name: 'prod', ruleset_name: 'x' },
      ],
      dry_run: true,
    },
    code: 'invalid_argument',
    then: [
      [
        'ringfence-batch',
        {
          apps: [
            { ...A, ruleset_name: 'y' },
            { app_name: 'b', env_name: 'prod', ruleset_name: 'x' },
          ],
          dry_run: true,
        },
      ],
    ],
  },
  {
    hint: 'Repeat the call without cursor, or with the arguments the cursor came with.',
    tool: 'get-workloads',
    args: { cursor: 'WzBd' },
    code: 'invalid_argument',
    then: [['get-workloads', {}]],
  },
  {
    hint: 'get-rulesets lists the hrefs of rules.',
    tool: 'update-sec-rule',
    args: { href: 'x', enabled: false },
    code: 'invalid_href',
    then: [
      ['get-rulesets', { name: 'of a' }],
      ['update-sec-rule', ({ answer }) => ({ href: answer.rulesets[0].rules[0].href, enabled: false, dry_run: true })],
    ],
  },
  {
    hint: 'Give hrefs of',
    tool: 'provision-policy',
    args: { hrefs: ['/orgs/1/labels/1'], change_description: 'x', dry_run: true },
    code: 'invalid_argument',
    then: [
      ['update-ruleset', { name: 'of a', description: 'x' }],
      ['provision-policy', ({ answer }) => ({ hrefs: [answer.href], change_description: 'x', dry_run: true })],
    ],
  },
  {
    hint: 'First remove the label from everything in used_by. Policy counts in draft and active.',
    tool: 'delete-label',
    args: { key: 'loc', value: 'hq' },
    code: 'pce_error',
    then: [
      ['label-workloads', { workloads: ['u1'], remove: ['loc'] }],
      ['delete-label', { key: 'loc', value: 'hq' }],
    ],
  },
  {
    hint: 'Leave one of these filters out, or widen the window.',
    tool: EGRESS,
    args: { policy_decisions: ['blocked'] },
    code: null,
    then: [[EGRESS, {}]],
  },
  {
    hint: 'Leave process out to see all of them.',
    tool: EGRESS,
    args: { process: ['nothing'] },
    code: null,
    then: [[EGRESS, {}]],
  },
  {
    hint: 'Widen the window.',
    tool: EGRESS,
    args: { start_date: '2026-05-01', end_date: '2026-05-02' },
    code: null,
    then: [[EGRESS, { start_date: '2026-05-01' }]],
  },
]

const ESTATE = handMade({
  hosts: {
    a1: { ip: '10.0.0.1', labels: 'app=a env=prod' },
    b1: { ip: '10.0.0.2', labels: 'app=b env=prod' },
    u1: { ip: '10.0.0.3', labels: 'loc=hq', managed: false },
  },
  flows: [
    { from: 'a1', to: 'b1', process: '/bin/a' },
    { from: 'a1', to: '198.51.100.1', process: '/bin/a' },
  ],
  labels: ['env=dev'],
  ipLists: { Offices: ['10.9.0.0/16'], Sites: ['10.8.0.0/16', '!10.8.1.0-10.8.1.9'] },
  services: {
    outbound: { windows_egress_services: [{ process_name: 'c:\\a.exe' }] },
    program: { windows_services: [{ process_name: 'c:\\b.exe', port: 443, proto: 6 }] },
  },
  ruleSets: [
    { name: 'of a', scope: 'app=a env=prod', allow: [{ from: 'ams', to: 'ams' }] },
    { name: 'double', scope: 'app=a env=prod' },
    { name: 'double', scope: 'app=a env=prod' },
  ],
})

t.test('errors and empty answers', async (whole) => {
  const bench = await startBench(whole, { estate: ESTATE })
  for (const ip of ['10.0.1.1', '10.0.1.2'])
    await bench.pce.workloads.create({ name: 'twin', interfaces: [{ name: 'e', address: ip }] })
  for (const { hint, tool, args, code, then } of MENDED)
    await whole.test(`${tool}: ${hint}`, async (t) => {
      const first = code === null ? await bench.ok(tool, args) : await bench.fails(tool, args, code)
      t.equal(String(first.hint).slice(0, hint.length), hint, first.hint)
      let answer: Json
      for (const [name, next] of then)
        answer = await bench.ok(name, typeof next === 'function' ? next({ ...first, answer }) : next)
      t.ok(answer.hint === undefined, 'and nothing is advised any more')
    })
})

const AFTER_THE_FREEZE =
  'Nothing of it was written. Call again after the freeze; nobody, whatever the role, may do it before.'
const IN_PARTS =
  'Nothing of it was written. Do it in parts, each with fewer workloads; a server with approval by a person (MCP_APPROVAL) has two people approve it as a whole.'
const STAYS = 'What the call sent before this request stays as it is.'

/** A service with these guardrails, over three workloads. */
async function startGuarded(t: Test, guardrails: GuardrailsConfig, now?: () => number) {
  const service = await startService(t, {
    mode: 'shared',
    config: { guardrails, offer: { toolsets: ['all'] } },
    estate: {
      estate: handMade({
        hosts: {
          a1: { ip: '10.0.0.1', labels: 'app=a env=prod' },
          a2: { ip: '10.0.0.2', labels: 'app=a env=prod' },
          a3: { ip: '10.0.0.3', labels: 'app=a env=prod' },
        },
        labels: ['env=dev'],
      }),
    },
    ...(now && { now }),
  })
  const call = async (tool: string, args: object, role: Role = 'admin') =>
    service.call(await service.tokenOf(role, role), tool, args)
  return {
    /** The answer to moving these workloads to env=dev, or its error body. */
    move: (workloads: string[], role?: Role) => call('label-workloads', { workloads, set: ['env=dev'] }, role),
    /** The names of the workloads that are in env=dev. */
    async moved(): Promise<string[]> {
      const { workloads = [] } = await call('get-workloads', { labels: ['env=dev'], detail_level: 'full' })
      return workloads.map(({ name }: { name: string }) => name).sort()
    },
  }
}

t.test('refusals by the operator', async (t) => {
  await t.test(AFTER_THE_FREEZE, async (t) => {
    let now = Date.parse('2026-11-28T12:00:00Z')
    const source = { MCP_FREEZE_WINDOWS: 'Fri 18:00 - Mon 06:00 Europe/Berlin' }
    const freezes = readFreezes({ env: source, faults: [], warnings: [] })!
    const { move, moved } = await startGuarded(t, { freezes }, () => now)
    const first = await move(['a1'])
    t.same([first.error, first.hint], ['frozen', AFTER_THE_FREEZE])
    now = Date.parse(first.frozen_until) - 1
    for (const role of ['operator', 'admin'] as const) t.equal((await move(['a1'], role)).error, 'frozen', role)
    t.same(await moved(), [], 'nothing was written')
    now += 1
    t.same([(await move(['a1'])).error, await moved()], [undefined, ['a1']], 'the same call works after it')
  })

  await t.test(IN_PARTS, async (t) => {
    const { move, moved } = await startGuarded(t, { maxWorkloads: 2 })
    const first = await move(['a1', 'a2', 'a3'])
    t.same([first.error, first.hint], ['too_many_workloads', IN_PARTS])
    t.same(await moved(), [], 'nothing was written')
    t.same([(await move(['a1', 'a2'])).error, await moved()], [undefined, ['a1', 'a2']])
    t.same([(await move(['a3'])).error, await moved()], [undefined, ['a1', 'a2', 'a3']])
  })

  await t.test(STAYS, async (t) => {
    const { tool, gate } = pausingTool()
    const others = tools.filter(({ name }) => name !== tool.name)
    const { tokenOf, call, revoke } = await startRevocable(t, { tools: [...others, tool] })
    gate.reached = () => void (gate.go = revoke('alice').then(() => {}))
    const refused = await call(await tokenOf('alice'), tool.name)
    t.same([refused.error, refused.hint], ['unauthorized', STAYS])
    const { labels } = await call(await tokenOf('bob'), 'get-labels', { key: 'role' })
    const made = labels.map(({ value }: { value: string }) => value).filter((value: string) => / 1$/.test(value))
    t.same(made, ['first 1'], 'what was sent before is there, and nothing after it')
  })
})

/** Advice that these tests cannot do, with the reason. */
const NOT_DONE: [hint: string, why: string][] = [
  ['Read back,', 'says what is there: test/tools/after-the-write.long, test/tools/history'],
  ['It could not be read back. Check its current state', 'a PCE that fails: test/tools/after-the-write.long'],
  ['The rules could not be read back.', 'a PCE that fails: test/tools/after-the-write.long'],
  ['The pending changes could not be read back.', 'a PCE that fails: test/tools/history'],
  ['Everything this call had created was deleted again.', 'says what is there: test/tools/after-the-write.long'],
  ['Some of it was written. Look at the objects', 'a write that broke off: test/tools/after-the-write.long'],
  ['Part of it is in the draft', 'a write that broke off, done in test/tools/after-the-write.long'],
  ['Nothing was restored.', 'says what is there: test/tools/history'],
  ['${next}Nothing was restored.', 'says what is there: test/tools/history'],
  ['Compare the draft with the version before repeating', 'a write that broke off: test/tools/history'],
  ['What exists cuts no traffic: the deny rule comes last.', 'a write that broke off: test/tools/ringfence.long'],
  ['What `written` names is in the new mode', 'a write that broke off: test/tools/set-enforcement-mode'],
  ['The PCE refused every workload', 'what the PCE refused'],
  ['update-container-workload-profile changes the profile', 'a Kubernetes workload: test/tools/containers'],
  ['It is built in: a PCE refuses to change or delete it.', 'advises nothing'],
  [
    'Nothing was changed. ',
    'of the server or its PCE, mended outside of tools: test/pce-client, test/confirm, test/audit',
  ],
  ['Check host, port, TLS settings and proxy.', 'of the server, mended outside of tools'],
  ['The PCE does not accept the API key and secret.', 'advises nothing'],
  ['The key is valid, but not for this organisation', 'advises nothing'],
  ['Something else answers there, most likely', 'of the server, mended outside of tools'],
  ['The PCE is limiting the request rate', 'a PCE that fails'],
  ['The address answers, but the PCE', 'advises nothing'],
  ['The answer was not used.', 'a PCE that fails: test/tools/odd-answers'],
  [
    'Check the current state before repeating the call.',
    'a write whose answer was lost: test/tools/after-the-write.long',
  ],
  [
    'Ask for less: narrower filters, fewer results',
    'an answer beyond the memory of the server: test/pce-client/bounds.long',
  ],
  [
    'Ask for less: a shorter window, fewer rows',
    'an answer beyond what a thread may use: test/contract/heavy-calls.long',
  ],
  ['Ask for a shorter window or narrower filters.', 'a traffic query that takes too long: test/tools/traffic'],
  ['Ask the operator to map one of your groups to a role.', 'of the operator: test/contract/role-matrix'],
  ['Mint a fresh token', 'of confirmation: test/confirm'],
  ['Give the person the approval_url', 'of approval: test/approve'],
  ['Do not repeat it.', 'of approval: test/approve'],
  ['Repeat the call to ask again.', 'of approval: test/approval'],
  ['Call the tool, and give the person the approval_url', 'of approval: test/approve'],
  ['Do not repeat it unless they ask for it.', 'of approval: test/approval'],
  ['Use a client with form elicitation', 'of approval: test/approval'],
  ['Register them again, as you did before.', 'of credentials: test/context'],
  ['Wait for the time in Retry-After.', 'of limits: test/contract/rate-limits'],
  ['Repeat the request shortly.', 'of limits: test/contract/in-flight'],
  ['Repeat the call after retry_after_seconds', 'of limits: test/contract/rate-limits'],
  ['Your token may well be valid', 'of login: test/auth'],
  ['Load the page again and repeat your entry.', 'of the setup page: test/setup'],
  ['Start again.', 'of the setup page: test/setup'],
  ['tools/list lists all of them.', 'of the protocol: test/contract/tool-calls'],
  ['The operator can add', 'of the operator: test/contract/http-protocol'],
  ['`It is part of ${', 'is done above, of 10.8.0.0/16'],
  ['Give the href of the one you mean.', 'is done above, as `Give its href`'],
  ['Name workloads instead.', 'a list that the PCE cuts: test/tools/part-of-a-list'],
  ['Its labels come from the profile of its namespace', 'a Kubernetes workload: test/tools/containers'],
  ['Give one of its addresses.', 'an end that is domain names alone: test/tools/explain-flow'],
  ['Provision them first, or give their hrefs in drop_pending to lose them.', 'test/tools/history'],
  ['Call again.', 'somebody else writes meanwhile'],
  ['Labels may be changing; call again.', 'somebody else writes meanwhile'],
  ['Call again without a token to see what would happen now', 'of confirmation: test/confirm'],
  ['Find out who changes it, and repeat the call.', 'somebody else writes meanwhile'],
  [
    'Ask about less, so that the list is shorter, or try again later.',
    'a list that breaks off: test/tools/part-of-a-list',
  ],
  ['Repeat with include_dependencies: true', 'test/tools/provision'],
  ['Rename or delete all but the one that the PCE came with.', 'is done in the PCE'],
  ['Unpair the VEN first: in the PCE, or on the host itself.', 'is done outside'],
  ['First remove it from everything in used_by; where versions include active', 'test/tools/named-objects'],
  ['Look at its rules first: get-rulesets shows them; update-ruleset enables it.', 'test/tools/ringfence.long'],
  ['Give {app, env}.', 'test/tools/graph.long'],
  ['${none}; ${lister} lists them.', 'is done above, of IP lists'],
  ['No ${key} label has a similar value', 'is done above, of app'],
  ['Give labels as key=value', 'test/hygiene/label-workloads'],
  ['${rest} by include_sources, policy_decisions or', 'test/tools/process-egress'],
  ['include_inbound keeps those of unmanaged destinations.', 'test/tools/process-egress'],
  ['Traffic inside the estate is not egress.', 'advises nothing'],
  ['only_named_processes: false shows the rest.', 'test/tools/process-egress'],
  ['${REFUSED}', 'what the PCE refused'],
  ['Look at what it is now, and repeat the call.', 'somebody else writes meanwhile: test/tools/at-once'],
  ['Discard that deletion first with discard-draft-changes', 'test/tools/restore-object'],
  ['Put single rules back by hand', 'is done by hand: test/tools/restore-object'],
  ['Create what is missing again and write the rules by hand', 'is done by hand: test/tools/restore-object'],
  ['Name the labels that the rule is about instead.', 'hangs on the release of the PCE: test/tools/wide-rules'],
  ['Give hrefs to provision those alone', 'somebody else has changed something: test/tools/provision'],
  ['${by}, ${updated} of', 'a write that broke off: test/hygiene/label-workloads.long'],
  ['${by}, ${created} are created', 'a write that broke off: test/hygiene/import-workloads.long'],
  ['The same call completes what is left.', 'a write that broke off: test/tools/write-virtual-services'],
  ['Which of them are ${verb} could not be read.', 'a PCE that fails: test/tools/write-virtual-services'],
  ['Provision it first.', 'test/tools/write-virtual-services'],
  ['Unbind it first, or leave port_overrides out.', 'test/tools/write-virtual-services'],
  ['A key may exist that nobody has.', 'a write whose answer was lost: test/tools/write-pairing'],
  ['Enable it first.', 'test/tools/write-pairing'],
  ['update-pairing-profile sets key_lifespan', 'test/tools/write-pairing'],
  ['Delete first what uses it.', 'test/tools/write-label-dimensions'],
  ['A shorter lookback_days has fewer.', 'as of get-policy-coverage-report'],
  ['The same call completes it', 'a write that broke off: test/tools/retire-expired'],
  ['Write ${FORM}', 'test/tools/expiring-rules'],
  ['Run it again.', 'of the command svc-mcp policy: test/stdio/policy-files.long'],
  ['Nothing was written. Ask the operator for a wider scope', 'of the operator: test/scopes/scopes'],
  ['Ask the operator for wider reading', 'of the operator: test/scopes/reads'],
  ['`At most ${longest} rows of a list are shown', 'as of enforcement-readiness: sections narrows it'],
  ['Ask once for each value.', 'test/tools/resolve-policy'],
  ['`written` names those it is done for', 'a write that broke off: test/tools/ven-actions'],
  ['Name fewer workloads to see the rest.', 'as of ven-health-report'],
  [
    'Only the first rows of each list are shown; totals and the score count all.',
    'names another tool: test/tools/enforcement-readiness',
  ],
]

t.test('no advice is without its test', async (t) => {
  const done = [
    ...CUTS.map(({ advice }) => advice),
    ...MENDED.map(({ hint }) => hint),
    ...[AFTER_THE_FREEZE, IN_PARTS, STAYS],
    ...NOT_DONE.map(([hint]) => hint),
  ]
  const { texts, unknown } = adviceInCode()
  t.same(unknown, [], 'every hint comes from texts that can be found')
  t.ok(texts.size > 130, `${texts.size} were found`)
  const isDone = (text: string) => done.some((hint) => text.includes(hint) || text.includes(hint.slice(0, 20)))
  t.same(
    [...texts].filter(([text]) => !isDone(text)).map(([text, where]) => `${where} ${text}`),
    [],
  )
})

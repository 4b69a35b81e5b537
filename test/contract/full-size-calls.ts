/**
 * The calls of full-size.long.ts, in an order in which each finds what it needs. Every tool is in one of the three tables
 * here. A tool that writes is called twice: the first call is asked for a confirmation, and the second has it.
 */
import type { Json } from '../edge/support/call-tool.js'
import type { PolicySize } from './huge-policy.js'

export type Estate = 'fits' | 'full'

/** An error of a tool, and what its answer says; without an error, what an answer says that is not all known. */
interface Expected {
  error?: string
  says: RegExp
}

interface Call extends Partial<Record<Estate, Expected>> {
  tool: string
  /** The only estate on which the tool is called; both if absent. */
  only?: Estate
  args: object | ((answers: Record<string, Json>) => object)
}

const SIZE = { rules: 5000, names: 5000, changed: 2, oneChangedIn: 1000, workloads: 300, isHalved: true }

/**
 * The IP lists of `fits` are almost as much as a PCE's answer may be, so that tools judge them; those of `full` are many
 * times as much, so that tools do without them, or refuse.
 */
export const ESTATES: Record<Estate, PolicySize> = {
  fits: { ...SIZE, lists: 85, long: 85, flows: 20 },
  full: { ...SIZE, lists: 2000, long: 2000, flows: 3 },
}

/** The tools whose work cannot grow with the policy, with the reasons. */
export const NOT_GROWING: Record<string, string> = {
  'check-pce-connection': 'asks a PCE for its release and its health',
  'check-pce-credentials-status': 'reads the record of its caller',
  'delete-pce-credentials': 'deletes the record of its caller',
  'get-server-changelog': 'reads a file of the package',
  'register-pce-credentials':
    'writes the record of its caller, and asks the PCE for one label; both estates begin with it',
}

const ELSEWHERE = 'never-frozen.long.ts calls it on a smaller estate'
const SLOW = 'takes many seconds, at work that it shares with tools that are called'
/** The tools that are not called, because all of them together would take many minutes. */
export const LEFT_OUT: Record<string, string> = {
  'create-ringfence': ELSEWHERE,
  'create-rule': ELSEWHERE,
  'create-ruleset': ELSEWHERE,
  'delete-ruleset': ELSEWHERE,
  'delete-sec-rule': ELSEWHERE,
  'discard-draft-changes': SLOW,
  'edit-ip-list-ranges': SLOW,
  'enforcement-readiness': SLOW,
  'get-policy-coverage-report': SLOW,
  'provision-policy': ELSEWHERE,
  'restore-policy-object': 'not mended: one turn of its write takes 28 units, also on smaller estates',
  'restore-policy-version': SLOW,
  'ringfence-batch': SLOW,
  'update-deny-rule': SLOW,
  'update-iplist': ELSEWHERE,
  'update-ruleset': ELSEWHERE,
  'update-sec-rule': ELSEWHERE,
}

const TOO_LARGE: Expected = { error: 'pce_answer_too_large', says: /the answer is larger than 32 MiB/ }

const ENDS = { providers: ['ams'], ingress_services: [{ port: 1, proto: 'tcp' }], unscoped_consumers: true }
const RULE = { ...ENDS, consumers: ['iplist:list-0001'] }
const PAYMENTS = { app_name: 'payments', env_name: 'prod' }
const WEEK = { lookback_days: 7 }

export const CALLS: Call[] = [
  { tool: 'get-iplists', args: {} },
  { tool: 'get-ip-list-matches', args: { fqdn: 'host-8.list-2.example.com' } },
  { tool: 'get-rulesets', args: {} },
  { tool: 'get-services', args: {} },
  { tool: 'get-labels', args: { usage: true } },
  { tool: 'get-label-groups', args: {} },
  { tool: 'get-virtual-services', args: {} },
  { tool: 'get-workloads', args: {} },
  { tool: 'get-workload-enforcement-status', args: {} },
  { tool: 'get-vens', args: {} },
  { tool: 'ven-health-report', args: {} },
  { tool: 'get-events', args: {} },
  { tool: 'get-pairing-profiles', args: {} },
  { tool: 'get-container-clusters', args: {} },
  { tool: 'get-kubernetes-workloads', args: {} },
  {
    tool: 'get-container-workload-profiles',
    args: ({
      'get-container-clusters': {
        container_clusters: [one],
      },
    }) => ({ cluster_href: one?.href }),
  },
  { tool: 'list-policy-versions', args: {} },
  { tool: 'find-rules', args: { rule_type: 'allow' } },
  {
    tool: 'find-redundant-rules',
    args: {},
    full: { says: /\d+ IP lists could not be read, and 5000 rules name such a list: .* is not known/ },
  },
  { tool: 'find-unused', args: {}, full: TOO_LARGE },
  { tool: 'find-unlabelled-workloads', args: { missing: ['role'] } },
  { tool: 'who-changed', args: { kind: 'ip_list', name: 'list-0001' } },
  { tool: 'compare-draft-active', only: 'fits', args: {} },
  { tool: 'compare-policy-versions', args: { from: 1, to: 'draft' }, full: TOO_LARGE },
  {
    tool: 'explain-flow',
    only: 'fits',
    args: { source: 'app=ordering', destination: 'iplist:list-0001', port: 1001, proto: 'tcp' },
  },
  {
    tool: 'suggest-rule',
    only: 'fits',
    args: { source: 'app=ordering', destination: 'app=payments', port: 8443, proto: 'tcp' },
  },
  { tool: 'get-traffic-flows', only: 'fits', args: { ...WEEK, group_by: ['source_app', 'port', 'policy'] } },
  { tool: 'get-traffic-flows-summary', only: 'fits', args: WEEK },
  { tool: 'discover-process-egress', only: 'fits', args: WEEK },
  { tool: 'find-unmanaged-traffic', only: 'fits', args: WEEK },
  { tool: 'identify-infrastructure-services', only: 'fits', args: WEEK },
  { tool: 'detect-lateral-movement-paths', only: 'fits', args: { ...PAYMENTS, ...WEEK } },
  { tool: 'compliance-check', only: 'fits', args: { framework: 'pci-dss', ...PAYMENTS, ...WEEK } },
  { tool: 'preview-enforcement-change', only: 'fits', args: { ...PAYMENTS, ...WEEK, enforcement_mode: 'full' } },

  { tool: 'create-label', args: { key: 'role', value: 'new' } },
  { tool: 'update-label', args: { key: 'role', value: 'new', new_value: 'newer' } },
  { tool: 'create-workload', args: { name: 'new', ip_addresses: ['192.0.2.1'] } },
  { tool: 'update-workload', only: 'fits', args: { name: 'host-9', enforcement_mode: 'full' } },
  { tool: 'label-workloads', args: { workloads: ['host-5'], set: ['role=db'] } },
  { tool: 'create-service', args: { name: 'new', service_ports: [{ port: 1001, proto: 'tcp' }] } },
  { tool: 'update-service', only: 'fits', args: { name: 'PostgreSQL', service_ports: [{ port: 1001, proto: 'tcp' }] } },
  {
    tool: 'create-iplist',
    args: { name: 'new', ip_ranges: [{ from_ip: '10.99.0.0/16' }] },
    full: { says: /Whether another list has these addresses is not known: .* larger than 32 MiB/ },
  },
  { tool: 'create-deny-rule', only: 'fits', args: { ruleset_name: 'set-1', ...RULE } },
  { tool: 'set-enforcement-mode', only: 'fits', args: { ...PAYMENTS, ...WEEK, enforcement_mode: 'selective' } },
  {
    tool: 'update-container-workload-profile',
    only: 'fits',
    args: ({ 'get-container-workload-profiles': { profiles } }) => ({
      profile_href: profiles?.find(({ name }: Json) => name === 'profile')?.href,
      enforcement_mode: 'full',
    }),
  },
  { tool: 'delete-deny-rule', only: 'fits', args: ({ 'create-deny-rule': { rule } }) => ({ href: rule.href }) },
  { tool: 'delete-iplist', args: { name: 'new' } },
  { tool: 'delete-service', args: { name: 'new' } },
  { tool: 'delete-workload', args: { name: 'new' } },
  { tool: 'delete-label', args: { key: 'role', value: 'newer' } },
]

import assert from 'node:assert/strict'
import { benchOf } from '../../test/tools/harness.js'
import { demoEstate } from '../examples/run-job.js'

const APP = { app_name: 'payments', env_name: 'prod' }
const TO_APP = {
  start_date: '2026-06-08',
  end_date: '2026-06-14',
  include_destinations: ['app=payments', 'env=prod'],
}
const PORT = [{ port: 8443, proto: 'tcp' }]
const RULE = { providers: ['ams'], consumers: ['app=ordering'], ingress_services: PORT }
const RULE_SET = { name: 'Of the benchmark', scopes: [['app=payments', 'env=prod']], rules: [RULE] }
const DENY_RULE = { ruleset_name: 'Core services', ...RULE }
const IP_LIST = { name: 'partner networks', ip_ranges: [{ from_ip: '198.51.100.0/24' }] }
const LABEL = { key: 'app', value: 'of-the-benchmark' }
const SERVICE = { name: 'Backoffice', service_ports: PORT }
const WORKLOAD = { name: 'legacy-db-01', ip_addresses: ['10.200.0.15'], labels: ['app=payments', 'env=prod'] }

type Arguments = Record<string, unknown>

/** The parts of earlier answers that are used as arguments of later calls. */
interface Answer {
  rule: { href: string }
  profiles: { href: string }[]
  ruleset: { rules: { href: string }[] }
  container_clusters: { href: string }[]
}

/** The arguments of a call. If they depend on the answer of another call, that call is `first`. */
interface Call {
  first?: [tool: string, call: Call]
  args: Arguments | ((answer: Answer) => Arguments)
}

const RULE_SET_FIRST = (args: Call['args']): Call => ({ first: ['create-ruleset', { args: RULE_SET }], args })
const newRule = (change: Arguments) => RULE_SET_FIRST(({ ruleset: { rules } }) => ({ href: rules[0]!.href, ...change }))
const newDenyRule = (change: Arguments): Call => ({
  first: ['create-deny-rule', { args: DENY_RULE }],
  args: ({ rule: { href } }) => ({ href, ...change }),
})

const PROFILES: Call = {
  first: ['get-container-clusters', { args: {} }],
  args: ({ container_clusters: clusters }) => ({ cluster_href: clusters[0]!.href }),
}

/** A typical call of every tool, except for the tools that need a keystore. */
const CALLS: Record<string, Call> = {
  'check-pce-connection': { args: {} },
  'check-pce-credentials-status': { args: {} },
  'compare-draft-active': RULE_SET_FIRST({}),
  'compliance-check': { args: { framework: 'pci-dss', ...APP } },
  'create-deny-rule': { args: DENY_RULE },
  'create-iplist': { args: IP_LIST },
  'create-label': { args: LABEL },
  'create-ringfence': { args: { ...APP, dry_run: true } },
  'create-ruleset': { args: RULE_SET },
  'create-service': { args: SERVICE },
  'create-workload': { args: WORKLOAD },
  'delete-deny-rule': newDenyRule({}),
  'delete-iplist': { first: ['create-iplist', { args: IP_LIST }], args: { name: IP_LIST.name } },
  'delete-label': { first: ['create-label', { args: LABEL }], args: LABEL },
  'delete-ruleset': RULE_SET_FIRST({ name: RULE_SET.name }),
  'delete-sec-rule': newRule({}),
  'delete-service': { first: ['create-service', { args: SERVICE }], args: { name: SERVICE.name } },
  'delete-workload': { first: ['create-workload', { args: WORKLOAD }], args: { name: WORKLOAD.name } },
  'detect-lateral-movement-paths': { args: APP },
  'discover-process-egress': { args: {} },
  'enforcement-readiness': { args: APP },
  'find-unmanaged-traffic': { args: {} },
  'get-container-clusters': { args: {} },
  'get-container-workload-profiles': PROFILES,
  'get-events': RULE_SET_FIRST({}),
  'get-iplists': { args: {} },
  'get-kubernetes-workloads': { args: {} },
  'get-labels': { args: {} },
  'get-pairing-profiles': { args: {} },
  'get-policy-coverage-report': { args: APP },
  'get-rulesets': { args: {} },
  'get-server-changelog': { args: {} },
  'get-services': { args: {} },
  'get-traffic-flows': { args: TO_APP },
  'get-traffic-flows-summary': { args: TO_APP },
  'get-workload-enforcement-status': { args: {} },
  'get-workloads': { args: {} },
  'identify-infrastructure-services': { args: {} },
  'provision-policy': RULE_SET_FIRST({ change_description: 'Of the benchmark' }),
  'ringfence-batch': { args: { apps: [APP, { app_name: 'ordering', env_name: 'prod' }], dry_run: true } },
  'update-container-workload-profile': {
    first: ['get-container-workload-profiles', PROFILES],
    args: ({ profiles }) => ({ profile_href: profiles[1]!.href, enforcement_mode: 'selective' }),
  },
  'update-deny-rule': newDenyRule({ enabled: false }),
  'update-iplist': { args: { name: 'Corporate networks', description: 'Reviewed' } },
  'update-label': { args: { key: 'app', value: 'ordering', new_value: 'order-entry' } },
  'update-ruleset': { args: { name: 'Core services', description: 'Reviewed' } },
  'update-sec-rule': newRule({ enabled: false }),
  'update-service': { args: { name: 'HTTPS', description: 'Reviewed' } },
  'update-workload': {
    first: ['create-workload', { args: WORKLOAD }],
    args: { name: WORKLOAD.name, labels: ['app=ordering'] },
  },
}

export interface AnswerFigures {
  tool: string
  /** The size of the answer's JSON in bytes. */
  bytes: number
  /**
   * The number of requests to the PCE. The server has made no calls before, except the ones on which this call depends.
   */
  requests: number
}

/**
 * Measures the answer of every tool to its typical call, on the estate of `npm run demo`. Each call gets a new estate.
 */
export async function measureAnswers(): Promise<AnswerFigures[]> {
  const figures: AnswerFigures[] = []
  for (const [tool, { first, args }] of Object.entries(CALLS)) {
    const simulator = await demoEstate()
    const closing: (() => unknown)[] = [() => simulator.close()]
    const owner = { teardown: (close: () => unknown) => void closing.unshift(close), equal: assert.equal }
    try {
      const bench = benchOf(owner, simulator, await simulator.listen())
      const argumentsOf = async ({ first, args }: Call): Promise<object> => {
        const before = first && (await make(...first))
        return typeof args === 'function' ? args(before!) : args
      }
      const make = async (name: string, call: Call): Promise<Answer> =>
        (await bench.ok(name, await argumentsOf(call))) as Answer
      const given = await argumentsOf({ ...(first && { first }), args })
      simulator.clearRequests()
      const answer = (await bench.ok(tool, given)) as object
      const requests = simulator.requests.length
      figures.push({ tool, bytes: Buffer.byteLength(JSON.stringify(answer)), requests })
    } finally {
      for (const close of closing) await close()
    }
  }
  return figures
}

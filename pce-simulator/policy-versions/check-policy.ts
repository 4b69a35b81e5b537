import { isIP } from 'node:net'
import type { Label } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Answer, Call } from '../http/route.js'
import { DEFAULT_MAX_RESULTS, readMaxResults } from '../kinds/answer-collection.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { findRules, type AskedEnd } from '../policy/find-rules.js'
import { parseAddress } from '../policy/match-addresses.js'
import type { ServiceFacts } from '../policy/match-services.js'
import { invalidInput, invalidUri, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { buildPolicyView } from './build-policy-view.js'
import { describePlaced, listRules, type RuleType } from './describe-rules.js'
import type { World } from '../world.js'

const NETWORKS: Readonly<Record<string, ReadonlySet<string>>> = {
  any: new Set(['brn', 'non_brn', 'all']),
  brn: new Set(['brn', 'all']),
  non_brn: new Set(['non_brn', 'all']),
}
const KINDS = { sec_rules: 'allow', deny_rules: 'deny', override_deny_rules: 'override_deny' } as const

/**
 * Answers with the rules that apply to the requested connection, grouped by type: allow, deny and override deny rules
 * (P27).
 */
export function checkPolicy(call: Call): Answer {
  const found = findAsked(call)
  // One client sends no parameters and still expects an answer with rules.
  if (found === null) return { status: 200, json: UNCERTAIN.checkWithoutParameters }
  const { sec_rules, deny_rules, override_deny_rules } = found
  return { status: 200, json: { sec_rules, deny_rules, override_deny_rules } }
}

/** Answers with only the allow rules that apply to the requested connection, as a bare list (P37). */
export function listAllowing(call: Call): Answer {
  const rules = findAsked(call)?.sec_rules ?? []
  return {
    status: 200,
    json: rules.slice(0, readMaxResults(call.query) ?? DEFAULT_MAX_RESULTS),
    headers: { 'x-total-count': String(rules.length) },
  }
}

/**
 * Finds the rules for the requested connection. Returns null if no parameter was given. Throws 406 if the source, the
 * destination or the service is missing.
 */
function findAsked({ world, params, query }: Call): Record<keyof typeof KINDS, unknown[]> | null {
  const pversion = params.pversion!
  const rules = listRules(world, pversion)
  const asked = [...query.keys()].some((name) => /^(src|dst)_|^(service|port|protocol)$/.test(name))
  if (!asked) return null
  const networks = NETWORKS[query.get('network_type') ?? 'any']
  if (!networks) throw invalidInput('network_type must be any, brn or non_brn')
  const src = readEnd(world, query, 'src')
  const dst = readEnd(world, query, 'dst')
  const services = readServices(world, query)
  const labels = new Map(world.labels.all().map((label) => [label.href, label as Label]))
  const found = findRules(buildPolicyView(world, pversion), labels, { src, dst, services }, networks)
  const bucket = (type: keyof typeof KINDS & RuleType) =>
    rules
      .filter((placed) => placed.type === type && found[KINDS[type]].has(placed.rule.href))
      .map((placed) => describePlaced(world, placed, pversion))
  return {
    sec_rules: bucket('sec_rules'),
    deny_rules: bucket('deny_rules'),
    override_deny_rules: bucket('override_deny_rules'),
  }
}

/**
 * Reads the source or the destination, which must be exactly one of a workload, an external address and a container
 * workload.
 */
function readEnd(world: World, query: URLSearchParams, side: 'src' | 'dst'): AskedEnd {
  const [workload, ip, container] = ['workload', 'external_ip', 'container_workload'].map((name) =>
    query.get(`${side}_${name}`),
  )
  if ([workload, ip, container].filter((value) => value != null).length !== 1) {
    throw invalidInput(
      `Exactly one of ${side}_workload, ${side}_external_ip and ${side}_container_workload is required`,
    )
  }
  if (ip != null) {
    if (isIP(ip) === 0) throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
    return { workload: null, labels: new Set(), address: parseAddress(ip) }
  }
  const found =
    workload != null
      ? world.workloads.get(workload)
      : (world.store('container_workloads').get(container!) ?? world.store('kubernetes_workloads').get(container!))
  if (!found || found.deleted === true) throw invalidUri(workload ?? container)
  return { workload: found.href, labels: collectHrefs(found.labels), address: addressOf(found) }
}

function addressOf({ interfaces }: PceObject): AskedEnd['address'] {
  const [first] = (interfaces ?? []) as { address?: string }[]
  return first?.address === undefined ? null : parseAddress(first.address)
}

/**
 * Reads the service of the requested connection: a single port, or the href of a service object in its draft or active
 * version. A rule needs to match only one of the ports of a service object.
 */
function readServices(world: World, query: URLSearchParams): ServiceFacts[] {
  const href = query.get('service')
  if (href !== null) {
    const entry = world.policy.get('services', href.replace(/\/sec_policy\/[^/]+\//, '/sec_policy/draft/'))
    if (!entry) throw invalidUri(href)
    const { service_ports, windows_services } = entry.draft as Service
    return [
      ...(service_ports ?? []).map((span) => describe(span, null)),
      ...(windows_services ?? []).map((span) => describe(span, span)),
    ]
  }
  const [port, protocol] = ['port', 'protocol'].map((name) => readNumber(query, name))
  if (protocol === null || protocol === undefined)
    throw invalidInput('Either service, or port and protocol, is required')
  return [describe({ port, proto: protocol }, null)]
}

interface Span {
  port?: number | null
  proto?: number | null
  icmp_type?: number | null
  icmp_code?: number | null
}

function describe(
  span: Span,
  process: { process_name?: string | null; service_name?: string | null } | null,
): ServiceFacts {
  const unseen = { os: 'unknown' as const, seen: false, processName: null, serviceName: null }
  return {
    proto: span.proto ?? null,
    port: span.port ?? null,
    icmpType: span.icmp_type ?? null,
    icmpCode: span.icmp_code ?? null,
    provider: process
      ? {
          os: 'windows',
          seen: true,
          processName: process.process_name ?? null,
          serviceName: process.service_name ?? null,
        }
      : unseen,
    consumer: unseen,
  }
}

function readNumber(query: URLSearchParams, name: string): number | null {
  const text = query.get(name)
  if (text === null) return null
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw invalidInput(`${name} must be a whole number`)
  return Number(text)
}

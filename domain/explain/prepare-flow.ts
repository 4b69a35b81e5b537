import { ToolError } from '../../schemas/errors.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { ToolContext } from '../call.js'
import { requireInside } from '../inventory/limited-reading.js'
import { createPolicyLookups } from '../inventory/find-object.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { TCP, UDP, parseProtocol } from '../inventory/protocols.js'
import { loadReferenceNames, type ReferenceNames } from '../inventory/reference-names.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import { workInTurns } from '../text/pace-work.js'
import { findMembers, type Members } from './find-members.js'
import { createPairJudge, type AskedService } from './judge-pair.js'
import { judgeMembers, type FlowVerdict, type VersionJudges } from './judge-members.js'
import { matchProgram } from './match-program.js'
import type { HeldRule } from './place-rules.js'
import { listsInRules, readVersions, type PolicyVersions } from './read-versions.js'
import { resolveEnd, type AskedEnd, type EndReference } from './resolve-end.js'

/** The description of a flow that a caller gave. */
export interface FlowArguments {
  source: EndReference
  destination: EndReference
  port?: number | undefined
  proto: string | number
  process_name?: string | undefined
  windows_service_name?: string | undefined
}

/** A flow with its verdict, and all data from which the verdict was derived. */
export interface JudgedFlow {
  service: AskedService
  labels: LabelIndex
  versions: PolicyVersions
  /** The IP lists that rules use. */
  lists: readonly IpList[]
  ends: { source: AskedEnd; destination: AskedEnd }
  sources: Members
  destinations: Members
  judges: VersionJudges
  verdict: FlowVerdict
}

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/** Returns the hrefs of the labels that all members of one end have; none for an address without a workload. */
function labelsOf(end: AskedEnd): string[] {
  const labels = end.kind === 'labels' ? end.labels : end.kind === 'ip_list' ? [] : end.workload?.labels
  return (labels ?? []).map(({ href }) => href)
}

/**
 * Finds the source and destination of a flow, reads both versions of the policy, and evaluates every pair of members.
 *
 * @throws {ToolError} invalid_argument for a port that does not fit the protocol, for a source and destination that are
 * the same workload, or for an IP list without an address that can be evaluated; no_workloads; out_of_scope if neither
 * end is inside of what a caller with limited reading sees; and the errors of
 * `resolveEnd` and the PCE client.
 */
export async function judgeFlow(ctx: Context, asked: FlowArguments): Promise<JudgedFlow> {
  const { pce, signal } = ctx
  const service = readService(asked)
  const labels = await loadLabels(pce, ctx, 'fresh')
  const lookups = createPolicyLookups(pce, labels, 'draft', signal)
  const source = await resolveEnd(pce, lookups, asked.source, 'source', signal)
  const destination = await resolveEnd(pce, lookups, asked.destination, 'destination', signal)
  await requireInside(pce, 'This flow', labelsOf(source), labelsOf(destination))
  const versions = await readVersions(ctx, labels)
  const lists = listsInRules(versions)
  const sources = await findMembers(pce, source, labels, lists, signal)
  const destinations = await findMembers(pce, destination, labels, lists, signal)
  requireMembers(source, sources, 'source')
  requireMembers(destination, destinations, 'destination')
  const active = createPairJudge(versions.active, service)
  const draft = versions.draft === versions.active ? active : createPairJudge(versions.draft, service)
  const judges = { active, draft }
  const judged = await workInTurns(judgeMembers(judges, sources.members, destinations.members), signal)
  const verdict = { ...judged, isPartial: judged.isPartial || sources.isCut || destinations.isCut }
  if (verdict.pairs === 0) {
    const text = `source and destination are one workload, ${quote(source.name)}; no rule decides about what it sends to itself.`
    throw new ToolError('invalid_argument', text, { argument: 'destination' })
  }
  return {
    service,
    labels,
    versions,
    lists,
    ends: { source, destination },
    sources,
    destinations,
    judges,
    verdict,
  }
}

function readService({
  port,
  proto: given,
  process_name: process,
  windows_service_name: name,
}: FlowArguments): AskedService {
  const proto = parseProtocol(given)
  if (proto === null) {
    const text = `proto: ${quote(String(given))} is neither tcp, udp, icmp nor the number of a protocol.`
    throw new ToolError('invalid_argument', text, { argument: 'proto' })
  }
  const hasPorts = proto === TCP || proto === UDP
  if (hasPorts !== (port !== undefined)) {
    const text = hasPorts ? 'port: tcp and udp need one.' : `port: the protocol ${given} has no ports; leave it out.`
    throw new ToolError('invalid_argument', text, { argument: 'port' })
  }
  for (const [argument, text] of Object.entries({ process_name: process, windows_service_name: name }))
    if (text !== undefined && trimBlanks(text) === '')
      throw new ToolError('invalid_argument', `${argument}: it is blank; omit it if it is not known.`, {
        argument,
      })
  const runs = matchProgram({ process, windowsService: name })
  return { port: port ?? null, proto, ...(runs !== undefined && { runs }) }
}

/**
 * Returns a function that looks up the names of objects to which rules refer. Names that the policy in memory lacks are
 * read from the PCE.
 */
export async function nameReferences(
  ctx: Context,
  { draft, active }: PolicyVersions,
  rules: readonly HeldRule[],
): Promise<ReferenceNames> {
  const known = (href: string) => {
    const label = draft.labelOf(href)
    if (label !== undefined) return { key: label.key, value: label.value }
    const object = draft.listOf(href) ?? draft.serviceOf(href) ?? active.listOf(href) ?? active.serviceOf(href)
    return object === undefined ? undefined : { name: object.name }
  }
  const references = rules.flatMap(({ rule, scopes }) => [
    ...[...rule.providers, ...rule.consumers, ...scopes.flat()].flatMap((actor) => Object.values(actor) as unknown[]),
    ...rule.ingress_services,
    ...(rule.egress_services ?? []),
    ...(rule.consuming_security_principals ?? []),
  ])
  const missing = references.filter(
    (one) => typeof one === 'object' && one !== null && 'href' in one && known(String(one.href)) === undefined,
  )
  const others: ReferenceNames = missing.length === 0 ? () => ({}) : await loadReferenceNames(ctx.pce, missing, ctx)
  return (href) => known(href) ?? others(href)
}

/**
 * Rejects a source or destination without members. It may be an IP list with only domain names or unreadable ranges,
 * whose addresses are not known.
 */
function requireMembers({ name }: AskedEnd, { members, notes }: Members, argument: 'source' | 'destination'): void {
  if (members.length > 0) return
  const text = `${argument}: ${quote(name)} has no address that could be judged. ${notes.join(' ')}`.trimEnd()
  throw new ToolError('invalid_argument', text, { argument }, { hint: 'Give one of its addresses.' })
}

import { countOf } from '../text/count-of.js'
import { protocolName } from '../inventory/protocols.js'
import type { Coverage } from './collect-coverage.js'
import type { WeaklyAllowed } from './count-allowed-by-default.js'
import { coverage, judged } from './tally-decisions.js'

/** What the figures mean and what to do next, by the bands 95, 80 and 50 % (T21). */
export function recommendCoverage(found: Coverage, { byDefault, elsewhere }: WeaklyAllowed): string {
  const { flows } = found.overall.decisions
  const percentage = coverage(flows)
  if (percentage === null) return describeNothing(flows.unknown)
  const missing = judged(flows) - flows.allowed
  return [
    missing === 0 ? 'All traffic seen is allowed.' : `${percentage} % of rows are allowed: ${adviceAt(percentage)}`,
    missing > 0 ? nameBusiest(found) : '',
    nameUnlabelled(found),
    describeDraft(found, missing),
    byDefault > 0
      ? `${countOf(byDefault, 'allowed row')} at workloads in selective mode: allowed may only mean that no deny rule matched.`
      : '',
    elsewhere > 0
      ? `${countOf(elsewhere, 'allowed row')} judged by the other end alone: the workload here is idle or has no agent.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

function describeNothing(unknown: number): string {
  return unknown > 0
    ? `Policy decided on none of ${countOf(unknown, 'row')}: no workload with an agent took part.`
    : 'No traffic was seen in the window, so coverage cannot be told: look further back.'
}

function adviceAt(percentage: number): string {
  if (percentage >= 95) return 'settle the few rows left, then enforce.'
  if (percentage >= 80) return 'allow what is needed of the rest before enforcing.'
  if (percentage >= 50) return 'enforcing now would break much; see uncovered_apps.'
  return 'policy is mostly missing; start with create-ringfence and dry_run.'
}

function nameBusiest({ inbound, outbound }: Coverage): string {
  const [first] = [
    ...inbound.uncovered.services.slice(0, 1).map((service) => ({ ...service, path: 'inbound' })),
    ...outbound.uncovered.services.slice(0, 1).map((service) => ({ ...service, path: 'outbound' })),
  ].sort((a, b) => b.connections - a.connections)
  if (first === undefined) return ''
  const { port, proto, path, connections } = first
  const name = [port, proto === null ? null : protocolName(proto)].filter((part) => part !== null).join('/')
  return `Most of it is ${path} ${name} (${countOf(connections, 'connection')}).`
}

function nameUnlabelled({ inbound }: Coverage): string {
  const { ends } = inbound.uncovered
  if (ends.length === 0) return ''
  return `${countOf(ends.length, 'source')} without app and env labels ${ends.length === 1 ? 'is' : 'are'} among what is not allowed.`
}

function describeDraft({ overall, wouldAllow }: Coverage, missing: number): string {
  if (overall.draft === null || missing === 0) return ''
  if (wouldAllow === 0) return 'The draft policy would allow none of it.'
  return `The draft policy would allow ${wouldAllow} of ${countOf(missing, 'row')}: compare-draft-active shows it.`
}

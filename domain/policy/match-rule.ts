import type { Label } from '../../schemas/pce/label.js'
import type { Actor, DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { anyOf, both, not, type Answer } from './answers.js'
import { matchServices } from './match-service.js'

/** What rules are read with: they name everything by href alone (P20). */
export interface RuleFacts {
  readonly labelOf: (href: string) => Pick<Label, 'key' | 'value'> | undefined
  readonly findService: (href: string) => Service | undefined
  /** Whether a list covers the address of an end. */
  readonly covers: (listHref: string, end: FlowEnd) => Answer
}

/** A rule of any kind, an enforcement boundary among them, with the scopes of its rule set. */
export interface PlacedRule {
  scopes: RuleSet['scopes']
  rule: Pick<DenyRule, 'providers' | 'consumers' | 'ingress_services'> & Partial<Rule>
}

/** Whether any of a number of rules speaks about what a source sends. */
export type SourceMatch = (source: FlowEnd, port: number | null, proto: number | null) => Answer

/** Whether an end bears a label, where labels of that key may not be known. */
type Bears = (label: Pick<Label, 'key' | 'value'>) => Answer

/**
 * Rules as a test of inbound traffic of an application: whether they are written to its workloads, and name the source as a
 * workload or by its address. Of a workload of the application only app and env are known, so a rule for a role is "maybe",
 * as is everything that depends on the network, the user, the program or a label group.
 */
export function matchRules(rules: readonly PlacedRule[], application: readonly Label[], facts: RuleFacts): SourceMatch {
  const ours: Bears = ({ key, value }) => {
    const own = application.find((label) => label.key === key)
    return own === undefined ? 'maybe' : own.value === value ? 'yes' : 'no'
  }
  const placed = rules.flatMap(({ scopes, rule }) =>
    scopes.flatMap((scope) => {
      const here = both(matchLabels(scope, ours, facts), nameWorkload(rule.providers, true, ours, facts))
      const answer = both(rule.all_ips_except_for_in_providers === true ? 'maybe' : here, certainty(rule))
      if (answer === 'no') return []
      const from = rule.unscoped_consumers === true ? [] : scope
      // A virtual service has ports of its own, whatever the rule's are.
      const services = rule.providers.some(isVirtual)
        ? () => 'maybe' as const
        : matchServices(rule.ingress_services, facts.findService)
      return [{ answer, from, rule, services }]
    }),
  )
  const named = new WeakMap<FlowEnd, { answer: Answer; services: ReturnType<typeof matchServices> }[]>()
  return (source, port, proto) => {
    let naming = named.get(source)
    if (naming === undefined) {
      naming = placed.flatMap(({ answer, from, rule, services }) => {
        const match = both(answer, nameSource(rule, from, source, facts))
        return match === 'no' ? [] : [{ answer: match, services }]
      })
      named.set(source, naming)
    }
    return anyOf(naming.map(({ answer, services }) => both(answer, services(port, proto))))
  }
}

function nameSource(
  rule: PlacedRule['rule'],
  scope: RuleSet['scopes'][number],
  source: FlowEnd,
  facts: RuleFacts,
): Answer {
  if (rule.all_ips_except_for_in_consumers === true) return 'maybe'
  const address = rule.consumers.map(({ ip_list: list }) =>
    list === undefined ? 'no' : facts.covers(list.href, source),
  )
  if (source.workload === null) return anyOf([...address, rule.consumers.some(isVirtual) ? 'maybe' : 'no'])
  const bears: Bears = ({ key, value }) => (source.labels[key] === value ? 'yes' : 'no')
  const workload = rule.consumers.map((actor) =>
    actor.workload === undefined ? 'no' : actor.workload.href === source.workload ? 'yes' : 'no',
  )
  const named = anyOf([...workload, nameWorkload(rule.consumers, false, bears, facts)])
  return anyOf([...address, both(matchLabels(scope, bears, facts), named)])
}

/** Whether a side of a rule names a workload. Its labels are one condition, everything else an alternative to it. */
function nameWorkload(actors: readonly Actor[], isAnyWorkload: boolean, bears: Bears, facts: RuleFacts): Answer {
  const labelled = actors.filter((actor) => actor.label !== undefined || actor.label_group !== undefined)
  const excludes = labelled.some(({ exclusion }) => exclusion === true)
  const byLabels = labelled.length > 0 ? matchLabels(labelled, bears, facts) : 'no'
  const others = actors.map((actor): Answer => {
    if (actor.actors === 'ams') return excludes ? 'maybe' : 'yes'
    if (actor.workload !== undefined) return isAnyWorkload ? 'maybe' : 'no'
    return isKnown(actor) ? 'no' : 'maybe'
  })
  return anyOf([byLabels, ...others])
}

/** Labels of one key are alternatives, keys are conditions, exclusions shut out (P19, P20). */
function matchLabels(entries: readonly Actor[], bears: Bears, { labelOf }: RuleFacts): Answer {
  const keys = new Map<string, Answer[]>()
  let answer: Answer = 'yes'
  for (const { label, exclusion } of entries) {
    const known = label === undefined ? undefined : labelOf(label.href)
    if (known === undefined) answer = both(answer, 'maybe')
    else if (exclusion === true) answer = both(answer, not(bears(known)))
    else keys.set(known.key, [...(keys.get(known.key) ?? []), bears(known)])
  }
  // A group or an unknown label may be an alternative to a label of its key.
  const least: Answer = answer === 'maybe' ? 'maybe' : 'no'
  return [...keys.values()].reduce((all, ofKey) => both(all, anyOf([...ofKey, least])), answer)
}

const isVirtual = ({ virtual_service: service, virtual_server: server }: Actor) =>
  service !== undefined || server !== undefined

/** Named by labels or addresses, which are judged elsewhere. */
const isKnown = ({ label, label_group: group, ip_list: list }: Actor) =>
  label !== undefined || group !== undefined || list !== undefined

/** What a rule that matches is worth: yes unless it has conditions that a row does not tell. */
function certainty(rule: PlacedRule['rule']): Answer {
  const resolved = rule.resolve_labels_as
  const isPlain =
    (rule.network_type ?? 'brn') !== 'non_brn' &&
    (rule.egress_services?.length ?? 0) === 0 &&
    (rule.consuming_security_principals?.length ?? 0) === 0 &&
    rule.sec_connect !== true &&
    rule.machine_auth !== true &&
    rule.stateless !== true &&
    (resolved === undefined || (resolved.providers.includes('workloads') && resolved.consumers.includes('workloads')))
  return isPlain ? 'yes' : 'maybe'
}

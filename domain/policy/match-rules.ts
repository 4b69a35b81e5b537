import type { Label } from '../../schemas/pce/label.js'
import type { Actor, DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { OffNetwork } from '../inventory/off-network.js'
import type { Addressed } from './addresses.js'
import { compileServices, type ServiceMatch, type ServiceObjects } from './match-services.js'
import { isSaid } from './default-fields.js'
import { isForUnknownNetwork, unknownFieldsOf } from './rule-conditions.js'
import { anyOf, both, not, unknown, type Answer } from './three-valued.js'

/** Functions that look up, by href, the objects to which rules refer. A policy snapshot implements them. */
export interface PolicyObjects extends ServiceObjects {
  readonly labelOf: (href: string) => Pick<Label, 'key' | 'value'> | undefined
  /** Returns the labels of a group, including those of its sub-groups; undefined if they are not known. */
  readonly membersOf: (groupHref: string) => readonly Pick<Label, 'key' | 'value'>[] | undefined
  readonly covers: (listHref: string, end: Addressed) => Answer
}

/** One end of a connection. A `FlowEnd` can be used as an `End`. */
export interface End extends Addressed {
  /** The href of the workload; null for an address without a workload. */
  readonly workload: string | null
  /** The values of the labels of this end, by label key. */
  readonly labels: Readonly<Record<string, string>>
  /**
   * True if this end stands for any workload with these labels, so that its other labels and its address are unknown.
   */
  readonly isSome?: boolean
  /** Whether the host is off the corporate network (P107). If absent, it is on that network. */
  readonly offNetwork?: OffNetwork
  /** True if it is not known whether this end is a workload at all. */
  readonly isUnsure?: boolean
}

/** Creates an `End` that stands for any workload with these labels, for example with those of an application. */
export const someWorkloadWith = (labels: readonly Pick<Label, 'key' | 'value'>[]): End => ({
  workload: '',
  labels: Object.fromEntries(labels.map(({ key, value }) => [key, value])),
  ip: null,
  fqdn: null,
  isSome: true,
})

/**
 * A rule of any type, or an enforcement boundary, with the scopes of its rule set. It may be disabled and thus not in
 * force.
 */
export interface PlacedRule {
  scopes: RuleSet['scopes']
  rule: Pick<DenyRule, 'providers' | 'consumers' | 'ingress_services'> & Partial<Rule>
}

/**
 * A function that returns whether any of a set of rules matches traffic from the given source to one fixed destination.
 */
export type SourceMatch = (source: End, port: number | null, proto: number | null) => Answer

/**
 * The functions that result from matching rules against a destination. The PCE sends a rule to the workloads that it
 * names. They enforce the rule and receive its other side as a set of addresses. So a rule whose consumer is an IP list
 * is sent to the destinations only, whereas a rule whose consumers are all workloads is also sent to every managed
 * source.
 */
export interface RuleMatch {
  /** Tests those rules sent to the destination that name the source, as a workload or by its address. */
  atDestination: SourceMatch
  /**
   * Works like `atDestination`, but tests only rules that name the source by its address and are therefore not sent to
   * the source.
   */
  byAddress: SourceMatch
  /** Tests those rules sent to the source that name the destination, as a workload or by its address. */
  atSource: SourceMatch
  /** Works like `atSource`, but tests only rules that name the destination by its address. */
  toAddress: SourceMatch
}

type Side = 'providers' | 'consumers'

/** For each way in which a side of a rule can name an end of a connection, whether it does. */
export interface Naming {
  asWorkload: Answer
  asAddress: Answer
  /** Whether the side names the end as a workload behind a virtual service, which has its own ports. */
  asVirtual: Answer
}

/**
 * Prepares rules as tests for traffic to `destination`. Answers may be undecided, with reasons. Labels with the same
 * key are alternatives, labels with different keys must all match, and no excluded label may match. All workloads,
 * single workloads and IP lists are alternatives to the labels on the same side of the rule. The scopes of a rule set
 * are alternatives too: one of them must contain both ends, or only the destination if the rule has
 * `unscoped_consumers`.
 */
export function matchRules(rules: readonly PlacedRule[], destination: End, objects: PolicyObjects): RuleMatch {
  const placed = rules.flatMap(({ scopes, rule }) =>
    scopes.flatMap((scope) => {
      const there = nameEnd(rule, 'providers', scope, destination, objects)
      if (atAll(there) === 'no') return []
      const outer = rule.unscoped_consumers === true ? [] : scope
      return [
        { rule, outer, there, condition: conditionOf(rule), services: compileServices(rule.ingress_services, objects) },
      ]
    }),
  )
  const namings = new WeakMap<End, Naming[]>()
  const nameSource = (source: End): Naming[] => {
    const known =
      namings.get(source) ?? placed.map(({ rule, outer }) => nameEnd(rule, 'consumers', outer, source, objects))
    namings.set(source, known)
    return known
  }
  const match = (speaks: Speaks): SourceMatch => {
    const known = new WeakMap<End, { answer: Answer; services: ServiceMatch }[]>()
    const read = (source: End) =>
      nameSource(source).flatMap((here, at) => {
        const { rule, there, services, ...held } = placed[at] as (typeof placed)[number]
        const condition = both(held.condition, onNetworkOf(rule, source, destination))
        const { plain, virtual } = speaks(here, there)
        return [
          { answer: both(plain, condition), services },
          // A virtual service has its own ports, so the ports of the rule do not apply.
          { answer: both(virtual, condition), services: EVERY_PORT },
        ].filter(({ answer }) => answer !== 'no')
      })
    return (source, port, proto) => {
      const spoken = known.get(source) ?? read(source)
      known.set(source, spoken)
      return anyOf(spoken.map(({ answer, services }) => both(answer, services(port, proto))))
    }
  }
  return {
    atDestination: match((here, there) => speak(there, atAll(here))),
    byAddress: match((here, there) => speak(there, here.asAddress)),
    atSource: match((here, there) => {
      const plain = anyOf([there.asWorkload, there.asAddress])
      return speak({ asWorkload: plain, asVirtual: there.asVirtual }, written(here))
    }),
    toAddress: match((here, there) =>
      speak({ asWorkload: there.asAddress, asVirtual: there.asVirtual }, written(here)),
    ),
  }
}

/**
 * Returns two answers: whether a rule matches with its own services (`plain`), and whether it matches with those of a
 * virtual service (`virtual`).
 */
type Speaks = (here: Naming, there: Naming) => { plain: Answer; virtual: Answer }

const speak = ({ asWorkload, asVirtual }: Pick<Naming, 'asWorkload' | 'asVirtual'>, other: Answer) => ({
  plain: both(asWorkload, other),
  virtual: both(asVirtual, other),
})

const atAll = ({ asWorkload, asAddress, asVirtual }: Naming) => anyOf([asWorkload, asAddress, asVirtual])
const written = ({ asWorkload, asVirtual }: Naming) => anyOf([asWorkload, asVirtual])

const EVERY_PORT: ServiceMatch = () => 'yes'

/** Returns how one side of a rule names an end within one scope of its rule set. An empty scope restricts nothing. */
export function nameEnd(
  rule: PlacedRule['rule'],
  side: Side,
  scope: RuleSet['scopes'][number],
  end: End,
  objects: PolicyObjects,
): Naming {
  const actors = rule[side]
  // If a side covers all addresses except some, its IP lists are the exceptions. What other entries on such a side mean
  // is not documented.
  if (rule[`all_ips_except_for_in_${side}`] === true) {
    const open = unknown('inverted')
    return { asWorkload: end.workload === null ? 'no' : open, asAddress: open, asVirtual: 'no' }
  }
  const isWorkload: Answer = end.workload === null ? 'no' : end.isUnsure === true ? unknown('pod') : 'yes'
  const inScope = both(isWorkload, matchLabels(scope, end, objects))
  const lists = actors.map(({ ip_list: list }) => (list === undefined ? 'no' : objects.covers(list.href, end)))
  const bySubnet = rule.use_workload_subnets?.includes(side) === true && actors.some((actor) => !isList(actor))
  return {
    asWorkload: both(inScope, nameWorkload(rule, actors, side, end, objects)),
    asAddress: anyOf([...lists, bySubnet ? unknown('subnets') : 'no']),
    // A scope selects virtual services by their own labels, which this server does not know.
    asVirtual: isWorkload !== 'no' && mayBeVirtual(rule, side) ? unknown('virtual_service') : 'no',
  }
}

const isList = ({ ip_list: list }: Actor) => list !== undefined

/** Returns true if a side of a rule names a virtual service or server, or if its labels stand for virtual services. */
export const mayBeVirtual = ({ resolve_labels_as: resolved, ...rule }: PlacedRule['rule'], side: Side): boolean =>
  rule[side].some(
    (actor) =>
      actor.virtual_service !== undefined ||
      actor.virtual_server !== undefined ||
      (!isList(actor) && actor.workload === undefined && resolved?.[side].includes('virtual_services') === true),
  )

/**
 * Returns whether a side of a rule names a workload. The labels on the side together form one condition, and every
 * other entry is an alternative to this condition.
 */
function nameWorkload(
  { resolve_labels_as: resolved }: PlacedRule['rule'],
  actors: readonly Actor[],
  side: Side,
  end: End,
  objects: PolicyObjects,
): Answer {
  const labelled = actors.filter((actor) => actor.label !== undefined || actor.label_group !== undefined)
  const excludes = labelled.some(({ exclusion }) => exclusion === true)
  const byLabels = labelled.length > 0 ? matchLabels(labelled, end, objects) : 'no'
  const all = actors.some((actor) => actor.actors === 'ams') ? (excludes ? unknown('exclusion') : 'yes') : 'no'
  const stands = resolved === undefined || resolved[side].includes('workloads') ? 'yes' : unknown('resolution')
  return anyOf([both(anyOf([byLabels, all]), stands), ...actors.map((actor) => nameOne(actor, end))])
}

/**
 * Returns whether an entry of a rule names an end as a single workload. Labels and "all workloads" are matched
 * elsewhere.
 */
function nameOne(actor: Actor, { workload, isSome }: End): Answer {
  if (actor.workload !== undefined) {
    if (isSome === true) return unknown('workload')
    return actor.workload.href === workload ? 'yes' : 'no'
  }
  const isElsewhere = [actor.label, actor.label_group, actor.ip_list, actor.virtual_service, actor.virtual_server].some(
    (selector) => selector !== undefined,
  )
  return isElsewhere || actor.actors === 'ams' ? 'no' : unknown('selector')
}

/**
 * Returns whether the PCE sends a rule to an end. It does if the given side of the rule names the end as a workload
 * within the scopes of the rule set.
 */
export function isWrittenTo({ scopes, rule }: PlacedRule, side: Side, end: End, objects: PolicyObjects): Answer {
  const within = side === 'consumers' && rule.unscoped_consumers === true ? [[]] : scopes
  return anyOf(within.map((scope) => written(nameEnd(rule, side, scope, end, objects))))
}

/**
 * Returns false if the providers of a rule consist of addresses alone, so that the PCE sends the rule to no workload as
 * destination. As an allow rule, it lets sources connect, but lets nothing in at a workload.
 */
export const mayLetIn = (placed: PlacedRule, objects: PolicyObjects): boolean =>
  isWrittenTo(placed, 'providers', someWorkloadWith([]), objects) !== 'no'

/** Works like `isWrittenTo`, but leaves out virtual services, whose workloads the caller looks up. */
export function isWrittenInside({ scopes, rule }: PlacedRule, side: Side, end: End, objects: PolicyObjects): Answer {
  const within = side === 'consumers' && rule.unscoped_consumers === true ? [[]] : scopes
  return anyOf(within.map((scope) => nameEnd(rule, side, scope, end, objects).asWorkload))
}

/**
 * Returns how one side of a rule names an end within the scopes of its rule set: as a workload, to which the PCE then
 * sends the rule, or by address through an IP list.
 */
export function namesAt(
  { scopes, rule }: PlacedRule,
  side: Side,
  end: End,
  objects: PolicyObjects,
): { asWorkload: Answer; byAddress: Answer } {
  const within = side === 'consumers' && rule.unscoped_consumers === true ? [[]] : scopes
  const namings = within.map((scope) => nameEnd(rule, side, scope, end, objects))
  return { asWorkload: anyOf(namings.map(written)), byAddress: anyOf(namings.map(({ asAddress }) => asAddress)) }
}

type LabelEntry = Pick<Actor, 'label' | 'label_group' | 'exclusion'>

/**
 * Matches the labels of an end against labels and label groups. Labels with the same key are alternatives, labels with
 * different keys must all match, and no excluded label may match. A group stands for its members.
 */
export function matchLabels(entries: readonly LabelEntry[], end: End, objects: PolicyObjects): Answer {
  const keys = new Map<string, Answer[]>()
  const doubts: Answer[] = []
  const exclusions: Answer[] = []
  for (const { label, label_group: group, exclusion } of entries) {
    const members =
      label !== undefined ? [objects.labelOf(label.href)] : group === undefined ? [] : objects.membersOf(group.href)
    const known = (members ?? []).filter((member) => member !== undefined)
    const [first] = known
    if (first === undefined) {
      const doubt = unknown(label === undefined ? 'label_group' : 'label')
      if (exclusion === true) exclusions.push(doubt)
      else doubts.push(doubt)
      continue
    }
    const bears = anyOf(known.map((member) => bearsLabel(end, member)))
    if (exclusion === true)
      exclusions.push(bears === 'no' && isUnlabelled(end, first.key) ? unknown('exclusion') : not(bears))
    else keys.set(first.key, [...(keys.get(first.key) ?? []), bears])
  }
  // A label that is not known may be an alternative to a known one with the same key, or a condition of its own.
  const least = doubts.reduce<Answer>((all, doubt) => (all === 'no' ? doubt : both(all, doubt)), 'no')
  const wanted = [...keys.values()].map((ofKey) => anyOf([...ofKey, least]))
  return [...wanted, ...exclusions, ...doubts].reduce(both, 'yes')
}

/**
 * Returns true if an end has no label with this key. Whether a rule that excludes labels with this key also excludes
 * such an end is not known (P65).
 */
const isUnlabelled = ({ labels }: End, key: string) => labels[key] === undefined

function bearsLabel({ labels, isSome }: End, { key, value }: Pick<Label, 'key' | 'value'>): Answer {
  const own = labels[key]
  if (own === undefined) return isSome === true ? unknown('label') : 'no'
  return own === value ? 'yes' : 'no'
}

/**
 * Returns whether a rule applies to the networks of both ends. By default, a rule is for the corporate network. It is
 * only assumed that such a rule does not reach hosts off this network (P107), so the answer for such a host is
 * undecided.
 */
function onNetworkOf({ network_type: network }: PlacedRule['rule'], source: End, destination: End): Answer {
  return isSaid(network) && network !== 'brn' ? 'yes' : onCorporateNetwork(source, destination)
}

/** Returns whether a rule for the corporate network, which is the default, applies to the networks of both ends. */
export function onCorporateNetwork(source: Pick<End, 'offNetwork'>, destination: Pick<End, 'offNetwork'>): Answer {
  const isInside = [source, destination].every(({ offNetwork = 'no' }) => offNetwork === 'no')
  return isInside ? 'yes' : unknown('off_network')
}

/**
 * Combines the answers about conditions of a rule that a traffic row does not show, such as process, user or network.
 */
function conditionOf(rule: PlacedRule['rule']): Answer {
  const conditions: [boolean, Answer][] = [
    [rule.network_type === 'non_brn' || isForUnknownNetwork(rule), unknown('network')],
    [(rule.egress_services?.length ?? 0) > 0, unknown('process')],
    [(rule.consuming_security_principals?.length ?? 0) > 0, unknown('user')],
    [rule.sec_connect === true || rule.machine_auth === true, unknown('encryption')],
    [rule.stateless === true, unknown('stateless')],
    [unknownFieldsOf(rule).length > 0, unknown('field')],
  ]
  return conditions
    .filter(([is]) => is)
    .map(([, answer]) => answer)
    .reduce(both, 'yes')
}

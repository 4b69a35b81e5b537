import type { ReferenceNames } from '../inventory/reference-names.js'
import { readRanges } from '../policy/addresses.js'
import { joinIntervals, type Interval } from '../policy/classify-numbers.js'
import { subtractIntervals } from '../policy/intervals.js'
import type { PolicyCatalog } from '../policy/load-snapshot.js'
import { matchLabels, mayBeVirtual, nameEnd, type End, type PlacedRule } from '../policy/match-rules.js'
import { NO_ADDRESSES, uniteAddresses, type AddressSet } from '../policy/name-addresses.js'
import { nameReference } from '../policy/name-reference.js'
import { isUnknown, listReasons, type Answer } from '../policy/three-valued.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import type { Steps } from '../text/pace-work.js'
import type { Machine, MachineClass, Machines } from './group-machines.js'

/** The meaning of one side of a rule within one scope. */
export interface Side {
  addresses: AddressSet
  /** Phrases for everything that the side names, or may name, and that `addresses` does not contain. */
  besides: readonly string[]
  /** The kinds of things that the side names and that `addresses` does not contain. Answers count them by kind. */
  lacks: readonly Lack[]
  /** The workloads that the side names. */
  named: Group
  /** The workloads for which it is uncertain whether the side names them. */
  undecided: Group
}

/** A set of workloads: all workloads of some classes, given by the index of the class, and individual workloads. */
export interface Group {
  classes: readonly number[]
  single: readonly Machine[]
}

/** The kinds of things that a rule can name and that cannot be written as addresses. */
export type Lack = 'domain_names' | 'ip_lists' | 'virtual_services' | 'subnets' | 'all_but_some' | 'undecided'

type Scope = PlacedRule['scopes'][number]
type SideName = 'providers' | 'consumers'

/** A function that resolves one side of a rule to addresses. */
export type ResolveSide = (rule: PlacedRule['rule'], side: SideName, scope: Scope) => Steps<Side>

/** Number of classes that are compared with a rule in one step of work. */
const CLASSES_PER_STEP = 200
/** Maximum number of names that a phrase lists. */
const MOST_NAMES = 5

/** A virtual service with its name, as an end of a connection that labels can select. */
export interface Virtual {
  href: string
  name: string
  end: End
}

/** What is needed to resolve the sides of rules. */
interface Surroundings {
  machines: Machines
  policy: PolicyCatalog
  /** The virtual services of the policy version. The workloads behind them are not known. */
  virtual: readonly Virtual[]
  names: ReferenceNames
  /**
   * If given, only workloads of these classes count, and only if the side names them as workloads, not through an IP
   * list. The PCE sends rules only to workloads named in this way.
   */
  isMeant?: (one: MachineClass) => boolean
}

/** Creates a function that resolves the sides of rules. Equal sides are resolved only once. */
export function createSideResolver({ machines, policy, virtual, names, isMeant }: Surroundings): ResolveSide {
  const { classes, byHref } = machines
  const known = new Map<string, Side>()
  const meant = classes.flatMap((one, at) => (isMeant === undefined || isMeant(one) ? [at] : []))
  const isIn = new Set(meant)
  return function* (rule, side, scope) {
    const { [side]: actors, resolve_labels_as: resolved, use_workload_subnets: subnets } = rule
    const isInverted = rule[`all_ips_except_for_in_${side}`] === true
    const id = JSON.stringify([side, scope, actors, resolved?.[side], subnets?.includes(side), isInverted])
    const before = known.get(id)
    if (before !== undefined) return before
    const named = { classes: [] as number[], single: [] as Machine[] }
    const undecided = { classes: [] as number[], single: [] as Machine[] }
    const doubts: Answer[] = []
    const alone = new Set(actors.flatMap(({ workload }) => (workload === undefined ? [] : [workload.href])))
    const apart = new Map<number, Set<string>>()
    for (const href of alone) {
      const at = byHref.get(href)?.at
      if (at !== undefined) apart.set(at, (apart.get(at) ?? new Set()).add(href))
    }
    const take = (answer: Answer, add: (group: typeof named) => void) => {
      if (answer === 'yes') add(named)
      if (!isUnknown(answer)) return
      doubts.push(answer)
      add(undecided)
    }
    for (const [count, at] of meant.entries()) {
      if (count % CLASSES_PER_STEP === 0) yield
      const { end } = classes[at] as MachineClass
      take(nameEnd(rule, side, scope, end, policy).asWorkload, (group) => group.classes.push(at))
    }
    // A rule may name a workload individually, whether or not it names the other workloads with the same labels.
    const whole = new Set(named.classes)
    for (const [at, hrefs] of apart) {
      if (!isIn.has(at) || whole.has(at)) continue
      const { end } = classes[at] as MachineClass
      for (const href of hrefs) {
        const { machine } = byHref.get(href) as { machine: Machine }
        const answer = nameEnd(rule, side, scope, { ...end, workload: href }, policy).asWorkload
        take(answer, (group) => group.single.push(machine))
      }
    }
    const isLocal = isMeant !== undefined
    const lists =
      isLocal || isInverted ? [] : actors.flatMap(({ ip_list: list }) => (list ? [readList(list.href)] : []))
    const odd = isInverted && !isLocal ? [invertedPhrase()] : []
    const besides: [Lack, string][] = [
      ...lists.flatMap((list) => list.besides),
      ...odd,
      ...virtualsOf(rule, side, scope),
      ...(!isLocal && subnets?.includes(side) === true && actors.some(({ ip_list: list }) => list === undefined)
        ? [['subnets', `the subnets of its ${side}`] as [Lack, string]]
        : []),
      ...phraseOfUndecided(),
    ]
    const found: Side = {
      addresses: uniteAddresses([...lists.map(({ addresses }) => addresses), addressesOf(named)]),
      besides: besides.map(([, phrase]) => phrase),
      lacks: [...new Set(besides.map(([lack]) => lack))],
      named,
      undecided,
    }
    known.set(id, found)
    return found

    function invertedPhrase(): [Lack, string] {
      const excepted = actors.map((actor) => nameOf(actor.ip_list ?? actor)).join(', ')
      return ['all_but_some', `all addresses but those in ${excepted}`]
    }

    function phraseOfUndecided(): [Lack, string][] {
      const count = undecided.classes.reduce((sum, at) => sum + (classes[at] as MachineClass).machines.length, 0)
      const total = count + undecided.single.length
      return total === 0 ? [] : [['undecided', `perhaps ${countOf(total, 'workload')} (${listReasons(doubts)})`]]
    }
  }

  function addressesOf({ classes: own, single }: Group): AddressSet {
    const ofClasses = own.map((at) => (classes[at] as MachineClass).addresses)
    return uniteAddresses([...ofClasses, ...single.map(({ addresses }) => addresses)])
  }

  function nameOf(target: unknown): string {
    return quote(nameReference(target, names) ?? 'something else')
  }

  /**
   * Lists the virtual services and servers that a side names: by href, or by labels that stand for virtual services. A
   * scope selects them by their own labels.
   */
  function virtualsOf(rule: PlacedRule['rule'], side: SideName, scope: Scope): [Lack, string][] {
    if (!mayBeVirtual(rule, side)) return []
    const hrefs = new Set(rule[side].flatMap(({ virtual_service: one }) => (one === undefined ? [] : [one.href])))
    const labelled = rule[side].filter(({ label, label_group: group }) => label !== undefined || group !== undefined)
    const isByLabel = labelled.length > 0 && rule.resolve_labels_as?.[side].includes('virtual_services') === true
    const found = virtual.filter(({ href, end }) => {
      const isNamed = hrefs.has(href) || (isByLabel && matchLabels(labelled, end, policy) !== 'no')
      return isNamed && matchLabels(scope, end, policy) !== 'no'
    })
    const unread = [...hrefs].filter((href) => !virtual.some((one) => one.href === href))
    const servers = rule[side].flatMap(({ virtual_server: server }) => (server === undefined ? [] : [server]))
    return [
      ...listSome(
        'virtual service',
        found.map(({ name }) => quote(name)),
      ),
      ...listSome(
        'virtual service',
        unread.map((href) => nameOf({ href })),
      ),
      ...listSome('virtual server', servers.map(nameOf)),
    ]
  }

  function readList(href: string): { addresses: AddressSet; besides: [Lack, string][] } {
    const list = policy.listOf(href)
    const name = nameOf(list ?? { href })
    if (list === undefined)
      return { addresses: NO_ADDRESSES, besides: [['ip_lists', `IP list ${name}, which could not be read`]] }
    const ranges = readRanges(list.ip_ranges)
    const patterns = (list.fqdns ?? []).map(({ fqdn }) => quote(fqdn))
    const besides: [Lack, string][] = [
      ...(patterns.length > 0
        ? [['domain_names', `the domain names ${nameSome(patterns)} of IP list ${name}`] as [Lack, string]]
        : []),
      ...(ranges.includes(null)
        ? [['ip_lists', `IP list ${name}, which has unreadable ranges`] as [Lack, string]]
        : []),
      ...(ranges.length === 0 && patterns.length === 0
        ? [['ip_lists', `IP list ${name}, which has no addresses`] as [Lack, string]]
        : []),
    ]
    const of = (family: 'ipv4' | 'ipv6'): Interval[] => {
      const own = ranges.filter((range) => range?.family === family).filter((range) => range !== null)
      const taken = own.filter(({ exclusion }) => exclusion)
      return subtractIntervals(joinIntervals(own.filter(({ exclusion }) => !exclusion)), taken)
    }
    return { addresses: { ipv4: of('ipv4'), ipv6: of('ipv6') }, besides }
  }
}

const listSome = (noun: string, named: readonly string[]): [Lack, string][] =>
  named.length === 0 ? [] : [['virtual_services', `${noun} ${nameSome(named)}`]]

function nameSome(named: readonly string[]): string {
  const more = named.length - MOST_NAMES
  return `${named.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

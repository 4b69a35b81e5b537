import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { TrafficFlow, TrafficQuery, TrafficSelector, TrafficServiceFilter } from '../../schemas/pce/traffic.js'
import {
  isUnresolved,
  loadLabels,
  resolveLabel,
  unresolvedFilter,
  type LabelIndex,
  type LabelReference,
  type ReadContext,
  type UnresolvedLabel,
} from '../inventory/labels.js'
import { sameAddress } from '../inventory/parse-addresses.js'
import { createPolicyLookups, type PolicyLookups } from '../inventory/find-object.js'
import { parseProtocol, TCP, UDP } from '../inventory/protocols.js'
import { quote } from '../text/escape-text.js'
import { fileName } from './file-name.js'
import { readServiceText } from './read-service-text.js'
import { resolveTrafficTerm, type TermPlace, type TrafficTerm } from './resolve-filter-term.js'

/**
 * The filter references that a caller gave. A flat list is one set of conditions. A list of lists, or of strings such
 * as `app=a&env=b`, contains alternative blocks, which are sent to the PCE unchanged (T7).
 */
type IncludeReferences = readonly (LabelReference | readonly LabelReference[])[]

interface TrafficFilterArguments {
  include_sources?: IncludeReferences
  exclude_sources?: readonly LabelReference[]
  include_destinations?: IncludeReferences
  exclude_destinations?: readonly LabelReference[]
  network?: readonly string[]
  client_type?: readonly string[]
  process_name?: readonly string[]
  user_name?: readonly string[]
}

export interface TrafficFilters {
  sources: TrafficQuery['sources']
  destinations: TrafficQuery['destinations']
  /**
   * Returns whether a row passes the filters that the PCE cannot apply: networks in CIDR form, whole names of processes
   * and users, and the network and type of the agent that reported the row. The function is undefined if the caller
   * gave no such filters.
   */
  keeps?: (flow: TrafficFlow) => boolean
  /** The filters that `keeps` applies, for messages, such as `include_sources 10.0.0.0/8`. */
  appliedToRows: string[]
}

/** Maximum number of alternatives on one side of a query. More would overload any PCE. */
const MAX_BLOCKS = 1_000
/** Maximum number of conditions in one block. */
const MAX_CONDITIONS = 50
/** Maximum number of suggestions for each reference that was not found. */
const MAX_VALID_VALUES = 25

/**
 * Converts the filters of a caller to the form that the PCE accepts.
 * @throws {ToolError} unresolved_label_filter with all references that cannot be resolved; invalid_argument for a list
 * that mixes blocks with single references or expands to too many combinations, and for an empty network, client type,
 * process or user name.
 */
export async function resolveTrafficFilters(
  pce: PceClient,
  args: TrafficFilterArguments,
  context: ReadContext,
): Promise<TrafficFilters> {
  requireNames(args)
  const attempt = (index: LabelIndex) => build(createPolicyLookups(pce, index, 'active', context.signal), args)
  const first = await attempt(await loadLabels(pce, context))
  const built = 'unresolved' in first ? await attempt(await loadLabels(pce, context, 'fresh')) : first
  if (!('unresolved' in built)) return built
  throw unresolvedFilter(built.unresolved, MAX_VALID_VALUES)
}

async function build(
  lookups: PolicyLookups,
  args: TrafficFilterArguments,
): Promise<TrafficFilters | { unresolved: UnresolvedLabel[] }> {
  const unresolved: UnresolvedLabel[] = []
  const terms = async (references: readonly LabelReference[], place: TermPlace): Promise<TrafficTerm[]> => {
    const found: TrafficTerm[] = []
    for (const reference of references) {
      const term = await resolveTrafficTerm(lookups, reference, place)
      if ('valid' in term) unresolved.push(term)
      else found.push(term)
    }
    return found
  }
  const side = async (name: 'sources' | 'destinations') => {
    const include = args[`include_${name}`] ?? []
    const blocks = toBlocks(splitTexts(include, lookups.labels), `include_${name}`)
    const found: TrafficTerm[][] = []
    for (const list of blocks.lists) found.push(await terms(list, { side: name, mode: 'include' }))
    const included = blocks.nested ? found : multiplyOut(found.flat(), `include_${name}`)
    const excluded = await terms(args[`exclude_${name}`] ?? [], { side: name, mode: 'exclude' })
    return planSide(name, included, excluded, blocks.nested)
  }
  const sources = await side('sources')
  const destinations = await side('destinations')
  if (unresolved.length > 0) return { unresolved }
  const { keeps: keepsSource, appliedToRows: ofSources } = sources
  const { keeps: keepsDestination, appliedToRows: ofDestinations } = destinations
  const tests = [
    ...(keepsSource === undefined ? [] : [({ src }: TrafficFlow) => keepsSource(src.ip)]),
    ...(keepsDestination === undefined ? [] : [({ dst }: TrafficFlow) => keepsDestination(dst.ip)]),
    ...reporterTests(args),
  ]
  const reporter = REPORTED.flatMap((name) => (args[name] ?? []).map((value) => `${name} ${value}`))
  return {
    sources: sources.query,
    destinations: destinations.query,
    ...(tests.length === 0 ? {} : { keeps: (flow) => tests.every((test) => test(flow)) }),
    appliedToRows: [...ofSources, ...ofDestinations, ...reporter],
  }
}

/**
 * The filters that concern the agent that reported a row: its network, its type, and the program and user at its end of
 * the connection.
 */
const REPORTED = ['network', 'client_type', 'process_name', 'user_name'] as const

/** Throws invalid_argument for an empty name. No row has an empty name, so such a filter would leave out every row. */
function requireNames(args: TrafficFilterArguments): void {
  for (const argument of REPORTED) {
    const index = (args[argument] ?? []).findIndex((name) => name.trim() === '')
    if (index === -1) continue
    throw new ToolError('invalid_argument', `${argument}[${index}] is an empty name; leave it out.`, {
      argument,
      index,
    })
  }
}

/**
 * Returns tests that select rows by the reporting agent: by its network (name or href), its type, the program (path or
 * file name) and the user. Whole names are compared, and case is ignored.
 */
function reporterTests(args: TrafficFilterArguments): ((flow: TrafficFlow) => boolean)[] {
  const fold = (text: unknown) => (typeof text === 'string' ? text.trim().toLowerCase() : '')
  const test = (argument: (typeof REPORTED)[number], textsOf: (flow: TrafficFlow) => unknown[]) => {
    const words = new Set((args[argument] ?? []).map(fold))
    return words.size === 0 ? [] : [(flow: TrafficFlow) => textsOf(flow).some((text) => words.has(fold(text)))]
  }
  return [
    ...test('network', ({ network }) => [network?.name, network?.href]),
    ...test('client_type', ({ client_type: type }) => [type]),
    ...test('process_name', ({ service: { process_name: path } }) => [path, path && fileName(path)]),
    ...test('user_name', ({ service: { user_name: user } }) => [user]),
  ]
}

/**
 * Matches the `&` that separates two conditions of a block. A `&` that is part of a name is not followed by another
 * condition.
 */
const NEXT_CONDITION = /&(?=\s*(?:[^=&:/\s]+=|(?:iplist|labelgroup|workload):|\/orgs\/))/

/**
 * Converts strings such as `app=a&env=b` to blocks. If at least one string is such a block, every other string becomes
 * a block with one condition. A string that is exactly a label always means that label, even if it contains `&`.
 */
function splitTexts(include: IncludeReferences, labels: LabelIndex): IncludeReferences {
  const isBlock = (entry: unknown): entry is string =>
    typeof entry === 'string' && NEXT_CONDITION.test(entry) && isUnresolved(resolveLabel(labels, entry))
  if (!include.some(isBlock)) return include
  return include.map((entry) => (isBlock(entry) ? entry.split(NEXT_CONDITION) : isList(entry) ? entry : [entry]))
}

const isList = (entry: IncludeReferences[number]): entry is readonly LabelReference[] => Array.isArray(entry)

function toBlocks(
  include: IncludeReferences,
  argument: string,
): { nested: boolean; lists: (readonly LabelReference[])[] } {
  const lists = include.filter(isList)
  if (lists.some((list) => list.length > MAX_CONDITIONS)) {
    throw new ToolError('invalid_argument', `A list in ${argument} has more than ${MAX_CONDITIONS} conditions.`, {
      argument,
    })
  }
  if (lists.length === 0) return { nested: false, lists: [include as LabelReference[]] }
  if (lists.length === include.length) return { nested: true, lists }
  throw new ToolError(
    'invalid_argument',
    `${argument} mixes single references with lists. Give one flat list, or lists only.`,
    {
      argument,
    },
  )
}

/**
 * Expands terms to blocks. Terms of the same group are alternatives, and every block gets one term from each group:
 * [app=a, app=b, env=p] becomes (a and p) or (b and p).
 */
function multiplyOut(terms: readonly TrafficTerm[], argument: string): TrafficTerm[][] {
  const groups = new Map<string, TrafficTerm[]>()
  for (const term of terms) groups.set(term.group, [...(groups.get(term.group) ?? []), term])
  const count = [...groups.values()].reduce((product, group) => product * group.length, 1)
  if (count > MAX_BLOCKS) {
    throw new ToolError(
      'invalid_argument',
      `${argument} multiplies out to ${count} combinations, more than ${MAX_BLOCKS}.`,
      { argument },
    )
  }
  return [...groups.values()].reduce<TrafficTerm[][]>(
    (blocks, group) => blocks.flatMap((block) => group.map((term) => [...block, term])),
    [[]],
  )
}

/** The filter for one side of a traffic query, and the test that this server must apply to the rows itself. */
interface SidePlan {
  query: TrafficQuery['sources']
  /**
   * Returns whether an address passes the filters that the PCE cannot apply. The function is undefined if there are no
   * such filters.
   */
  keeps?: (ip: string) => boolean
  appliedToRows: string[]
}

/**
 * Separates the filters that the PCE can apply from those that this server must test on each row. If a list includes a
 * network, this server also tests the single addresses in the list, because the PCE would otherwise leave out the flows
 * of the network.
 * @throws {ToolError} invalid_argument if a network is in one of several blocks (`nested`), because a row does not show
 * which block it matched.
 */
function planSide(
  name: 'sources' | 'destinations',
  included: TrafficTerm[][],
  excluded: TrafficTerm[],
  nested: boolean,
): SidePlan {
  const networks = included.flat().filter((term) => term.network !== undefined)
  if (nested && networks.length > 0 && included.length > 1) {
    throw new ToolError(
      'invalid_argument',
      `include_${name} has the network ${quote(networks[0]?.ref ?? '')} in one of several blocks, and the PCE cannot filter by network.`,
      { argument: `include_${name}` },
      { hint: 'Use one flat list, or an IP list that contains the network (iplist:<name>).' },
    )
  }
  const local = networks.length > 0 ? included.flat().filter(({ group }) => group === 'address') : []
  const tests = [...new Map(local.map((term) => [term.ref, term])).values()].map((term) => toTest(term))
  const refused = excluded.filter((term) => term.network !== undefined)
  const refusals = refused.map((term) => toTest(term))
  const blocks = included.map((block) => block.filter((term) => !local.includes(term)).flatMap(toSelector))
  const include = [...new Map(blocks.map((block) => [JSON.stringify(block), block])).values()]
  const matchesAny = nested
    ? (ip: string) => tests.every((test) => test(ip))
    : (ip: string) => tests.some((test) => test(ip))
  const keeps = (ip: string) => (tests.length === 0 || matchesAny(ip)) && !refusals.some((test) => test(ip))
  return {
    query: { include: include.length > 0 ? include : [[]], exclude: excluded.flatMap(toSelector) },
    ...(tests.length + refusals.length > 0 ? { keeps } : {}),
    appliedToRows: [
      ...[...new Set(local.map(({ ref }) => ref))].map((ref) => `include_${name} ${ref}`),
      ...refused.map(({ ref }) => `exclude_${name} ${ref}`),
    ],
  }
}

function toTest({ ref, network }: TrafficTerm): (ip: string) => boolean {
  return network?.matches ?? ((ip) => sameAddress(ip, ref))
}

function toSelector({ selector }: TrafficTerm): TrafficSelector[] {
  return selector === undefined ? [] : [selector]
}

/** A service filter of a caller: ports, a protocol, or part of a process path or Windows service name. */
interface TrafficServiceArgument {
  port?: number
  to_port?: number
  proto?: string | number
  process_name?: string
  windows_service_name?: string
}

/** The service filters of a caller. A string stands for a service such as `443/tcp`. */
interface ServiceArguments {
  include_services?: readonly (TrafficServiceArgument | string)[]
  exclude_services?: readonly (TrafficServiceArgument | string)[]
}

/**
 * Converts the service filters of a caller to the form that the PCE accepts. Filters by whole process names are not
 * sent. It is not known whether the PCE's own filter is case-sensitive (P25), so the PCE might leave out rows that
 * `keeps` accepts.
 * @throws {ToolError} invalid_argument with the index of the wrong entry.
 */
export function resolveTrafficServices(args: ServiceArguments): TrafficQuery['services'] {
  return {
    include: parseServices('include_services', args.include_services),
    exclude: parseServices('exclude_services', args.exclude_services),
  }
}

function parseServices(
  argument: 'include_services' | 'exclude_services',
  entries: readonly (TrafficServiceArgument | string)[] | undefined,
): TrafficServiceFilter[] {
  return (entries ?? []).map((given, index) => {
    const refuse = (problem: string) =>
      new ToolError('invalid_argument', `${argument}[${index}]: ${problem}`, { argument, index })
    const text = typeof given === 'string' ? given : ''
    const entry = typeof given === 'string' ? readServiceText(given) : given
    if (entry === null) throw refuse(`${quote(text)} is not a port, a range or a protocol, such as 443/tcp.`)
    const problem = findProblem(entry)
    if (problem !== null) throw refuse(problem)
    const { proto, ...rest } = entry
    return proto === undefined ? rest : { ...rest, proto: parseProtocol(proto) as number }
  })
}

function findProblem({
  port,
  to_port: toPort,
  proto,
  process_name: process,
  windows_service_name: service,
}: TrafficServiceArgument) {
  if ([port, proto, process, service].every((field) => field === undefined))
    return 'give a port, proto, process_name or windows_service_name.'
  if ([process, service].some((name) => name?.trim() === '')) return 'an empty name would match everything.'
  if ([port, toPort].some((number) => number !== undefined && (number < 0 || number > 65_535)))
    return 'ports are 0 to 65535.'
  const number = proto === undefined ? undefined : parseProtocol(proto)
  if (number === null) return `proto ${quote(String(proto))} is not a protocol name or number.`
  if (port !== undefined && number !== undefined && number !== TCP && number !== UDP)
    return 'only tcp and udp have ports.'
  if (toPort !== undefined && (port === undefined || toPort < port))
    return 'to_port needs a port no higher than itself.'
  return null
}

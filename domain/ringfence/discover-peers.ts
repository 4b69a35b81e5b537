import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import type { LabelIndex } from '../inventory/labels.js'
import { classifyAddress } from '../policy/addresses.js'
import { compareRecord, type Disagreement } from '../policy/compare-record.js'
import { decideEnds, type DecidedEnds } from '../policy/decide-rows.js'
import { dropsBy, type Connection, type EndJudge } from '../policy/judge-connection.js'
import { mayPassByDefault } from '../policy/mode-effects.js'
import { createPresentModes } from '../policy/present-modes.js'
import type { FlowEffect, FlowVerdict } from './judge-flow.js'
import type { Shared } from './share-reads.js'
import {
  anything,
  applicationColumns,
  applicationId,
  applicationOf,
  withLabels,
  type Application,
} from '../traffic/applications.js'
import { dashed, portColumn, protocolColumn, textColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import { endsOf, tellingLists, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows, type Grouping } from '../traffic/group-rows.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import { always, anyOf, isUnknown, type Answer, type Reason } from '../policy/three-valued.js'
import { workInTurns, type Steps } from '../text/pace-work.js'

/** What happens to a connection today, according to the active policy and the present modes of its ends. */
export interface Today extends Pick<DecidedEnds, 'word' | 'undecided'> {
  /** Whether the source or the destination drops the connection. */
  drops: Answer
  /**
   * True if the connection passes, or may pass, only because no rule matches it and a mode lets such connections pass.
   */
  isByDefault: boolean
  /** How the decision that the PCE recorded contradicts the rules; null if it does not. */
  disagreement: Disagreement
}

/**
 * What happens to a connection from the application to a destination: today, and in the mode for which the ringfence is
 * intended.
 */
export interface TodayOutbound extends Today {
  /** Whether the source drops the connection today. */
  sourceDrops: Answer
  /**
   * Whether the source drops the connection in the intended mode, no matter which other changes are provisioned by
   * then.
   */
  dropsThen: Answer
}

/** The modes and rules by which flows are judged. */
export interface Judging {
  /**
   * The present modes of the application's workloads. The modes of other workloads are read when traffic shows them.
   */
  modes: ReadonlyMap<string, EndMode>
  /**
   * Functions that judge connections by the active policy and by the draft. They are the same function if nothing is
   * pending.
   */
  active: (connection: Connection) => EndJudge
  draft: (connection: Connection) => EndJudge
  /** True if the ringfence is intended for selective enforcement, false if for full enforcement. */
  selective: boolean
}

/** A group of inbound traffic. Its flows differ in nothing that matters to a plan. */
export interface InboundFlow {
  source: FlowEnd
  /** The source application; null unless the source has both an app and an env label. */
  application: Application | null
  sourceMode: EndMode
  destination: FlowEnd
  destinationMode: EndMode
  port: number | null
  /** IANA protocol number. */
  proto: number | null
  /** The decision that the PCE recorded. */
  decision: string
  today: Today
  draft: string | null
  hasDraftRules: boolean
  connections: number
}

/** A group of outbound traffic to an application or to any other destination. */
export interface OutboundFlow {
  source: FlowEnd
  application: Application | null
  destination: FlowEnd
  sourceMode: EndMode
  port: number | null
  proto: number | null
  /** The decision that the PCE recorded. */
  decision: string
  today: TodayOutbound
  connections: number
}

/**
 * The traffic of an application in the queried time window. Flow objects are created only when the iteration reaches
 * them.
 */
export interface Discovery {
  inbound: Iterable<InboundFlow>
  outbound: Iterable<OutboundFlow>
  reads: { inbound: FlowsRead; outbound: FlowsRead }
  /** Notes about workloads whose present mode is not known. */
  modes: readonly string[]
}

/**
 * Reads the traffic to and from an application, whatever the PCE decided about it (T15), and judges it by the active
 * policy. Throws the errors of the traffic reader.
 */
export async function discoverFlows(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>,
  labels: LabelIndex,
  application: readonly Label[],
  { window, complete, inventories }: Pick<Shared, 'window' | 'complete' | 'inventories'>,
  { modes, active: judge, draft, selective }: Judging,
): Promise<Discovery> {
  const encoder = createFlowEncoder(labels)
  const read = createConversationReader(ctx, encoder, complete)
  const service = { port: portColumn, proto: protocolColumn, decision: dashed(textColumn(encoder, 'decision')) }
  const hasDraftRules = { code: ({ rules }: FlowRow) => Math.min(rules, 1), value: (code: number) => code === 1 }
  const inbound = groupRows({
    ...service,
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
    draft: textColumn(encoder, 'draftDecision'),
    hasDraftRules,
  })
  const outbound = groupRows({
    ...service,
    application: applicationColumns(encoder).dst,
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
  })
  const own = withLabels(application)
  const into = { sources: anything(), destinations: own }
  const outOf = { sources: own, destinations: anything() }
  const reads = {
    inbound: await read(
      { name: 'mcp-ringfence-inbound', window, filters: into, draftDecisions: true },
      (row) => void inbound.add(row),
    ),
    outbound: await read({ name: 'mcp-ringfence-outbound', window, filters: outOf }, (row) => void outbound.add(row)),
  }
  const { look, modeOf: modeNow, notes } = createPresentModes(ctx, { known: modes, shared: inventories })
  await look(endsOf(inbound, outbound))
  // An object such as a virtual service can have the labels of the application without being a workload. The workloads
  // behind it may be in any mode.
  const modeWithin = (end: FlowEnd): EndMode => (end.workload === null ? 'unknown' : modeNow(end))
  const modesOf = {
    inbound: (keys: Ends) => [modeNow(keys.source), modeWithin(keys.destination)] as const,
    outbound: (keys: Ends) => [modeNow(keys.source), modeNow(keys.destination)] as const,
  }
  const today = {
    inbound: await workInTurns(
      judgeGroups(inbound, (keys) => judgeToday(judge(keys), modesOf.inbound(keys), keys.decision)),
      ctx.signal,
    ),
    outbound: await workInTurns(
      judgeGroups(outbound, (keys): TodayOutbound => {
        const at = judge(keys)
        const modes = modesOf.outbound(keys)
        const then = modeThen(modes[0], selective)
        const [sourceDrops, active] = [dropsBy(at('src', modes[0])), dropsBy(at('src', then))]
        const dropsThen = draft === judge ? active : always(active, dropsBy(draft(keys)('src', then)))
        return { ...judgeToday(at, modes, keys.decision), sourceDrops, dropsThen }
      }),
      ctx.signal,
    ),
  }
  return {
    reads,
    modes: notes(),
    inbound: mapped(inbound, ({ number, keys, measures: { connections } }) => ({
      ...keys,
      destinationMode: modeWithin(keys.destination),
      application: applicationOf(keys.source),
      sourceMode: modeNow(keys.source),
      today: today.inbound[number] as Today,
      connections,
    })),
    outbound: mapped(outbound, ({ number, keys, measures: { connections } }) => ({
      ...keys,
      sourceMode: modeNow(keys.source),
      today: today.outbound[number] as TodayOutbound,
      connections,
    })),
  }
}

/**
 * Returns the mode of an application's workload once the application is in the mode for which the ringfence is
 * intended. A workload in full enforcement stays there. A workload in an unknown mode may be in full enforcement, so
 * its future mode is not known.
 */
const modeThen = (mode: EndMode, selective: boolean): EndMode =>
  !selective ? 'full' : mode === 'full' || mode === 'unknown' || mode === 'none' ? mode : 'selective'

type Ends = Pick<Connection, 'source' | 'destination'>

/** Applies `judge` to the keys of each group and returns the results in the order of the groups' numbers. */
function* judgeGroups<K extends object, T>(groups: Grouping<K>, judge: (keys: K) => T): Steps<T[]> {
  const judged: T[] = []
  for (const { keys } of groups) {
    judged.push(judge(keys))
    yield
  }
  return judged
}

/**
 * Determines what happens to a connection today without regard to the decision that the PCE recorded, and then compares
 * the result with this decision.
 */
function judgeToday(judge: EndJudge, modes: DecidedEnds['modes'], recorded: string): Today {
  const { word, undecided, verdicts } = decideEnds(judge, modes)
  const isOpen = word === 'undecided' || word === 'potentially_blocked'
  return {
    word,
    undecided,
    drops: anyOf(verdicts.map(dropsBy)),
    isByDefault: isOpen && mayPassByDefault(...modes.map((mode) => (mode === 'none' ? null : mode))),
    disagreement: compareRecord(recorded, verdicts),
  }
}

const mapped = <T, U>(items: Iterable<T>, map: (item: T) => U): Iterable<U> => ({
  *[Symbol.iterator]() {
    for (const item of items) yield map(item)
  },
})

/** A port with observed traffic, with the recorded decision and, for inbound traffic, the effect of the ringfence. */
export interface ObservedPort {
  port: number | null
  /** IANA protocol number. */
  proto: number | null
  connections: number
  policy_decision: string
  effect?: FlowEffect
  /** If the effect is `possibly_cut`, the reasons for the doubt. */
  dependsOn?: readonly Reason[]
}

/** All observed traffic with one peer. The busiest ports come first. */
export interface Peer {
  connections: number
  ports: ObservedPort[]
}

export interface RemoteApplication extends Peer, Application {}

/** The categories of sources. A source in `internet` or `unknown_ip` is in no IP list except the Any list. */
export const SOURCE_KINDS = [
  'application',
  'half_labelled',
  'unlabelled_workload',
  'ip_list',
  'internet',
  'unknown_ip',
] as const
export type SourceKind = (typeof SOURCE_KINDS)[number]

/** A source without an app or env label, so that no rule by these labels can include it. */
export interface OtherSource extends Peer {
  kind: SourceKind
  ip: string | null
  /** The name of the workload, if it differs from its host name. */
  name?: string
  hostname?: string
  fqdn?: string
  ip_lists?: string[]
  /** The labels that the source has. */
  labels?: Record<string, string>
  /** True for a workload with a VEN. */
  managed?: boolean
}

/**
 * The sources of inbound traffic. Applications are sorted by app, then env; all other sources by traffic, busiest
 * first.
 */
export interface Sources {
  applications: RemoteApplication[]
  others: OtherSource[]
}

/** Groups inbound flows by source and records the effect that `judge` returns for each flow. */
export function collectSources(flows: Iterable<InboundFlow>, judge: (flow: InboundFlow) => FlowVerdict): Sources {
  const applications = createPeers<Application>()
  const others = createPeers<Omit<OtherSource, keyof Peer>>()
  for (const flow of flows) {
    const { application, source } = flow
    const port = portOf(flow, judge(flow))
    if (application !== null) applications.add(applicationId(application), () => application, port)
    else others.add(source.workload ?? `${source.ip} ${source.fqdn}`, () => describe(source), port)
  }
  return {
    applications: applications.all().sort(byApplication),
    others: others.all().sort((a, b) => b.connections - a.connections || compare(nameOf(a), nameOf(b))),
  }
}

/** Groups outbound flows by application, sorted by app, then env. Traffic to other destinations is left out. */
export function collectDestinations(flows: Iterable<OutboundFlow>): RemoteApplication[] {
  const peers = createPeers<Application>()
  for (const flow of flows) {
    const { application } = flow
    if (application !== null) peers.add(applicationId(application), () => application, portOf(flow))
  }
  return peers.all().sort(byApplication)
}

/** Returns the name under which answers show a source. */
export const nameOf = ({ name, hostname, fqdn, ip }: Pick<OtherSource, 'name' | 'hostname' | 'fqdn' | 'ip'>): string =>
  name ?? hostname ?? fqdn ?? ip ?? 'unknown'

export const isSameApplication = (a: Application, b: Application): boolean => a.app === b.app && a.env === b.env

function describe(source: FlowEnd): Omit<OtherSource, keyof Peer> {
  const { ip, name, hostname, fqdn, labels, managed } = source
  const lists = tellingLists(source).sort()
  return {
    kind: kindOf(source, lists),
    ip,
    ...(name !== null && name !== hostname && { name }),
    ...(hostname !== null && { hostname }),
    ...(fqdn !== null && { fqdn }),
    ...(lists.length > 0 && { ip_lists: lists }),
    ...(Object.keys(labels).length > 0 && { labels: { ...labels } }),
    ...(source.workload !== null && { managed }),
  }
}

function kindOf({ workload, labels, ip }: FlowEnd, lists: readonly string[]): SourceKind {
  if (labels.app !== undefined || labels.env !== undefined) return 'half_labelled'
  if (workload !== null) return 'unlabelled_workload'
  return lists.length > 0 ? 'ip_list' : ip !== null && classifyAddress(ip) === 'public' ? 'internet' : 'unknown_ip'
}

const portOf = (
  { port, proto, connections, decision }: Pick<OutboundFlow, 'port' | 'proto' | 'connections' | 'decision'>,
  verdict?: FlowVerdict,
): ObservedPort => ({
  port,
  proto,
  connections,
  policy_decision: decision,
  ...(verdict !== undefined && { effect: verdict.effect }),
  ...(verdict !== undefined && isUnknown(verdict.undecided) && { dependsOn: verdict.undecided.unknown }),
})

function createPeers<T extends object>() {
  const peers = new Map<string, { what: T; ports: Map<string, ObservedPort> }>()
  return {
    add(key: string, describe: () => T, port: ObservedPort) {
      const peer = peers.get(key) ?? { what: describe(), ports: new Map<string, ObservedPort>() }
      peers.set(key, peer)
      const id = `${port.port} ${port.proto} ${port.policy_decision} ${port.effect}`
      const known = peer.ports.get(id)
      if (known === undefined) peer.ports.set(id, port)
      else {
        known.connections += port.connections
        if (port.dependsOn !== undefined)
          known.dependsOn = [...new Set([...(known.dependsOn ?? []), ...port.dependsOn])]
      }
    },
    all: (): (T & Peer)[] =>
      [...peers.values()].map(({ what, ports }) => {
        const list = [...ports.values()].sort(
          (a, b) => b.connections - a.connections || compare(portText(a), portText(b)),
        )
        return { ...what, connections: list.reduce((sum, { connections }) => sum + connections, 0), ports: list }
      }),
  }
}

const portText = (port: ObservedPort) => [port.port, port.proto, port.policy_decision, port.effect].join(' ')
const byApplication = (a: Application, b: Application) => compare(a.app, b.app) || compare(a.env, b.env)
const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b))

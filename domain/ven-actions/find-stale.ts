import type { IpList } from '../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import type { Ven } from '../../schemas/pce/ven.js'
import { isEnforcing } from '../../schemas/pce/enforcement-modes.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import type { LaterTraffic, TwinEvidence } from '../hygiene/evidence-of-twins.js'
import { addTo, foldName, toMachine, type Machine } from '../hygiene/known-machines.js'
import { isUnread, pickEvery, scanWhole } from '../inventory/fetch-every.js'
import { resolveLabelConditions } from '../inventory/label-conditions.js'
import { parseLabelList } from '../inventory/labels.js'
import { isManaged } from '../inventory/workloads.js'
import { compileIpList, machineAddress } from '../policy/addresses.js'
import { anyOf, isUnknown, type Unknown } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { joinWorkload, labelsOf, nameOfMachine, readWork, workloadOf, type Work } from '../vens/join-workload.js'
import type { WorkloadSelection } from '../../schemas/workload-selection.js'

/** A workload that shares an address with the host of a silent VEN. */
export interface Twin {
  href: string
  name: string
  managed: boolean
  /** True if the workload also has the host name of the silent VEN, regardless of case. */
  isNamesake: boolean
  /** Whether the workload's own VEN was heard from after the silent one; null if this is not known or it has no VEN. */
  isHeard: boolean | null
}

/** A VEN that the PCE has not heard from for some time. */
export interface StaleVen {
  href: string
  name: string
  /** The time when the PCE last heard from the VEN, in milliseconds since the epoch. */
  heardAt: number
  status: string | null
  type: string | null
  mode: string | null
  /** Whether the PCE counts the VEN as online, even though it is silent. */
  online: boolean | null
  /** The VEN's workload; null if it is not in the PCE's list of workloads. */
  machine: Machine | null
  twins: Twin[]
}

export interface StaleFound {
  /** The stale VENs. The one that has been silent for the longest time comes first. */
  stale: StaleVen[]
  /** Every workload, with or without a VEN. */
  everyone: Machine[]
  counts: {
    /** Number of VENs that match the selection. `heard` counts those that were heard from recently enough. */
    vens: number
    heard: number
    /** Numbers of VENs without a known heartbeat and of uninstalled VENs. Neither count as stale. */
    not_known: number
    uninstalled: number
  }
  /** Names of the first few VENs without a known heartbeat. */
  unknown: string[]
}

type Ctx = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

const MOST_NAMED = 5

/** Keeps only the fields of a VEN that are needed here, because there may be tens of thousands of VENs. */
const slim = ({ href, name, hostname, status, ven_type, last_heartbeat_at, workloads }: Ven) =>
  ({ href, name, hostname, status, ven_type, last_heartbeat_at, workloads }) as Ven

/**
 * Finds the selected VENs that the PCE has not heard from since the given time. What counts is the last heartbeat in
 * the object of the VEN or of its workload (P78).
 * @param silentSince milliseconds since the epoch
 * @throws {IncompleteListError} if the PCE sent only a part of a list, the errors of label resolution, and those of the
 * PCE client.
 */
export async function findStale(
  ctx: Ctx,
  asked: WorkloadSelection['labels'],
  silentSince: number,
): Promise<StaleFound> {
  const { pce, signal } = ctx
  const labels = await resolveLabelConditions(pce, parseLabelList(asked), ctx)
  const isWanted = ({ href, labels: own }: Ven): boolean =>
    labels.ownFilter?.({ href, name: null, hostname: null, labels: labelsOf(own) }) !== false
  const counts = { vens: 0, heard: 0, not_known: 0, uninstalled: 0 }
  const candidates: Ven[] = []
  await scanWhole(
    { api: pce.vens, params: { labels: labels.param }, signal },
    {
      onBegin() {
        Object.assign(counts, { vens: 0, heard: 0, uninstalled: 0 })
        candidates.length = 0
      },
      onItems(items: Ven[]) {
        for (const ven of items.filter(isWanted)) {
          counts.vens += 1
          if (ven.status === 'uninstalled') counts.uninstalled += 1
          else if (Date.parse(ven.last_heartbeat_at ?? '') > silentSince) counts.heard += 1
          else candidates.push(slim(ven))
        }
      },
    },
  )
  const { everyone, works, heard } = await readWorkloads(ctx, candidates)
  const stale: StaleVen[] = []
  const unknown: string[] = []
  const bearers = new Map<string, Machine[]>()
  for (const machine of everyone) for (const address of machine.addresses) addTo(bearers, address, machine)
  const byHref = new Map(everyone.map((machine) => [machine.href, machine]))
  for (const ven of candidates) {
    const joined = joinWorkload(ven, works.get(ven.href) ?? works.get(workloadOf(ven) ?? ''))
    const heardAt = Date.parse(joined.heartbeatAt ?? '')
    if (Number.isNaN(heardAt)) {
      counts.not_known += 1
      if (unknown.length < MOST_NAMED) unknown.push(nameOfMachine(joined))
    } else if (heardAt > silentSince) counts.heard += 1
    else {
      const machine = byHref.get(joined.workload ?? '') ?? null
      stale.push({
        href: ven.href,
        name: machine?.name ?? nameOfMachine(joined),
        heardAt,
        status: joined.status,
        type: joined.type,
        mode: joined.mode,
        online: joined.online,
        machine,
        twins: machine === null ? [] : twinsOf(machine, heardAt, bearers, heard),
      })
    }
  }
  stale.sort((a, b) => a.heardAt - b.heardAt || compareTexts(a.href, b.href))
  return { stale, everyone, counts, unknown }
}

async function readWorkloads({ pce, signal }: Ctx, candidates: readonly Ven[]) {
  const wanted = new Set(candidates.flatMap((ven) => [ven.href, workloadOf(ven) ?? ven.href]))
  const everyone: Machine[] = []
  const works = new Map<string, Work>()
  /** The time when a workload's VEN was last heard from, in milliseconds, by the workload's href. */
  const heard = new Map<string, number>()
  await scanWhole(
    { api: pce.workloads, params: { include: 'labels' }, signal },
    {
      onBegin() {
        everyone.length = 0
        works.clear()
        heard.clear()
      },
      onItems(items: Workload[]) {
        for (const workload of items) {
          if (workload.deleted === true) continue
          everyone.push(toMachine(workload))
          if (!isManaged(workload)) continue
          const work = readWork(workload)
          const at = Date.parse(work.heartbeatAt ?? '')
          if (!Number.isNaN(at)) heard.set(work.href, at)
          for (const href of [work.href, work.ven]) if (href !== null && wanted.has(href)) works.set(href, work)
        }
      },
    },
  )
  return { everyone, works, heard }
}

function twinsOf(
  machine: Machine,
  heardAt: number,
  bearers: ReadonlyMap<string, Machine[]>,
  heard: ReadonlyMap<string, number>,
): Twin[] {
  const others = new Map(
    machine.addresses.flatMap((address) =>
      (bearers.get(address) ?? []).flatMap((one) => (one.href === machine.href ? [] : [[one.href, one] as const])),
    ),
  )
  const name = machine.hostname
  return [...others.values()]
    .map(({ href, name: shown, managed, hostname }) => {
      const at = heard.get(href)
      return {
        href,
        name: shown,
        managed,
        isNamesake: Boolean(name) && Boolean(hostname) && foldName(name ?? '') === foldName(hostname ?? ''),
        isHeard: at === undefined ? null : at > heardAt,
      }
    })
    .sort((a, b) => Number(b.managed) - Number(a.managed) || compareTexts(a.href, b.href))
}

/** The names of the IP lists that contain an address of a workload. `naming` has those that name the address itself. */
export interface ListsOf {
  names: string[]
  naming: string[]
  /** IP lists that may contain an address, because they have domain names or ranges that cannot be read. */
  undecided: { name: string; because: Unknown }[]
}

/**
 * Finds the IP lists of the draft that contain addresses of the workloads, but leaves out the list of all addresses.
 * Returns a sentence if the IP lists could not be read.
 */
export async function findLists(
  { pce, signal }: Ctx,
  machines: readonly Machine[],
): Promise<ReadonlyMap<string, ListsOf> | string> {
  const found = new Map<string, ListsOf>(machines.map(({ href }) => [href, { names: [], naming: [], undecided: [] }]))
  let lists: IpList[]
  try {
    lists = await pickEvery({ api: pce.ipLists, policyVersion: 'draft', params: {}, signal }, (list: IpList) =>
      ANY_IP_LIST_NAMES.includes(list.name) ? undefined : list,
    )
  } catch (error) {
    if (signal.aborted || !isUnread(error)) throw error
    return `Which IP lists have their addresses is not known: ${error.message}`
  }
  for (const list of lists) {
    signal.throwIfAborted()
    const test = compileIpList(list)
    const alone = new Set(
      (list.ip_ranges ?? []).flatMap(({ from_ip: from, to_ip: to, exclusion }) => {
        const [address = '', bits] = (from ?? '').split('/')
        const isOne =
          (to == null || to === '' || to === from) && (bits === undefined || bits === '32' || bits === '128')
        return exclusion === true || !isOne ? [] : (machineAddress(address) ?? [])
      }),
    )
    for (const machine of machines) {
      const own = found.get(machine.href)!
      const answer = anyOf(machine.addresses.map((ip) => test({ ip, fqdn: null })))
      if (answer === 'yes') own.names.push(list.name)
      else if (isUnknown(answer)) own.undecided.push({ name: list.name, because: answer })
      if (machine.addresses.some((address) => alone.has(address))) own.naming.push(list.name)
    }
  }
  return found
}

/** What to do with a silent VEN. `look`: investigate first, because its host may be alive or something is not known. */
export const STALE_ADVICE = ['look', 'unpair', 'keep'] as const
export type StaleAdvice = (typeof STALE_ADVICE)[number]

export interface Advised {
  advice: StaleAdvice
  /** True if traffic of the VEN's host was reported after the VEN fell silent. */
  isAlive: boolean
  why: string
  /** Sentences that say what has to be moved before the VEN can be unpaired. */
  first: string[]
}

const DAY_MS = 86_400_000
/** Number of days for which a laptop or desktop may be switched off without being missed. */
const ENDPOINT_DAYS = 30

/**
 * Advises what to do with a silent VEN, without unpairing anything. It can never be certain that a host is gone,
 * because only other VENs still report its traffic.
 */
export function advise(ven: StaleVen, evidence: TwinEvidence | null, lists: ListsOf | null, now: number): Advised {
  const { status, type, mode, online, machine, twins, heardAt } = ven
  const say = (advice: StaleAdvice, why: string, isAlive = false): Advised => ({
    advice,
    isAlive,
    why,
    first: advice === 'unpair' && evidence !== null ? listFirst(evidence, lists) : [],
  })
  if (machine === null || evidence === null) return say('look', 'The PCE does not list its workload.')
  const { later, rules, named, bindings } = evidence
  if (later !== null && livesBy(later) > 0)
    return say(
      'look',
      `Its host lives: ${describeLife(later)} in the window, long after the last heartbeat of the VEN.${isEnforcing(mode) ? ' The VEN may enforce what it received last, and nothing newer.' : ''}`,
      true,
    )
  if (online === true) return say('look', 'The PCE counts it as online, though no heartbeat arrived.')
  if (later === null || rules === null || named === null || bindings === null || lists === null)
    return say('look', 'Not all that hangs on it could be read.')
  if (later.undecided > 0)
    return say('look', 'There is traffic of its address, which others have too: whose it is, is not known.')
  if (later.to > 0)
    return say('look', `${countOf(later.to, 'connection')} went to it since, and whether it answered is not known.`)
  if (status === 'suspended') return say('keep', 'It is marked as suspended, which somebody did on purpose.')
  const successor = twins.find(({ managed, isHeard, isNamesake }) => managed && isHeard === true && isNamesake)
  if (successor !== undefined)
    return say('unpair', `Its host was paired anew as ${quote(successor.name)}, with its address and host name.`)
  const days = Math.floor((now - heardAt) / DAY_MS)
  if (type === 'endpoint' && days < ENDPOINT_DAYS)
    return say('keep', `It is a laptop or desktop, silent for ${countOf(days, 'day')}: it may be switched off.`)
  const heir = twins.find(({ managed, isHeard }) => managed && isHeard === true)
  if (heir !== undefined)
    return say('unpair', `No traffic of it was seen since, and ${quote(heir.name)} has its address now.`)
  return say('unpair', 'No traffic of it was reported since. Make sure that the host is gone.')
}

const livesBy = ({ from, answered }: LaterTraffic): number => from + answered

const describeLife = ({ from, answered }: LaterTraffic): string =>
  [
    ...(from > 0 ? [`${countOf(from, 'connection')} came from it`] : []),
    ...(answered > 0 ? [`${countOf(answered, 'connection')} to it were answered`] : []),
  ].join(', and ')

function listFirst({ named, namedIn, bindings, alone }: TwinEvidence, lists: ListsOf | null): string[] {
  const places = (namedIn ?? []).slice(0, 3).map(quote).join(', ')
  return [
    ...((named ?? 0) > 0 ? [`${countOf(named ?? 0, 'rule')} in ${places} name it by itself: change them.`] : []),
    ...((bindings ?? 0) > 0 ? [`${countOf(bindings ?? 0, 'virtual service')} bound to it: bind another one.`] : []),
    ...((alone?.rules.size ?? 0) > 0
      ? [`${countOf(alone?.rules.size ?? 0, 'rule')} in force reach nobody but it: they may go with it.`]
      : []),
    ...((lists?.naming.length ?? 0) > 0
      ? [`${countOf(lists?.naming.length ?? 0, 'IP list')} name its address: take it out.`]
      : []),
  ]
}

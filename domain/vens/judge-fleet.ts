import { isEnforcing, isMode } from '../../schemas/pce/enforcement-modes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { VenRelease } from '../../schemas/pce/ven.js'
import { isSilentOnline } from '../inventory/silent-vens.js'
import { compareTexts } from '../text/compare-texts.js'
import { countOf } from '../text/describe-numbers.js'
import { compareReleases } from '../text/compare-releases.js'
import { isOfSilence, meaningOf } from './describe-ven.js'
import { enforcesNewest, isSynced, nameOfMachine, runs, type Machine } from './join-workload.js'

/**
 * The names of the lists into which VENs that need attention are sorted, beginning with the worst problem. A VEN may be
 * in several lists.
 */
export const VEN_LISTS = [
  'not_running',
  'offline',
  'in_error',
  'unsynced',
  'warned',
  'out_of_date',
  'not_known',
] as const
export type VenList = (typeof VEN_LISTS)[number]

/** The row of a VEN in one of the lists. */
export interface VenRow {
  name: string
  /** The name of the VEN's workload; null if the VEN has no workload or the name is not known. */
  workload_name: string | null
  href: string
  app: string | null
  env: string | null
  enforcement_mode: string | null
  last_heartbeat_at: string | null
  /** A string with the reasons why the VEN needs attention, one for each list that contains it. */
  why: string
}

/** The expected version for each type of VEN, and the source of this expectation. */
export interface VersionReference {
  from: 'default release' | 'newest release' | 'newest VEN'
  versions: Record<string, string>
}

/**
 * For each value of a fact, such as the status, the number of VENs with this value. VENs without a value count as
 * `unknown`.
 */
type Counts = Record<string, number>

/** The state of a fleet of VENs (T39). */
export interface FleetHealth {
  total: number
  /** Number of VENs that are active, online, in selective or full mode, and have the latest policy. */
  enforcing: number
  /** Number of VENs for which it is not known whether they are enforcing. */
  enforcingUnknown: number
  counts: Record<(typeof COUNTED)[number], Counts>
  /** For each fact, the number of VENs for which neither the list of VENs nor the list of workloads contains it. */
  unknown: Counts
  conditions: { condition: string; means: string; vens: number }[]
  /** The expected versions; null if no VEN reports its version. */
  reference: VersionReference | null
  /** For each list, the number of VENs in it. */
  totals: Record<VenList, number>
  /** Returns the rows of the requested lists. A VEN in several of these lists appears only in the first of them. */
  place(shown: readonly VenList[]): Partial<Record<VenList, VenRow[]>>
  /** Sentences that say what the findings mean for enforcement, beginning with the worst finding. */
  meaning: string[]
  /** Number of VENs that count as online but sent no heartbeat for more than a day. */
  silentOnline: number
  /** The hrefs of all VENs. */
  hrefs: ReadonlySet<string>
}

const COUNTED = ['status', 'health', 'version', 'os', 'mode', 'type'] as const
const HOUR_MS = 3_600_000
const UNKNOWN = 'unknown'

/** The data that are kept for each VEN. All other data are only counted while the VENs are read. */
interface Kept extends Omit<VenRow, 'why'> {
  status: string
  version: string | null
  type: string
  target: string | null
  /** Number of whole hours since the last heartbeat; null if no heartbeat is known. */
  silentHours: number | null
  /** The lists that contain the VEN, each with the reason. */
  reasons: Partial<Record<VenList, string>>
}

/**
 * Creates a counter for a fleet of VENs. VENs are added while they are read.
 *
 * @param now milliseconds since the epoch
 * @param releases the releases that the PCE holds; null if they could not be read
 */
export function createFleetCount(now: number, releases: readonly VenRelease[] | null) {
  const counts = new Map(COUNTED.map((name) => [name, new Map<string, number>()]))
  const conditions = new Map<string, number>()
  const unknown = new Map<string, number>()
  const fleet: Kept[] = []
  let [enforcing, enforcingUnknown, silentOnline] = [0, 0, 0]

  /** Adds a VEN. `expand` returns the given label with its key and value. */
  function add(machine: Machine, expand: (label: LabelRef) => LabelRef): void {
    const { status, health, version, os, mode, type } = machine
    const kept = keep(machine, now, expand)
    fleet.push(kept)
    if (isSilentOnline(machine, now)) silentOnline += 1
    const values = { status, health, version, os, mode, type }
    for (const [name, counted] of counts) count(counted, values[name] ?? UNKNOWN)
    for (const condition of new Set(machine.conditions.map((one) => one.condition))) count(conditions, condition)
    const missing = notKnown(machine)
    for (const name of missing) count(unknown, name)
    const enforces = enforcesNewest(machine)
    if (enforces === true) enforcing += 1
    if (enforces === null) enforcingUnknown += 1
    kept.reasons = reasonsOf(machine, kept, missing)
  }

  /** Returns the state of the fleet. This function must be called only once. */
  function judge(): FleetHealth {
    const reference = referenceOf(releases, fleet)
    for (const { version, target, type, reasons } of fleet) {
      const wanted = reference?.versions[type]
      if (version === null || wanted === undefined || compareReleases(version, wanted) >= 0) continue
      const upgrade = target === null ? '' : `, upgrade to ${target} under way`
      reasons.out_of_date = `${version}, not ${wanted}${upgrade}`
    }
    fleet.sort(worstFirst)
    return {
      total: fleet.length,
      enforcing,
      enforcingUnknown,
      counts: Object.fromEntries([...counts].map(([name, found]) => [name, sorted(found)])) as FleetHealth['counts'],
      unknown: sorted(unknown),
      conditions: [...conditions].sort(mostFirst).map(([condition, vens]) => ({
        condition,
        means: meaningOf(condition),
        vens,
      })),
      reference,
      totals: Object.fromEntries(
        VEN_LISTS.map((list) => [list, fleet.filter(({ reasons }) => reasons[list] !== undefined).length]),
      ) as FleetHealth['totals'],
      place: (shown) => place(fleet, shown),
      silentOnline,
      meaning: explain(fleet),
      hrefs: new Set(fleet.map(({ href }) => href)),
    }
  }
  return { add, judge }
}

/**
 * Returns the names of the facts that are needed to assess a machine but are missing in both lists, that of VENs and
 * that of workloads.
 */
function notKnown(machine: Machine): string[] {
  const facts = {
    status: machine.status,
    online: machine.online,
    enforcement_mode: isMode(machine.mode) ? machine.mode : null,
    policy_sync: machine.sync,
    health: machine.isHealthWhole ? machine.health : null,
    version: machine.version,
  }
  return Object.entries(facts).flatMap(([name, fact]) => (fact === null ? [name] : []))
}

/**
 * Returns the lists that contain a VEN, with the reasons. `out_of_date` is not included, because releases can be
 * compared only after all VENs have been read.
 */
function reasonsOf(machine: Machine, kept: Kept, missing: readonly string[]): Kept['reasons'] {
  const { status, online, sync, health, conditions } = machine
  const isRunning = runs(machine)
  const isOffline = isRunning !== false && online === false
  const isSilent = isRunning === false || isOffline
  const told = conditions.filter((one) => !(isSilent && isOfSilence(one))).map(({ means }) => means)
  const list = health === 'error' ? 'in_error' : 'warned'
  return {
    ...(isRunning === false && { not_running: status ?? UNKNOWN }),
    ...(isOffline && { offline: whyOffline(kept) }),
    ...(told.length > 0 && { [list]: told.join('; ') }),
    ...(!isSilent && isSynced(machine) === false && { unsynced: `policy ${sync}` }),
    ...(missing.length > 0 && { not_known: `not known: ${missing.join(', ')}` }),
  }
}

/**
 * Puts the row of each VEN into the first requested list that contains it. The row has the reasons for all lists that
 * contain the VEN, requested or not.
 */
function place(fleet: readonly Kept[], shown: readonly VenList[]): Partial<Record<VenList, VenRow[]>> {
  const wanted = VEN_LISTS.filter((list) => shown.includes(list))
  const lists = Object.fromEntries(wanted.map((list) => [list, [] as VenRow[]])) as Partial<Record<VenList, VenRow[]>>
  for (const kept of fleet) {
    const first = wanted.find((list) => kept.reasons[list] !== undefined)
    if (first !== undefined) lists[first]?.push(rowOf(kept))
  }
  return lists
}

const sorted = (found: ReadonlyMap<string, number>): Counts => Object.fromEntries([...found].sort(mostFirst))
const count = (counts: Map<string, number>, value: string) => void counts.set(value, (counts.get(value) ?? 0) + 1)
const mostFirst = ([a, m]: readonly [string, number], [b, n]: readonly [string, number]) => n - m || compareTexts(a, b)

function keep(machine: Machine, now: number, expand: (label: LabelRef) => LabelRef): Kept {
  const labels = machine.labels.map(expand)
  const valueOf = (wanted: string) => labels.find(({ key }) => key === wanted)?.value ?? null
  const heard = machine.heartbeatAt
  const silence = heard === null ? NaN : now - Date.parse(heard)
  return {
    name: nameOfMachine(machine),
    workload_name: machine.workloadName,
    href: machine.href,
    app: valueOf('app'),
    env: valueOf('env'),
    enforcement_mode: machine.mode,
    last_heartbeat_at: heard,
    status: machine.status ?? UNKNOWN,
    version: machine.version,
    type: machine.type ?? UNKNOWN,
    target: machine.upgradeTo,
    silentHours: Number.isNaN(silence) ? null : Math.max(0, Math.floor(silence / HOUR_MS)),
    reasons: {},
  }
}

function rowOf(kept: Kept): VenRow {
  const { status: _status, version: _version, type: _type, target: _target, silentHours: _silent, ...rest } = kept
  const { reasons, ...row } = rest
  return { ...row, why: VEN_LISTS.flatMap((list) => reasons[list] ?? []).join('; ') }
}

const whyOffline = ({ silentHours: hours }: Kept): string =>
  hours === null
    ? 'offline, no heartbeat known'
    : `no heartbeat for ${hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`}`

/**
 * Sorts VENs: those in an enforcing mode come first. Within both groups, VENs without a known heartbeat come first,
 * then those with the oldest last heartbeat.
 */
const worstFirst = (a: Kept, b: Kept): number =>
  Number(isEnforcing(b.enforcement_mode)) - Number(isEnforcing(a.enforcement_mode)) ||
  compareTexts(a.last_heartbeat_at ?? '', b.last_heartbeat_at ?? '') ||
  compareTexts(a.name, b.name) ||
  compareTexts(a.href, b.href)

/**
 * Determines the expected version for each type of VEN: the default release (some PCEs define one for each type), or
 * else the newest release that the PCE holds, or else the newest version of any VEN. If there are default releases but
 * none for a type, that type has no expected version. One such type is containerized VENs, which the PCE does not
 * upgrade.
 */
function referenceOf(releases: readonly VenRelease[] | null, fleet: readonly Kept[]): VersionReference | null {
  const types = [...new Set(fleet.map(({ type }) => type))].sort(compareTexts)
  const same = (version: string) => Object.fromEntries(types.map((type) => [type, version]))
  const defaults = (releases ?? []).filter((release) => release.default)
  if (defaults.length > 0) {
    const of = types.flatMap((type) => {
      const own = defaults.find(({ default_release_ven_types: for_ }) => for_ == null || for_.includes(type))
      return own === undefined ? [] : [[type, own.release] as const]
    })
    return { from: 'default release', versions: Object.fromEntries(of) }
  }
  const newest = newestOf((releases ?? []).map(({ release }) => release))
  if (newest !== undefined) return { from: 'newest release', versions: same(newest) }
  const own = newestOf(fleet.flatMap(({ version }) => version ?? []))
  return own === undefined ? null : { from: 'newest VEN', versions: same(own) }
}

const newestOf = (versions: readonly string[]): string | undefined =>
  versions.reduce<string | undefined>(
    (best, one) => (best === undefined || compareReleases(one, best) > 0 ? one : best),
    undefined,
  )

/**
 * Returns sentences that say what each finding means for enforcement (P78, P104, P105). Findings without VENs are left
 * out.
 */
function explain(fleet: readonly Kept[]): string[] {
  const say = (isMeant: (kept: Kept) => boolean, state: string, means: string) => {
    const rows = fleet.filter(isMeant)
    const many = rows.filter(({ enforcement_mode: mode }) => isEnforcing(mode)).length
    const enforced = many === 0 ? '' : ` (${many} in selective or full mode)`
    return rows.length === 0 ? [] : [`${countOf(rows.length, 'VEN')} ${state}${enforced}: ${means}`]
  }
  const inList = (list: VenList) => (kept: Kept) => kept.reasons[list] !== undefined
  const inMode = (mode: string) => (kept: Kept) => kept.enforcement_mode === mode
  return [
    ...say(
      ({ status }) => status === 'suspended',
      'suspended',
      'nothing is enforced there: the firewall rules are removed and all traffic passes.',
    ),
    ...say(
      (kept) => kept.status !== 'suspended' && inList('not_running')(kept),
      'stopped or uninstalled',
      'no change reaches them and no traffic is reported; whether rules still stand on the hosts is not known here.',
    ),
    ...say(
      inList('offline'),
      'offline',
      'where the host is up, it goes on enforcing the policy it received last and learns of no change; its addresses are out of the policy of others, so those in full enforcement refuse it where rules name labels.',
    ),
    ...say(
      inList('unsynced'),
      'without the newest policy',
      'they enforce an older one until they have applied it; staged waits for somebody to apply it.',
    ),
    ...say(inList('in_error'), 'in error', 'until that is fixed, what they enforce may differ from the policy.'),
    ...say(
      inList('out_of_date'),
      'out of date',
      'they enforce as before, but without the features and fixes of later releases.',
    ),
    ...say(
      inList('not_known'),
      'not known in full',
      'the PCE does not tell everything about them, so they may need attention too.',
    ),
    ...say(
      inMode('idle'),
      'in idle',
      'no policy is applied there and nothing is blocked; traffic is reported in part only, as snapshots of ten minutes with the decision unknown.',
    ),
    ...say(inMode('visibility_only'), 'in visibility_only', 'traffic is reported, nothing is blocked.'),
  ]
}

import { isEnforcing } from '../../schemas/pce/enforcement-modes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Ven, VenRelease } from '../../schemas/pce/ven.js'
import { compareTexts } from '../text/compare-texts.js'
import { countOf } from '../text/describe-numbers.js'
import {
  compareReleases,
  conditionsOf,
  healthOf,
  isSilentOnline,
  meaningOf,
  nameOfVen,
  workOf,
} from './describe-ven.js'

/** Lists of VENs that need attention. A VEN may be in several of them. */
export const VEN_LISTS = ['not_running', 'offline', 'in_error', 'unsynced', 'out_of_date'] as const
export type VenList = (typeof VEN_LISTS)[number]

/** A VEN as an entry of one of the lists. */
export interface VenRow {
  name: string
  href: string
  app: string | null
  env: string | null
  enforcement_mode: string | null
  last_heartbeat_at: string | null
  /** Why the VEN is in this list. */
  why: string
}

/** The expected version for each type of VEN, and where that expectation comes from. */
export interface VersionReference {
  from: 'default release' | 'newest release' | 'newest VEN'
  versions: Record<string, string>
}

/** Counts by value; VENs without a value count as `unknown`. */
type Counts = Record<string, number>

/** The state of a fleet of VENs (T39). */
export interface FleetHealth {
  total: number
  /** Number of VENs that are active, online, in selective or full mode, and have the latest policy. */
  enforcing: number
  counts: Record<(typeof COUNTED)[number], Counts>
  conditions: { condition: string; means: string; vens: number }[]
  /** Null if no VEN reports its version. */
  reference: VersionReference | null
  lists: Record<VenList, VenRow[]>
  /** Sentences about the consequences for enforcement, worst first. */
  meaning: string[]
  /** Number of VENs that count as online but sent no heartbeat for more than a day. */
  silentOnline: number
}

const COUNTED = ['status', 'health', 'version', 'os', 'mode', 'type'] as const
const HOUR_MS = 3_600_000
const UNKNOWN = 'unknown'

/** The data kept for each VEN. Everything else is only counted while the VENs are read. */
interface Kept extends Omit<VenRow, 'why'> {
  version: string | null
  type: string
  target: string | null
  /** Whole hours since the last heartbeat. */
  silentHours: number | null
}

/**
 * Creates a counter for a fleet, to be fed while the VENs are read.
 *
 * @param now milliseconds since the epoch
 * @param releases the releases that the PCE holds; null if they could not be read
 */
export function createFleetCount(now: number, releases: readonly VenRelease[] | null) {
  const counts = new Map(COUNTED.map((name) => [name, new Map<string, number>()]))
  const conditions = new Map<string, number>()
  const lists: Record<VenList, VenRow[]> = { not_running: [], offline: [], in_error: [], unsynced: [], out_of_date: [] }
  const fleet: Kept[] = []
  let [enforcing, silentOnline] = [0, 0]

  /** Adds a VEN. `expand` returns a label with its key and value. */
  function add(ven: Ven, expand: (label: LabelRef) => LabelRef): void {
    const found = conditionsOf(ven)
    const health = healthOf(found)
    const { mode, online, sync } = workOf(ven)
    const status = ven.status ?? UNKNOWN
    const kept = keep(ven, now, expand)
    fleet.push(kept)
    if (isSilentOnline(ven, now)) silentOnline += 1
    const values = { status, health, version: ven.version, os: ven.os_id, mode, type: ven.ven_type }
    for (const [name, counted] of counts) count(counted, values[name] ?? UNKNOWN)
    for (const condition of new Set(found.map((one) => one.condition))) count(conditions, condition)

    const runs = status === 'active' || status === UNKNOWN
    const isApplied = sync === null || sync === 'applied'
    if (!runs) lists.not_running.push(rowOf(kept, status))
    else if (online === false) lists.offline.push(rowOf(kept, whyOffline(kept)))
    else if (!isApplied) lists.unsynced.push(rowOf(kept, `policy ${sync}`))
    else if (isEnforcing(mode)) enforcing += 1
    if (health === 'error') {
      const errors = found.filter(({ severity }) => severity === 'error')
      lists.in_error.push(rowOf(kept, errors.map(({ means }) => means).join('; ')))
    }
  }

  /** Returns the result. Must be called only once. */
  function judge(): FleetHealth {
    const reference = referenceOf(releases, fleet)
    for (const kept of fleet) {
      const { version, target, type } = kept
      const wanted = reference?.versions[type]
      if (version === null || wanted === undefined || compareReleases(version, wanted) >= 0) continue
      const upgrade = target === null ? '' : `, upgrade to ${target} under way`
      lists.out_of_date.push(rowOf(kept, `${version}, not ${wanted}${upgrade}`))
    }
    for (const rows of Object.values(lists)) rows.sort(worstFirst)
    return {
      total: fleet.length,
      enforcing,
      counts: Object.fromEntries(
        [...counts].map(([name, found]) => [name, Object.fromEntries([...found].sort(mostFirst))]),
      ) as FleetHealth['counts'],
      conditions: [...conditions].sort(mostFirst).map(([condition, vens]) => ({
        condition,
        means: meaningOf(condition),
        vens,
      })),
      reference,
      lists,
      silentOnline,
      meaning: explain(lists, counts.get('mode') as ReadonlyMap<string, number>),
    }
  }
  return { add, judge }
}

const count = (counts: Map<string, number>, value: string) => void counts.set(value, (counts.get(value) ?? 0) + 1)
const mostFirst = ([a, m]: readonly [string, number], [b, n]: readonly [string, number]) => n - m || compareTexts(a, b)

function keep(ven: Ven, now: number, expand: (label: LabelRef) => LabelRef): Kept {
  const labels = (ven.labels ?? []).map(expand)
  const valueOf = (wanted: string) => labels.find(({ key }) => key === wanted)?.value ?? null
  const heard = ven.last_heartbeat_at ?? null
  const silence = heard === null ? NaN : now - Date.parse(heard)
  return {
    name: nameOfVen(ven),
    href: ven.href,
    app: valueOf('app'),
    env: valueOf('env'),
    enforcement_mode: workOf(ven).mode,
    last_heartbeat_at: heard,
    version: ven.version ?? null,
    type: ven.ven_type ?? UNKNOWN,
    target: ven.upgrade_target_version ?? null,
    silentHours: Number.isNaN(silence) ? null : Math.max(0, Math.floor(silence / HOUR_MS)),
  }
}

const rowOf = (
  { version: _version, type: _type, target: _target, silentHours: _silent, ...row }: Kept,
  why: string,
): VenRow => ({
  ...row,
  why,
})

const whyOffline = ({ silentHours: hours }: Kept): string =>
  hours === null
    ? 'offline, never heard of'
    : `no heartbeat for ${hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`}`

/** Sorts VENs that should enforce policy first, then those that have been silent longest. */
const worstFirst = (a: VenRow, b: VenRow): number =>
  Number(isEnforcing(b.enforcement_mode)) - Number(isEnforcing(a.enforcement_mode)) ||
  compareTexts(a.last_heartbeat_at ?? '', b.last_heartbeat_at ?? '') ||
  compareTexts(a.name, b.name) ||
  compareTexts(a.href, b.href)

/**
 * Determines the expected version for each type of VEN: the default release, which some PCEs define per type, otherwise
 * the newest release known. Types without a default release, such as containerized VENs, which the PCE does not
 * upgrade, have no expected version.
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

/** Explains what each finding means for enforcement (P78, P104, P105); findings without VENs are left out. */
function explain(lists: Record<VenList, VenRow[]>, modes: ReadonlyMap<string, number>): string[] {
  const enforced = (rows: readonly VenRow[]) => {
    const many = rows.filter(({ enforcement_mode: mode }) => isEnforcing(mode)).length
    return many === 0 ? '' : ` (${many} in selective or full mode)`
  }
  const say = (rows: readonly VenRow[], state: string, means: string) =>
    rows.length === 0 ? [] : [`${countOf(rows.length, 'VEN')} ${state}${enforced(rows)}: ${means}`]
  const suspended = lists.not_running.filter(({ why }) => why === 'suspended')
  const others = lists.not_running.filter(({ why }) => why !== 'suspended')
  const inMode = (mode: string, means: string) => {
    const many = modes.get(mode) ?? 0
    return many === 0 ? [] : [`${countOf(many, 'VEN')} in ${mode}: ${means}`]
  }
  return [
    ...say(suspended, 'suspended', 'nothing is enforced there: the firewall rules are removed and all traffic passes.'),
    ...say(
      others,
      'stopped or uninstalled',
      'no change reaches them and no traffic is reported; whether rules still stand on the hosts is not known here.',
    ),
    ...say(
      lists.offline,
      'offline',
      'where the host is up, it goes on enforcing the policy it received last and learns of no change; its addresses are out of the policy of others, so those that enforce refuse it.',
    ),
    ...say(
      lists.unsynced,
      'without the newest policy',
      'they enforce an older one until they have applied it; staged waits for somebody to apply it.',
    ),
    ...say(lists.in_error, 'in error', 'until that is fixed, what they enforce may differ from the policy.'),
    ...say(
      lists.out_of_date,
      'out of date',
      'they enforce as before, but without the features and fixes of later releases.',
    ),
    ...inMode('idle', 'no policy is applied there: nothing is blocked, and no traffic is reported.'),
    ...inMode('visibility_only', 'traffic is reported, nothing is blocked.'),
  ]
}

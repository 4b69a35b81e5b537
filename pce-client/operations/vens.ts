import type {
  ActionError,
  FirewallRestore,
  VenImage,
  VenRelease,
  VenPropertyCounts,
  VenStatistics,
} from '../../schemas/pce/ven.js'
import type { Reference } from '../../schemas/pce/reference.js'
import { VEN_PROPERTIES } from '../../schemas/pce/words.js'
import { actInChunks } from '../bulk.js'
import { KINDS } from '../kinds.js'
import { integerIn } from '../settings.js'
import { listOf } from '../transport.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { errorsOf, segment, type Calls } from './create-calls.js'

/** Maximum number of VENs in one request, by action (P48, P49). */
const MOST_UNPAIRED = 1000
const MOST_UPGRADED = 25_000
const MOST_RECOVERED = 1000
/**
 * Maximum number of VENs in one request for a remote action, because the PCE accepts only one VEN in such a request.
 */
const MOST_ACTED_ON = 1
/**
 * Default number of seconds for which VENs may authenticate again: one day, which is long enough for machines that are
 * off at night.
 */
const RECOVERY_SECONDS = 86_400

/**
 * Actions on VENs (S9, P32). Each returns a list of errors, which is empty if all went well: the PCE answers 200 even
 * if the action failed for some VENs. Lists that are longer than the PCE allows in one request are split into several
 * requests. If a later request fails, the error's `completed` lists the VENs of the earlier requests.
 *
 * Each throws PceError before any request: `invalid_href` for anything that is not a VEN of this organisation,
 * `invalid_argument` for an empty list.
 */
export interface VenOperations {
  /**
   * Unpairs VENs. This removes the policy from their workloads. `firewallRestore` decides what happens to their
   * firewalls.
   */
  unpairVens(
    venHrefs: readonly ReferenceLike[],
    firewallRestore?: FirewallRestore,
    options?: RequestOptions,
  ): Promise<ActionError[]>
  /**
   * Starts upgrading VENs to a release. `options.json` may have `upgrade_timeout_seconds`.
   *
   * @throws {PceIntegerError} for a time-out outside 900..15552000.
   */
  upgradeVens(venHrefs: readonly ReferenceLike[], release: string, options?: RequestOptions): Promise<ActionError[]>
  /**
   * Sends an action to VENs; the only action is `restart`. One request is sent for each VEN, because the PCE accepts
   * only one VEN in a request.
   */
  venRemoteAction(venHrefs: readonly ReferenceLike[], action: string, options?: RequestOptions): Promise<ActionError[]>
  /**
   * Lets VENs that have lost their credentials authenticate again, for one day. `options.json` may have
   * `recovery_duration_seconds`, or `recovery_enabled: false` to end the recovery.
   *
   * @throws {PceIntegerError} for a duration outside 3600..2592000.
   */
  venAuthRecovery(venHrefs: readonly ReferenceLike[], options?: RequestOptions): Promise<ActionError[]>
  /**
   * Counts the VENs of the whole organisation by status, version, health, condition, operating system, enforcement mode
   * and type. `venHrefs` are checked but cannot narrow the counts, because the PCE counts by property and cannot be
   * given VENs. The result has one entry per property. `property_counts` in `options.json` asks for other properties or
   * filters; if a property occurs twice, the last entry wins.
   */
  getVenStatistics(venHrefs?: readonly ReferenceLike[], options?: RequestOptions): Promise<VenStatistics>
}

export function createVenOperations(calls: Calls): VenOperations {
  const base = `${calls.org}/vens`

  async function act(
    action: string,
    references: readonly ReferenceLike[],
    limit: number,
    body: object,
    options: RequestOptions | undefined,
  ): Promise<ActionError[]> {
    return actInChunks(action, calls.hrefs(KINDS.vens, references), limit, async (vens: Reference[]) =>
      errorsOf(await calls.put(`${base}/${action}`, { ...body, vens }, options), `vens/${action}`),
    )
  }

  return {
    unpairVens: (venHrefs, firewallRestore = 'default', options) =>
      act('unpair', venHrefs, MOST_UNPAIRED, { firewall_restore: firewallRestore }, options),
    async upgradeVens(venHrefs, release, options) {
      checkSeconds(options, 'upgrade_timeout_seconds', 900, 15_552_000)
      return act('upgrade', venHrefs, MOST_UPGRADED, { release }, options)
    },
    venRemoteAction: (venHrefs, action, options) => act('remote_action', venHrefs, MOST_ACTED_ON, { action }, options),
    async venAuthRecovery(venHrefs, options) {
      checkSeconds(options, 'recovery_duration_seconds', 3600, 2_592_000)
      const body = { recovery_enabled: true, recovery_duration_seconds: RECOVERY_SECONDS }
      return act('authentication_recovery', venHrefs, MOST_RECOVERED, body, options)
    },
    async getVenStatistics(venHrefs = [], options) {
      calls.hrefs(KINDS.vens, venHrefs)
      const path = `${base}/statistics`
      const body = { property_counts: VEN_PROPERTIES.map((property) => ({ property })) }
      const counts = await listOf<VenPropertyCounts>(await calls.post(path, body, options), path)
      return Object.fromEntries(counts.map((count) => [count.property, count]))
    },
  }
}

/** Checks a duration that the caller has set in `options.json`. @throws {PceIntegerError} if it is out of range. */
function checkSeconds({ json }: RequestOptions = {}, name: string, least: number, most: number): void {
  const seconds = (json as Record<string, unknown> | null | undefined)?.[name]
  if (seconds !== undefined) integerIn(name, seconds, least, most)
}

/** Operations on the VEN software that the PCE holds (S9, P57). Releases have names like `22.2.0-166`. */
export interface VenReleaseOperations {
  /** Lists the releases of VEN software that the PCE holds. */
  getVenSoftwareReleases(options?: RequestOptions): Promise<VenRelease[]>
  /** Returns one release of VEN software. */
  getVenSoftwareRelease(release: string, options?: RequestOptions): Promise<VenRelease>
  /** Deletes a release of VEN software from the PCE. */
  deleteVenSoftwareRelease(release: string, options?: RequestOptions): Promise<void>
  /** Makes a release of VEN software the default for new VENs. */
  setDefaultVenRelease(release: string, options?: RequestOptions): Promise<void>
  /** Lists the software packages of a VEN release, one for each operating system. */
  getVenReleaseImages(release: string, options?: RequestOptions): Promise<VenImage[]>
}

export function createVenReleaseOperations(calls: Calls): VenReleaseOperations {
  const releases = `${calls.org}/software/ven/releases`
  const pathOf = (release: string) => `${releases}/${segment('release', release)}`
  return {
    getVenSoftwareReleases: (options) => calls.list<VenRelease>(releases, options),
    async getVenSoftwareRelease(release, options) {
      return calls.get<VenRelease>(pathOf(release), options)
    },
    async deleteVenSoftwareRelease(release, options) {
      await calls.delete(pathOf(release), options)
    },
    async setDefaultVenRelease(release, options) {
      await calls.put(`${releases}/default`, { release }, options)
    },
    async getVenReleaseImages(release, options) {
      return calls.list<VenImage>(`${pathOf(release)}/images`, options)
    },
  }
}

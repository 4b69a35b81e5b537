import { PceError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { fetchUpTo } from '../inventory/fetch-every.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { modeOf } from '../inventory/workloads.js'
import { compareReleases, isRelease } from '../text/compare-releases.js'
import { countOf } from '../text/describe-numbers.js'
import type { RuleType } from '../policy/rule-type.js'
import { ruleIndexOf } from './resolve-actors.js'
import { selectWorkloads } from './select-workloads.js'

/** A rule as it will be after the write. */
interface WrittenRule {
  type: RuleType
  providers: readonly Actor[]
  consumers: readonly Actor[]
  unscoped: boolean
}

/** The first release of a PCE that takes excluded labels in deny rules, and of a VEN that knows override deny (P21). */
const EXCLUSION_SINCE = '25.2.10'
const OVERRIDE_SINCE = '22.3.0'

/**
 * Checks that the release of this PCE takes the excluded labels of deny rules, which takes a request if there are any.
 * @throws {ToolError} invalid_actor with `release` and `required_release` if it does not.
 * @returns a warning if the release is not known.
 */
export async function refuseByRelease(
  pce: PceClient,
  rules: readonly Pick<WrittenRule, 'type' | 'providers' | 'consumers'>[],
  signal: AbortSignal,
): Promise<string[]> {
  const at = rules.findIndex(
    ({ type, providers, consumers }) =>
      type !== 'allow' && [...providers, ...consumers].some(({ exclusion }) => exclusion === true),
  )
  if (at === -1) return []
  const release = await readRelease(pce, signal)
  if (release === null)
    return [
      `Whether this PCE takes an excluded label in a deny rule is not known, because its release could not be read: before ${EXCLUSION_SINCE} only allow rules can have one.`,
    ]
  if (compareReleases(release, EXCLUSION_SINCE) >= 0) return []
  const text = `This PCE has release ${release}: before ${EXCLUSION_SINCE} only allow rules can exclude labels, not deny rules. Nothing was written.`
  const details = {
    ...ruleIndexOf(rules.length > 1 ? { ruleIndex: at } : {}),
    release,
    required_release: EXCLUSION_SINCE,
  }
  throw new ToolError('invalid_actor', text, details, { hint: 'Name the labels that the rule is about instead.' })
}

async function readRelease(pce: PceClient, signal: AbortSignal): Promise<string | null> {
  try {
    const { version } = (await pce.getProductVersion({ signal })) as { version?: unknown }
    return typeof version === 'string' && isRelease(version) ? version : null
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}

/** Maximum number of workloads that are read for one end of a rule, and of workloads that it names one by one. */
const MOST_READ = 1_000
const MOST_SINGLE = 50
const MOST_NAMED = 5

/** The workloads with a VEN at one end of a deny rule, or at both if these are the same. */
interface End {
  noun: string
  managed: Workload[]
  isCut: boolean
}

/**
 * Warns of workloads at the ends of a deny rule where it stops nothing: those whose mode enforces nothing, and, for an
 * override deny, those whose VEN does not know it. At most MOST_READ workloads of an end are read; Kubernetes workloads
 * are not looked at.
 */
export async function warnOfDenyLimits(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  rule: WrittenRule,
): Promise<string[]> {
  if (rule.type === 'allow') return []
  let ends: End[]
  try {
    ends = await readEnds({ pce, signal }, lookups, scopes, rule)
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return [`Whether the workloads at its ends enforce the rule is not known: ${error.message}`]
  }
  return ends.flatMap(({ noun, managed, isCut }) => {
    const read = isCut ? ' (the first ones, more were not looked at)' : ''
    const of = `Of ${countOf(managed.length, noun)} with a VEN${read}`
    return [...warnOfModes(managed, of), ...(rule.type === 'override_deny' ? warnOfOldVens(managed, of) : [])]
  })
}

function warnOfModes(managed: readonly Workload[], of: string): string[] {
  const inMode = (...modes: string[]) => managed.filter((one) => modes.includes(modeOf(one)))
  const [idle, unknown] = [inMode('idle', 'visibility_only'), inMode('unknown')]
  if (idle.length + unknown.length === 0) return []
  const are = idle.length === 1 ? 'is' : 'are'
  const parts = [
    ...(idle.length > 0
      ? [`${idle.length} ${are} idle or in visibility_only, and nothing is enforced there: ${nameSome(idle)}`]
      : []),
    ...(unknown.length > 0 ? [`of ${unknown.length} it is not known what they enforce: ${nameSome(unknown)}`] : []),
  ]
  return [`${of}, ${parts.join('; ')}.`]
}

function warnOfOldVens(managed: readonly Workload[], of: string): string[] {
  const versions = managed.map((one) => ({ one, version: versionOf(one) }))
  const old = versions.filter(({ version }) => version !== null && compareReleases(version, OVERRIDE_SINCE) < 0)
  const unknown = versions.filter(({ version }) => version === null)
  if (old.length + unknown.length === 0) return []
  const parts = [
    ...(old.length > 0
      ? [
          `${old.length} ${old.length === 1 ? 'has' : 'have'} a VEN before ${OVERRIDE_SINCE}, which ignores override denies: ${nameSome(old.map(({ one }) => one))}`,
        ]
      : []),
    ...(unknown.length > 0 ? [`of ${unknown.length} the release of the VEN is not known`] : []),
  ]
  return [`${of}, ${parts.join('; ')}.`]
}

/** Returns the release of a workload's VEN; null if the PCE gives none. */
function versionOf({ ven, agent }: Workload): string | null {
  const given = [
    (ven as { version?: unknown } | null | undefined)?.version,
    (agent as { status?: { agent_version?: unknown } | null } | null | undefined)?.status?.agent_version,
  ]
  return given.find((one): one is string => typeof one === 'string' && isRelease(one)) ?? null
}

function nameSome(workloads: readonly Workload[]): string {
  const names = workloads.slice(0, MOST_NAMED).map(({ name, hostname, href }) => name ?? hostname ?? href)
  const more = workloads.length - names.length
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

async function readEnds(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  { providers, consumers, unscoped }: WrittenRule,
): Promise<End[]> {
  const read = new Map<string, readonly Workload[]>()
  const readEnd = async (noun: string, actors: readonly Actor[], isBound: boolean): Promise<End> => {
    const selected = await selectWorkloads(lookups, scopes, { actors, isBound })
    const hrefs = selected.workloads.slice(0, MOST_SINGLE)
    const found = new Map<string, Workload>()
    let isCut = hrefs.length < selected.workloads.length
    if (selected.labelGroups.length > 0) {
      const labels = selected.labelGroups.some((group) => group.length === 0) ? undefined : selected.labelGroups
      const id = JSON.stringify(labels ?? null)
      const items =
        read.get(id) ??
        (await fetchUpTo({ api: pce.workloads, params: { managed: true, labels }, signal }, MOST_READ)).items
      read.set(id, items)
      isCut ||= items.length >= MOST_READ
      for (const one of items)
        if (!(one.labels ?? []).some(({ href }) => selected.excluded.has(href))) found.set(one.href, one)
    }
    for (const href of hrefs) found.set(href, await pce.workloads.getByReference(href, { signal }))
    return { noun, managed: [...found.values()].filter((one) => modeOf(one) !== 'none'), isCut }
  }
  const [to, from] = [await readEnd('destination', providers, true), await readEnd('source', consumers, !unscoped)]
  const hrefsOf = ({ managed }: End) => JSON.stringify(managed.map(({ href }) => href).sort())
  return hrefsOf(to) === hrefsOf(from) ? [{ ...to, noun: 'workload' }] : [to, from]
}

import { PceError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { countKubernetesWorkloads, tellUnread } from '../inventory/kubernetes-workloads.js'
import { modeOf } from '../inventory/workloads.js'
import { onlyReports, stops } from '../policy/mode-effects.js'
import type { RuleType } from '../policy/rule-type.js'
import { compareReleases, isRelease } from '../text/compare-releases.js'
import { countOf } from '../text/describe-numbers.js'
import { clipText, quote } from '../text/escape-text.js'
import { createEndReader, type DenyEnd, type EndsOfRule } from './read-deny-ends.js'
import { ruleIndexOf } from './resolve-actors.js'

/** The two sides and the type of a rule, as they will be after the write. */
interface WrittenRule extends EndsOfRule {
  type: RuleType
}

/**
 * The first PCE release that accepts excluded labels in deny rules, and the first VEN release that supports override
 * deny rules (P21).
 */
const EXCLUSION_SINCE = '25.2.10'
const OVERRIDE_SINCE = '22.3.0'

/**
 * Checks that the release of this PCE accepts excluded labels in deny rules. A request is sent only if one of the deny
 * rules has an excluded label.
 * @throws {ToolError} invalid_actor with `release` and `required_release` if the release does not accept them.
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

/** Maximum number of deny rules per call for which the workloads on both sides are read. */
const MOST_DENIES = 10
/** Maximum number of workloads named in a warning, and maximum number of characters of each name. */
const MOST_NAMED = 5
const LONGEST_NAME = 60

interface Source {
  pce: PceClient
  signal: AbortSignal
}

/**
 * Warns of workloads on the sides of deny rules for which these rules block nothing: workloads in a mode that enforces
 * nothing and, for an override deny rule, workloads whose VEN does not support it. The warnings also say which
 * workloads were not checked and what is not known. If the call writes several rules (`isNumbered`), each warning about
 * a rule starts with its index.
 */
export async function warnOfDenyLimits(
  { pce, signal }: Source,
  lookups: PolicyLookups,
  scopes: readonly (readonly ScopeEntry[])[],
  rules: readonly WrittenRule[],
  { isNumbered = false }: { isNumbered?: boolean } = {},
): Promise<string[]> {
  const denies = [...rules.entries()].filter(([, { type }]) => type !== 'allow')
  const readEnds = createEndReader({ pce, signal }, lookups, scopes)
  const warnings: string[] = []
  let kubernetes: string[] | undefined
  for (const [index, rule] of denies.slice(0, MOST_DENIES)) {
    const said: string[] = []
    try {
      const ends = await readEnds(rule)
      if (ends.some(({ isSelected }) => isSelected)) kubernetes ??= await tellKubernetes({ pce, signal })
      const hasPods = (kubernetes ?? []).length > 0
      for (const end of ends) {
        const others = ends.length === 1 ? ends : ends.filter((other) => other !== end)
        const mayStop = others.some((other) => mayEnforce(other, rule.type) || (other.isSelected && hasPods))
        said.push(...warnOfModes(end, rule.type, mayStop))
        if (rule.type === 'override_deny') said.push(...warnOfOldVens(end))
        said.push(...tellUnlooked(end))
      }
    } catch (error) {
      if (!(error instanceof PceError || error instanceof ToolError) || signal.aborted) throw error
      said.push(`Whether the workloads at its ends enforce the rule is not known: ${error.message}`)
    }
    warnings.push(...said.map((text) => (isNumbered ? `Rule ${index}: ${text}` : text)))
  }
  warnings.push(...(kubernetes ?? []))
  if (denies.length > MOST_DENIES)
    warnings.push(
      `Whether workloads enforce them was looked at for the first ${MOST_DENIES} deny rules, not for ${denies.length - MOST_DENIES} more.`,
    )
  return warnings
}

type Effect = 'drops' | 'nothing' | 'unsettled' | 'unknown'

/** Returns whether a workload on this side of a deny rule drops the connections that match the rule. */
function effectOf(workload: Workload, { directions }: DenyEnd, type: RuleType): Effect {
  const mode = modeOf(workload)
  if (mode === 'unknown' || mode === 'none') return 'unknown'
  const answers = directions.map((direction) => (onlyReports(mode, direction) ? 'no' : stops(mode, direction, type)))
  if (answers.every((answer) => answer === 'no')) return 'nothing'
  return answers.every((answer) => answer === 'yes') ? 'drops' : 'unsettled'
}

/** Returns false only if it is certain that no workload on this side drops connections because of the rule. */
const mayEnforce = (end: DenyEnd, type: RuleType): boolean =>
  tellUnlooked(end).length > 0 || end.managed.some((one) => effectOf(one, end, type) !== 'nothing')

function warnOfModes(end: DenyEnd, type: RuleType, mayStop: boolean): string[] {
  const where = (effect: Effect) => end.managed.filter((one) => effectOf(one, end, type) === effect)
  const [idle, unsettled, unknown] = [where('nothing'), where('unsettled'), where('unknown')]
  const [is, drops] = idle.length === 1 ? ['is', 'drops'] : ['are', 'drop']
  const so = mayStop
    ? ` and ${drops} nothing, so only the other end of a connection can enforce the rule`
    : ', and nothing is enforced there'
  return [
    ...(idle.length > 0 ? [`${share(idle, end)} ${is} idle or in visibility_only${so}: ${nameSome(idle)}.`] : []),
    ...(unsettled.length > 0
      ? [
          `Whether a source in selective mode itself enforces a deny is not settled: ${share(unsettled, end)} ${unsettled.length === 1 ? 'is' : 'are'} in it: ${nameSome(unsettled)}.`,
        ]
      : []),
    ...(unknown.length > 0 ? [`The mode of ${share(unknown, end)} is unknown: ${nameSome(unknown)}.`] : []),
  ]
}

function warnOfOldVens(end: DenyEnd): string[] {
  const versions = end.managed.map((one) => ({ one, version: versionOf(one) }))
  const where = (fits: (version: string | null) => boolean) =>
    versions.filter(({ version }) => fits(version)).map(({ one }) => one)
  const old = where((version) => version !== null && compareReleases(version, OVERRIDE_SINCE) < 0)
  const unknown = where((version) => version === null)
  const has = old.length === 1 ? 'has a release' : 'have releases'
  return [
    ...(old.length > 0
      ? [
          `${share(old, end)} ${has} before ${OVERRIDE_SINCE}, which ignore${old.length === 1 ? 's' : ''} override denies: ${nameSome(old)}.`,
        ]
      : []),
    ...(unknown.length > 0 ? [`The VEN release of ${share(unknown, end)} is unknown: ${nameSome(unknown)}.`] : []),
  ]
}

/** Returns sentences that say which workloads on one side of a rule were not checked. */
function tellUnlooked({ noun, unread, isCut, unnamed, missing, hasOthers }: DenyEnd): string[] {
  return [
    ...(unread === null ? [] : [`Modes and VENs of its ${noun}s were not looked at, because ${unread}.`]),
    ...(isCut ? [`Of the ${noun}s that its labels select, only the first ones were looked at.`] : []),
    ...(unnamed > 0
      ? [`${countOf(unnamed, noun)} that it names one by one ${unnamed === 1 ? 'was' : 'were'} not looked at.`]
      : []),
    ...(missing.length > 0
      ? [
          `${countOf(missing.length, noun)} that it names could not be read, so the mode there is unknown: ${missing[0]}`,
        ]
      : []),
    ...(hasOthers ? [`It names ${noun}s of a kind that was not looked at.`] : []),
  ]
}

/** Returns a warning that Kubernetes workloads were not checked, if this PCE has or may have any. */
async function tellKubernetes(source: Source): Promise<string[]> {
  try {
    const { left, unread } = await countKubernetesWorkloads(source, {})
    if (left === 0) return tellUnread(unread)
    return [
      `Kubernetes workloads were not looked at: this PCE has ${left}, and whether they enforce what is denied here is not known.`,
    ]
  } catch (error) {
    if (!(error instanceof PceError) || source.signal.aborted) throw error
    return tellUnread(error.message)
  }
}

/** Returns the release of a workload's VEN; null if the PCE does not report it. */
function versionOf({ ven, agent }: Workload): string | null {
  const given = [
    (ven as { version?: unknown } | null | undefined)?.version,
    (agent as { status?: { agent_version?: unknown } | null } | null | undefined)?.status?.agent_version,
  ]
  return given.find((one): one is string => typeof one === 'string' && isRelease(one)) ?? null
}

const share = (some: readonly Workload[], { managed, noun }: DenyEnd): string =>
  `${some.length} of ${countOf(managed.length, noun)} with a VEN`

function nameSome(workloads: readonly Workload[]): string {
  const names = workloads
    .slice(0, MOST_NAMED)
    .map(({ name, hostname, href }) => quote(clipText(name ?? hostname ?? href, LONGEST_NAME)))
  const more = workloads.length - names.length
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

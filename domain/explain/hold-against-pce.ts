import { PceError, type PceClient } from '../../pce-client/index.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import { isKubernetes } from '../inventory/kubernetes-workloads.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Version } from '../inventory/find-object.js'
import { pceNameOf, type RuleType } from '../policy/rule-type.js'
import type { Member } from './find-members.js'
import { speaks, type JudgedPair } from './judge-members.js'
import type { ApplyingRule, AskedService } from './judge-pair.js'

/** A rule that applies according to the PCE but not according to this server's matcher, or the other way round. */
export interface Difference {
  version: Version
  href: string
  rule_type: RuleType
  says: 'pce_applies' | 'pce_does_not'
}

/** The result of comparing this server's matcher with the PCE's own policy check (P93). */
export interface PceCheck {
  /** Number of pairs that were checked, each in both versions of the policy. */
  checked: number
  differences: readonly Difference[]
  /**
   * The rules for which this server's matcher could not decide whether they apply, by draft href. The value is true if
   * they do according to the PCE.
   */
  settled: ReadonlyMap<string, boolean>
  /** The reason why the PCE's check could not be used; null if it was used. */
  unavailable: string | null
}

/**
 * Asks the PCE which rules apply to the given pairs, in both versions of the policy, and compares its answer with the
 * matcher's result. The answer does not cover enforcement boundaries (P93). The PCE is not asked about Kubernetes
 * workloads, because it is not documented how its check refers to them (P106). If it does not support the check or
 * refuses it, `unavailable` in the result has the reason.
 */
export async function holdAgainstPce(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  pairs: readonly JudgedPair[],
  service: AskedService,
): Promise<PceCheck> {
  const differences: Difference[] = []
  const settled = new Map<string, boolean>()
  let checked = 0
  const askable = pairs.filter(({ source, destination }) => canBeAsked(source) && canBeAsked(destination))
  if (askable.length === 0 && pairs.length > 0)
    return {
      checked,
      differences,
      settled,
      unavailable: 'how its policy check names Kubernetes workloads is not documented.',
    }
  for (const pair of askable) {
    for (const version of ['active', 'draft'] as const) {
      const params = paramsOf(pair, service)
      const ours = new Map(
        pair[version].rules.flatMap((rule) => (rule.held.ruleSet === null ? [] : [[rule.held.href, rule] as const])),
      )
      const theirs = await ask(pce, version, params, signal)
      if (typeof theirs === 'string') return { checked, differences, settled, unavailable: theirs }
      compare(version, ours, theirs, differences, settled)
    }
    checked += 1
  }
  return { checked, differences, settled, unavailable: null }
}

const canBeAsked = ({ workload, isUnsure }: Member): boolean =>
  isUnsure !== true && (workload === null || !isKubernetes({ href: workload }))

/** Returns the hrefs and types of the rules that apply according to the PCE, or the reason why its check failed. */
async function ask(
  pce: PceClient,
  version: Version,
  params: Record<string, string | number>,
  signal: AbortSignal,
): Promise<Map<string, RuleType> | string> {
  try {
    const check = await pce.checkPolicy(version, { params, signal })
    return new Map(
      RULE_TYPES.flatMap((type) => check[pceNameOf(type)].map(({ href }) => [toDraftHref(href), type] as const)),
    )
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return error.message
  }
}

function compare(
  version: Version,
  ours: ReadonlyMap<string, ApplyingRule>,
  theirs: ReadonlyMap<string, RuleType>,
  differences: Difference[],
  settled: Map<string, boolean>,
): void {
  for (const [href, rule] of ours) {
    const answer = speaks(rule)
    const applies = theirs.has(href)
    if (answer !== 'yes') settled.set(href, applies)
    else if (!applies) differences.push({ version, href, rule_type: rule.held.kind, says: 'pce_does_not' })
  }
  for (const [href, type] of theirs)
    if (!ours.has(href)) differences.push({ version, href, rule_type: type, says: 'pce_applies' })
}

function paramsOf({ source, destination }: JudgedPair, { port, proto }: AskedService): Record<string, string | number> {
  return {
    ...endOf('src', source),
    ...endOf('dst', destination),
    protocol: proto,
    ...(port !== null && { port }),
  }
}

const endOf = (side: 'src' | 'dst', { workload, ip }: Member): Record<string, string> =>
  workload === null ? { [`${side}_external_ip`]: ip ?? '' } : { [`${side}_workload`]: workload }

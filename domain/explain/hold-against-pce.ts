import { PceError, type PceClient } from '../../pce-client/index.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Version } from '../inventory/find-object.js'
import type { RuleKind } from '../policy/load-snapshot.js'
import type { Member } from './find-members.js'
import { speaks, type JudgedPair } from './judge-members.js'
import type { ApplyingRule, AskedService } from './judge-pair.js'

/** A rule of which the PCE and the matcher say different things. */
export interface Difference {
  version: Version
  href: string
  rule_type: RuleKind
  says: 'pce_applies' | 'pce_does_not'
}

/** What the PCE's own check of the policy says beside the matcher (P93). */
export interface PceCheck {
  /** Pairs that were checked, in both versions. */
  checked: number
  differences: readonly Difference[]
  /** Rules that the matcher left undecided, and that the PCE says apply, or do not: by draft href. */
  settled: ReadonlyMap<string, boolean>
  /** Why it could not be asked; otherwise null. */
  unavailable: string | null
}

const BUCKETS = { sec_rules: 'allow', deny_rules: 'deny', override_deny_rules: 'override_deny' } as const

/**
 * Asks the PCE which rules apply to these pairs, in both versions of the policy, and holds the matcher's answer against it. Enforcement
 * boundaries are not in that answer (P93). A PCE that does not know the question, or refuses it, makes the check unavailable.
 */
export async function holdAgainstPce(
  { pce, signal }: { pce: PceClient; signal: AbortSignal },
  pairs: readonly JudgedPair[],
  service: AskedService,
): Promise<PceCheck> {
  const differences: Difference[] = []
  const settled = new Map<string, boolean>()
  let checked = 0
  for (const pair of pairs) {
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

/** The hrefs of the rules that apply, by the PCE's account, with their kinds; or why it does not say. */
async function ask(
  pce: PceClient,
  version: Version,
  params: Record<string, string | number>,
  signal: AbortSignal,
): Promise<Map<string, RuleKind> | string> {
  try {
    const check = await pce.checkPolicy(version, { params, signal })
    const buckets = Object.entries(BUCKETS) as [keyof typeof BUCKETS, RuleKind][]
    return new Map(buckets.flatMap(([name, kind]) => check[name].map(({ href }) => [toDraftHref(href), kind] as const)))
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return error.message
  }
}

function compare(
  version: Version,
  ours: ReadonlyMap<string, ApplyingRule>,
  theirs: ReadonlyMap<string, RuleKind>,
  differences: Difference[],
  settled: Map<string, boolean>,
): void {
  for (const [href, rule] of ours) {
    const answer = speaks(rule)
    const applies = theirs.has(href)
    if (answer !== 'yes') settled.set(href, applies)
    else if (!applies) differences.push({ version, href, rule_type: rule.held.kind, says: 'pce_does_not' })
  }
  for (const [href, kind] of theirs)
    if (!ours.has(href)) differences.push({ version, href, rule_type: kind, says: 'pce_applies' })
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

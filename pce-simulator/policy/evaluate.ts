import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { PolicyView } from '../model.js'
import { compilePolicy, type RuleKind } from './compile-rules.js'
import { combineVerdicts, judgeEnd, type ApplyingRules, type SelectiveDefault, type Verdict } from './judge-end.js'
import type { EndFacts } from './match-actors.js'
import { UNCERTAIN } from '../uncertain.js'
import { describeService, type ServiceFacts } from './match-services.js'
import { createResolver, isManaged, osType, type End, type Observation, type Resolved } from './resolve-observations.js'

/**
 * A function that returns the verdict on an observation. A caller that has already resolved the observation passes the
 * result as `resolved`; all such results for one evaluator must come from the same resolver.
 */
export type Evaluator = (observation: Observation, resolved?: Resolved) => Verdict

/**
 * Creates the evaluator of one policy version.
 *
 * A connection gets a verdict at each managed workload: at the destination as inbound, at the source as outbound.
 * `judgeEnd` applies the rules according to the enforcement mode of that workload. The more severe of the two verdicts
 * wins (blocked, then potentially_blocked, allowed, unknown), because a connection must pass both workloads; `blocked`
 * therefore means that one of them drops it. This way, the two rows of a conversation that both workloads reported
 * agree. Without a managed workload, the verdict is `unknown`.
 *
 * A rule is enforced on the workloads that it names. For such a workload, the opposite side of the rule is a set of
 * addresses. (In a PCE, a deny rule from the Any IP list only reaches the destination workloads, and a deny rule from
 * all workloads reaches every managed source.) So a rule applies at the destination if its providers name that workload
 * and its consumers name the source or cover its address, and vice versa at the source. An outbound rule to an IP list
 * therefore does not open a workload whose address happens to be in the list.
 *
 * Verdicts are cached by the facts that determine them rather than by address, so that connections share a verdict if
 * no rule distinguishes their sources and destinations.
 */
export function createEvaluator(
  view: PolicyView,
  workloads: ReadonlyMap<string, Workload>,
  labels: ReadonlyMap<string, Label>,
  byDefault?: SelectiveDefault,
): Evaluator {
  const policy = compilePolicy(view, labels)
  const classes = new Map<string, EndClass>()
  const classOf = new Map<End, EndClass>()
  const verdicts = new Map<string, Verdict>()
  const ipLists = [...policy.ipLists]
  const resolve = createResolver(workloads)

  const classify = (end: End): EndClass => {
    const known = classOf.get(end)
    if (known !== undefined) return known
    const { workload } = end
    const covering = ipLists.filter(([, covers]) => covers(end.address, end.fqdn)).map(([key]) => key)
    const bears = (workload?.labels ?? []).map(({ href }) => href).sort()
    const kind =
      workload === null ? 'address' : isManaged(end) ? (workload.enforcement_mode ?? 'visibility_only') : 'unmanaged'
    const os = workload === null ? 'unknown' : osType(workload)
    const byName = workload !== null && policy.workloads.has(workload.href) ? workload.href : ''
    const key = [kind, os, byName, ...bears, ...covering].join(' ')
    let found = classes.get(key)
    if (found === undefined) {
      const facts = { workload: workload?.href ?? null, labels: new Set(bears), ipLists: new Set(covering) }
      found = {
        id: classes.size,
        mode: isManaged(end) ? (workload?.enforcement_mode ?? 'visibility_only') : null,
        os,
        ...nameRules(facts),
      }
      classes.set(key, found)
    }
    classOf.set(end, found)
    return found
  }

  const nameRules = (facts: EndFacts) => ({
    provider: namings(policy.rules.map(({ providers }) => [providers.asWorkload(facts), providers.asAddress(facts)])),
    consumer: namings(policy.rules.map(({ consumers }) => [consumers.asWorkload(facts), consumers.asAddress(facts)])),
  })

  const applying = (here: Naming, there: Naming, facts: ServiceFacts): ApplyingRules => {
    const hrefs: Record<RuleKind, Set<string>> = { override_deny: new Set(), allow: new Set(), deny: new Set() }
    for (const index of here.asWorkload) {
      const rule = policy.rules[index]!
      if (there.atAll[index] === true && rule.matchesService(facts)) hrefs[rule.kind].add(rule.href)
    }
    return {
      essential: isEssential(facts),
      overrideDeny: [...hrefs.override_deny],
      allow: [...hrefs.allow],
      deny: [...hrefs.deny],
    }
  }

  const judge = (src: EndClass, dst: EndClass, facts: ServiceFacts): Verdict => {
    const leaving = applying(src.consumer, dst.provider, facts)
    const isSpared = src.mode === 'selective' && !UNCERTAIN.denyRulesReachSelectiveSources
    const outgoing = isSpared ? { ...leaving, overrideDeny: [], deny: [] } : leaving
    const outbound = src.mode === null ? null : judgeEnd(src.mode, outgoing, byDefault)
    const inbound =
      dst.mode === null ? null : judgeEnd(dst.mode, applying(dst.provider, src.consumer, facts), byDefault)
    return outbound === null || inbound === null ? (outbound ?? inbound ?? NOBODY) : combineVerdicts(outbound, inbound)
  }

  return (observation, resolved = resolve(observation)) => {
    const src = classify(resolved.src)
    const dst = classify(resolved.dst)
    const key = `${src.id} ${dst.id} ${resolved.kind}`
    let verdict = verdicts.get(key)
    if (verdict === undefined) {
      verdict = judge(src, dst, describeService(observation, src.os, dst.os))
      verdicts.set(key, verdict)
    }
    return verdict
  }
}

/**
 * A class of endpoints (sources and destinations). No rule distinguishes the endpoints of one class from each other.
 */
interface EndClass {
  id: number
  /** The enforcement mode of the workloads; null for addresses and unmanaged workloads, which enforce nothing. */
  mode: NonNullable<Workload['enforcement_mode']> | null
  os: ReturnType<typeof osType>
  provider: Naming
  consumer: Naming
}

/**
 * Says which rules include an endpoint in the role of provider (or, in a second object, in the role of consumer).
 * `asWorkload` lists the indexes of the rules that include it as a workload.
 */
interface Naming {
  asWorkload: readonly number[]
  /** For each rule, whether it includes the endpoint at all, either as a workload or as an address. */
  atAll: readonly boolean[]
}

const namings = (named: [asWorkload: boolean, asAddress: boolean][]): Naming => ({
  asWorkload: named.flatMap(([asWorkload], index) => (asWorkload ? index : [])),
  atAll: named.map(([asWorkload, asAddress]) => asWorkload || asAddress),
})

/**
 * Returns true for traffic that every VEN permits, because its host could not work without it. There is no complete
 * public list, but two kinds of traffic are certain: address assignment (DHCP, RFC 2131) and IPv6 neighbour discovery
 * (RFC 4861, ICMPv6 133 to 137).
 */
const isEssential = ({ proto, port, icmpType }: ServiceFacts) =>
  (proto === 17 && (port === 67 || port === 68)) ||
  (proto === 58 && icmpType !== null && icmpType >= 133 && icmpType <= 137)

const NOBODY: Verdict = {
  decision: 'unknown',
  decidedBy: null,
  draftDecision: null,
  allowRules: [],
  denyRules: [],
  overrideDenyRules: [],
}

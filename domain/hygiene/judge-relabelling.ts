import { isEnforcing } from '../../schemas/pce/enforcement-modes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { loadLabels } from '../inventory/labels.js'
import { isInForce, loadSnapshot, rulesOf, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { isWrittenTo, matchLabels, type End } from '../policy/match-rules.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, isUnknown, type Answer } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import type { Relabelling } from './plan-labels.js'

/** The effect of new labels on workloads in one active rule set. */
export interface RuleSetEffect {
  name: string
  href: string
  /** Numbers of workloads that enter, and that leave, the scopes of the rule set. */
  enter: number
  leave: number
  /** Number of workloads for which it cannot be determined whether they enter or leave the scopes. */
  undecided: number
  /**
   * Numbers of rules that begin to apply, and that cease to apply, to at least one of the workloads whose labels
   * change.
   */
  rules_gained: number
  rules_lost: number
  /** Numbers of rules gained and lost, by rule type. Types without a change are left out. */
  by_type: Partial<Record<RuleType, { gained: number; lost: number }>>
}

/** The effect of changing the labels of workloads, according to the active policy (T38). */
export interface RelabellingEffect {
  /** Number of changed workloads with a VEN in selective or full mode, where policy takes effect at once. */
  enforced: number
  /**
   * Number of workloads that are in the scope of at least one rule set before the change and of none after it. Rule
   * sets without a scope do not count.
   */
  left_all_scopes: number
  /**
   * The rule sets whose scopes workloads enter or leave, or whose rules select different workloads after the change.
   * Those with the most workloads come first.
   */
  rule_sets: RuleSetEffect[]
  /** True if rules were not compared, because too many pairs of a rule and a label change would have to be tested. */
  rules_skipped: boolean
}

const SIDES = ['providers', 'consumers'] as const
/** Maximum number of pairs of a rule and a label change that are tested. This many take a few seconds. */
const MOST_COMPARED = 500_000

/** A group of workloads whose labels change in the same way. */
interface Kind {
  before: End
  after: End
  workloads: number
}

/** Reads the active policy and determines the effect of label changes on it. Throws the errors of the PCE client. */
export async function judgeRelabelling(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  changes: readonly Relabelling[],
): Promise<RelabellingEffect> {
  const snapshot = await loadSnapshot(ctx, 'active', await loadLabels(ctx.pce, ctx))
  const policy = await withDenyRules(ctx, snapshot)
  return workInTurns(judge(policy, changes), ctx.signal)
}

function* judge(policy: PolicySnapshot, changes: readonly Relabelling[]): Steps<RelabellingEffect> {
  const enforced = changes.filter(({ workload: { managed, mode } }) => managed && isEnforcing(mode))
  const kinds = kindsOf(changes)
  const ruleSets = policy.ruleSets.filter(isInForce)
  const rules = ruleSets.reduce(
    (sum, set) => sum + RULE_TYPES.reduce((own, type) => own + rulesOf(set, type).length, 0),
    0,
  )
  const rulesSkipped = rules * kinds.length > MOST_COMPARED
  const wasScoped = new Set<Kind>()
  const isScoped = new Set<Kind>()
  const effects: RuleSetEffect[] = []
  for (const { scopes, ...ruleSet } of ruleSets) {
    const inScope = (end: End): Answer => anyOf(scopes.map((scope) => matchLabels(scope, end, policy)))
    const effect: RuleSetEffect = {
      name: ruleSet.name,
      href: ruleSet.href,
      enter: 0,
      leave: 0,
      undecided: 0,
      rules_gained: 0,
      rules_lost: 0,
      by_type: {},
    }
    const isEverywhere = scopes.some((scope) => scope.length === 0)
    for (const kind of kinds) {
      yield
      const [was, is] = [inScope(kind.before), inScope(kind.after)]
      if (!isEverywhere && was !== 'no') wasScoped.add(kind)
      if (!isEverywhere && is !== 'no') isScoped.add(kind)
      if (was === is && !isUnknown(was)) continue
      if (isUnknown(was) || isUnknown(is)) effect.undecided += kind.workloads
      else if (is === 'yes') effect.enter += kind.workloads
      else effect.leave += kind.workloads
    }
    for (const type of rulesSkipped ? [] : RULE_TYPES)
      for (const rule of rulesOf(ruleSet, type)) {
        const placed = { scopes, rule }
        const names = (end: End, side: (typeof SIDES)[number]) => isWrittenTo(placed, side, end, policy) === 'yes'
        let [gains, loses] = [false, false]
        for (const { before, after } of kinds) {
          yield
          for (const side of SIDES) {
            const [was, is] = [names(before, side), names(after, side)]
            gains ||= is && !was
            loses ||= was && !is
          }
          if (gains && loses) break
        }
        if (!gains && !loses) continue
        const ofType = (effect.by_type[type] ??= { gained: 0, lost: 0 })
        ofType.gained += Number(gains)
        ofType.lost += Number(loses)
        effect.rules_gained += Number(gains)
        effect.rules_lost += Number(loses)
      }
    if (effect.enter + effect.leave + effect.undecided + effect.rules_gained + effect.rules_lost > 0)
      effects.push(effect)
  }
  const left = kinds.filter((kind) => wasScoped.has(kind) && !isScoped.has(kind))
  return {
    enforced: enforced.length,
    left_all_scopes: left.reduce((sum, { workloads }) => sum + workloads, 0),
    rule_sets: effects.sort(
      (a, b) => b.enter + b.leave - (a.enter + a.leave) || b.rules_lost - a.rules_lost || compareTexts(a.name, b.name),
    ),
    rules_skipped: rulesSkipped,
  }
}

/**
 * Groups workloads whose labels change in the same way. Only labels matter here, because a rule that names a workload
 * individually applies to it both before and after the change.
 */
function kindsOf(changes: readonly Relabelling[]): Kind[] {
  const kinds = new Map<string, Kind>()
  for (const { before, after } of changes) {
    const id = JSON.stringify([before, after].map((labels) => labels.map(({ href }) => href).sort()))
    const kind = kinds.get(id) ?? { before: endWith(before), after: endWith(after), workloads: 0 }
    kind.workloads += 1
    kinds.set(id, kind)
  }
  return [...kinds.values()]
}

const endWith = (labels: readonly LabelRef[]): End => ({
  workload: '',
  labels: Object.fromEntries(
    labels.flatMap(({ key, value }) => (key === undefined || value === undefined ? [] : [[key, value]])),
  ),
  ip: null,
  fqdn: null,
})

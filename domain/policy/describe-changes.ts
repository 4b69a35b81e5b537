import { PceError, type PceClient, type TypedPendingChange } from '../../pce-client/index.js'
import type { PolicyChange } from '../../schemas/policy-changes.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { nameAuthors } from '../inventory/author-names.js'
import { diffFields } from './diff-fields.js'
import { diffRuleSet } from './diff-rule-set.js'
import { findUses, loadPolicyUsers, type PolicyUsers, type Use } from '../inventory/find-uses.js'
import { judgeObject } from './judge-object.js'
import { loadDenyRules } from '../inventory/load-deny-rules.js'
import { loadPolicyFacts, type PolicyFacts } from './load-policy-facts.js'
import { mapBounded } from '../text/map-bounded.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { loadReferenceNames, type ReferenceNames } from '../inventory/reference-names.js'
import { showNamesInside } from './show-names-inside.js'

const IN_FLIGHT = 4

interface Versions {
  draft: PceObject | null
  active: PceObject | null
  error?: string
}

interface Judging {
  facts: PolicyFacts
  names: ReferenceNames
  usesOf: (href: string) => Promise<readonly Use[] | undefined>
}

type Context = Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>

/**
 * Pending changes with what they change (T22). An object that cannot be read in one of its versions still counts: it has `diff_error`
 * in place of its differences.
 */
export async function describeChanges(ctx: Context, changes: readonly TypedPendingChange[]): Promise<PolicyChange[]> {
  const { pce, signal } = ctx
  const versions = await mapBounded(changes, IN_FLIGHT, (change) => loadVersions(pce, change, signal))
  const objects = versions.map(({ draft, active }) => [withoutStamps(draft), withoutStamps(active)])
  const facts = await loadPolicyFacts(pce, objects, ctx)
  const names = await loadReferenceNames(pce, objects, ctx)
  const judging = { facts, names, usesOf: askOnce(pce, signal) }
  const described: PolicyChange[] = []
  for (const [at, change] of changes.entries())
    described.push(await describe(change, versions[at] as Versions, judging))
  return nameAuthors(pce, described, signal)
}

async function describe(
  change: TypedPendingChange,
  { draft, active, error }: Versions,
  { facts, names, usesOf }: Judging,
): Promise<PolicyChange> {
  const { href, type, updated_at: at, updated_by: by } = change
  const name = change.name ?? draft?.name ?? active?.name
  const shown: PolicyChange = {
    href,
    type,
    name: typeof name === 'string' ? name : '',
    ...(by != null && { updated_by: { href: by.href } }),
    ...(at != null && { updated_at: at }),
  }
  if (error !== undefined) return { ...shown, diff_error: error }
  const diff = type === 'rule_sets' ? diffRuleSet(draft as RuleSet | null, active as RuleSet | null, facts) : undefined
  const effect = diff === undefined ? await judgeObject(type, draft, active, facts, usesOf) : diff.effect
  const rules = diff?.rules.map((rule) => ({ ...rule, fields: showNamesInside(rule.fields, names) }))
  return {
    ...shown,
    fields: showNamesInside(diffFields(draft, active), names),
    ...(rules !== undefined && { rules }),
    ...(effect !== undefined && { effect }),
    ...(diff !== undefined && diff.risks.length > 0 && { risks: diff.risks }),
  }
}

/** The two versions of a changed object: a new one is not in force, a deletion has no future. */
async function loadVersions(pce: PceClient, change: TypedPendingChange, signal: AbortSignal): Promise<Versions> {
  const read = async (href: string): Promise<PceObject> => {
    const object = (await pce.get(href, { includeOrg: false, signal })).json<PceObject | null>()
    if (typeof object?.href !== 'string') throw new PceError('invalid_response', `${href}: the PCE sent no object`)
    if (change.type !== 'rule_sets') return object
    const [complete] = await loadDenyRules(pce, [object as RuleSet], signal)
    if (complete?.error !== undefined) throw new PceError('invalid_response', complete.error)
    return complete?.ruleSet ?? object
  }
  try {
    const draft = change.update_type === 'delete' ? null : await read(toDraftHref(change.href))
    const active = change.update_type === 'create' ? null : await read(toActiveHref(change.href))
    return { draft, active }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { draft: null, active: null, error: error.message }
  }
}

/** Uses of objects, from one look at the policy at the first question. What cannot be read leaves them unknown. */
function askOnce(pce: PceClient, signal: AbortSignal): Judging['usesOf'] {
  let asked: Promise<PolicyUsers> | undefined
  return async (href) => {
    try {
      return findUses(await (asked ??= loadPolicyUsers(pce, signal)), href)
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
      return undefined
    }
  }
}

/** Who made an object is no reference to be named. */
function withoutStamps(object: PceObject | null): object {
  const { created_by: _c, updated_by: _u, deleted_by: _d, ...rest } = object ?? { href: '' }
  return rest
}

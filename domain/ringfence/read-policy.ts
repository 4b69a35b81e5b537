import { ToolError } from '../../schemas/errors.js'
import { ANY_IP_LIST_NAME, type IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, RuleSet } from '../../schemas/pce/rule-set.js'
import { ALL_SERVICES_NAME, type Service } from '../../schemas/pce/service.js'
import type { ToolContext } from '../call.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { LabelIndex } from '../inventory/load-labels.js'
import { loadDenyRules } from '../inventory/load-deny-rules.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Known } from './reach.js'
import { familiesOf } from '../policy/cover-addresses.js'
import { findRingfence } from './find-ringfence.js'

/** The draft as far as ringfences depend on it: read once, for however many applications. */
export interface DraftPolicy {
  known: Known
  ruleSets: readonly RuleSet[]
  /** The list that is every address; null where the PCE has none. */
  anyList: IpList | null
}

/** On releases before IPv6 lists, the built-in list has the second name (T15). */
const ANY_NAMES = [ANY_IP_LIST_NAME, 'Any (0.0.0.0/0)']

/** Reads the draft. Throws not_found where there is no All Services, ambiguous_name where there are several. */
export async function readDraftPolicy(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  labels: LabelIndex,
): Promise<DraftPolicy> {
  const [services, lists, ruleSets] = await Promise.all([
    fetchEvery({ api: pce.services, params: {}, signal }),
    fetchEvery({ api: pce.ipLists, params: { name: 'Any (' }, signal }),
    fetchEvery({ api: pce.ruleSets, params: {}, signal }),
  ])
  const found = services.items.filter(({ name }) => name === ALL_SERVICES_NAME)
  const [all] = found
  if (found.length > 1) {
    const text = `${found.length} services are named "${ALL_SERVICES_NAME}". Nothing was written.`
    const candidates = found.map(({ href, name }) => ({ href, name }))
    const hint = 'Rename or delete all but the one that the PCE came with.'
    throw new ToolError('ambiguous_name', text, { kind: 'services', name: ALL_SERVICES_NAME, candidates }, { hint })
  }
  if (all === undefined) throw new ToolError('not_found', `No service is named exactly "${ALL_SERVICES_NAME}".`)
  const byHref = new Map(services.items.map((service) => [toDraftHref(service.href), service]))
  const any = ANY_NAMES.flatMap((wanted) => lists.items.filter(({ name }) => name === wanted))
  return {
    ruleSets: ruleSets.items,
    anyList: any[0] ?? null,
    known: {
      allServices: toDraftHref(all.href),
      anyLists: new Map(any.map((list) => [toDraftHref(list.href), familiesOf(list)])),
      keyOf: (href) => labels.get(href)?.key,
      labelOf: (href) => labels.get(href),
      findService: (href): Service | undefined => byHref.get(toDraftHref(href)),
    },
  }
}

export const DENY_CONSUMERS = ['any', 'ams', 'ams_and_any'] as const
export type DenyConsumer = (typeof DENY_CONSUMERS)[number]

/** The consumers of the deny rule. Without an Any list it is all workloads, which is not everybody: `mode` says what it became. */
export function denyConsumersOf(asked: DenyConsumer, anyList: IpList | null): { mode: DenyConsumer; actors: Actor[] } {
  const mode = anyList === null ? 'ams' : asked
  const list = anyList === null || mode === 'ams' ? [] : [{ ip_list: { href: toDraftHref(anyList.href) } }]
  return { mode, actors: mode === 'any' ? list : [{ actors: 'ams' }, ...list] }
}

/**
 * The application's ringfence of this name with its deny rules, or null. Throws already_exists {existing_ruleset, reason} where
 * the name belongs to something else, is disabled or waits for its deletion: rules written into that would not do what they say.
 */
export async function findOwnRuleSet(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  application: readonly Label[],
  name: string,
): Promise<RuleSet | null> {
  const { ruleSet, conflicts } = await findRingfence(pce, application, 'draft', signal, name)
  const [conflict] = conflicts
  if (ruleSet === null) {
    if (conflict !== undefined) throw inTheWay(conflict.ruleSet, conflict.why, CONFLICTS[conflict.why])
    return null
  }
  if (!ruleSet.enabled)
    throw inTheWay(ruleSet, 'disabled', 'is disabled; enable it with update-ruleset, or choose another name')
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  if (complete === undefined || complete.error !== undefined) {
    const text = `The deny rules of ${name} could not be read, so nothing was planned or written. ${complete?.error ?? ''}`
    throw new ToolError('pce_error', text.trim(), { ruleset: { href: ruleSet.href, name } })
  }
  return complete.ruleSet
}

const CONFLICTS = {
  other_scope: 'has another scope than exactly this app and env label; choose another ruleset_name',
  pending_deletion: 'waits for its deletion; provision or revert that first, or choose another ruleset_name',
}

function inTheWay({ href, name }: RuleSet, reason: string, why: string): ToolError {
  return new ToolError('already_exists', `The rule set ${name} exists and ${why}. Nothing was written.`, {
    existing_ruleset: { href, name },
    reason,
  })
}

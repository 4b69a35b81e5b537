import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { Action, Answer, Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { notFound } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { EXTERNAL_DATA_FILTERS } from '../validate/query-filters.js'
import { updateStamp } from '../world.js'
import { answerCollection } from './answer-collection.js'
import { describeChanges } from './describe-changes.js'
import { buildRule, changeRule, rulesOf, withoutRule, type RuleKind } from './rule-kind.js'
import { bodiesAt, draftHref, inVersion, requireDraftPath } from './policy-version.js'

/**
 * Creates the routes for the rules of a rule set, which form a collection. Every write to a rule makes the rule set
 * pending (P4).
 */
export function ruleRoutes(kind: RuleKind): Route[] {
  const path = `/orgs/:org/sec_policy/:pversion/rule_sets/:rule_set_id/${kind.segment}`
  const write = (verb: string, handle: Action['handle']): Action => ({ event: `${kind.noun}.${verb}`, handle })
  return [
    {
      path,
      verbs: { GET: { handle: (call) => list(kind, call) }, POST: write('create', (call) => create(kind, call)) },
    },
    {
      path: `${path}/:id`,
      verbs: {
        GET: {
          handle: (call) => {
            const rule = rulesOf(ruleSetAt(call), kind).find(({ href }) => href === draftHref(call))
            if (!rule) throw notFound()
            return { status: 200, json: showRule(kind, rule, call.params.pversion!) }
          },
        },
        PUT: write('update', (call) => update(kind, call)),
        DELETE: write('delete', (call) => remove(kind, call)),
      },
    },
  ]
}

export function showRule(kind: RuleKind, rule: VersionedObject, pversion: string): unknown {
  const full = { ...rule, ...kind.extra }
  return pversion === 'draft' ? full : inVersion({ ...full, update_type: null }, pversion)
}

function list(kind: RuleKind, call: Call): Answer {
  return answerCollection(call, {
    objects: rulesOf(ruleSetAt(call), kind),
    filters: EXTERNAL_DATA_FILTERS,
    render: (rule) => showRule(kind, rule, call.params.pversion!),
  })
}

function create(kind: RuleKind, call: Call): Answer {
  const entry = requireRuleSet(call)
  const rule = buildRule(call.world, kind, () => entry.draft.href, call.body)
  store(kind, call, entry, [...rulesOf(entry.draft, kind), rule])
  const { href, ...fields } = rule
  return {
    status: 201,
    json: showRule(kind, rule, 'draft'),
    changes: [{ resource: { [kind.noun]: { href } }, type: 'create', changes: describeChanges({}, fields) }],
  }
}

function update(kind: RuleKind, call: Call): Answer {
  const { entry, rule } = requireRule(kind, call)
  const changed = changeRule(call.world, kind, rule, call.body)
  if (changed !== rule) {
    store(
      kind,
      call,
      entry,
      rulesOf(entry.draft, kind).map((other) => (other === rule ? changed : other)),
    )
  }
  const changes = describeChanges(rule, call.body as Json)
  return { status: 204, changes: [{ resource: { [kind.noun]: { href: rule.href } }, type: 'update', changes }] }
}

function remove(kind: RuleKind, call: Call): Answer {
  const { entry, rule } = requireRule(kind, call)
  if (rule.update_type !== 'delete') store(kind, call, entry, withoutRule(call.world, kind, entry, rule))
  return { status: 204, changes: [{ resource: { [kind.noun]: { href: rule.href } }, type: 'delete' }] }
}

function store(kind: RuleKind, { world }: Call, entry: Entry, rules: VersionedObject[]): void {
  world.policy.change(entry, { ...entry.draft, [kind.list]: rules, ...updateStamp(world) })
}

function ruleSetHref(call: Call): string {
  return draftHref(call).replace(/\/(sec_rules|deny_rules)(\/[^/]*)?$/, '')
}

function ruleSetAt(call: Call): VersionedObject {
  const href = ruleSetHref(call)
  const found = bodiesAt(call.world, 'rule_sets', call.params.pversion!).find(({ body }) => body.href === href)
  if (!found) throw notFound()
  return found.body
}

function requireRuleSet(call: Call): Entry {
  requireDraftPath(call)
  const entry = call.world.policy.get('rule_sets', ruleSetHref(call))
  if (!entry) throw notFound()
  return entry
}

function requireRule(kind: RuleKind, call: Call): { entry: Entry; rule: VersionedObject } {
  const entry = requireRuleSet(call)
  const rule = rulesOf(entry.draft, kind).find(({ href }) => href === draftHref(call))
  if (!rule) throw notFound()
  return { entry, rule }
}

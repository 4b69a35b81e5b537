import { toDraftHref } from '../inventory/parse-href.js'
import { withGroup, withList, withService, type PolicyChange } from './apply-change.js'
import type { PolicySnapshot } from './load-snapshot.js'

/**
 * Returns the policy that would be in force if the changed object's pending draft were provisioned alone, without the
 * new change: the active policy with the draft of this object. The PCE provisions objects that exist only in the draft
 * together with the objects that refer to them, so those are included too.
 */
export function provisionAlone(active: PolicySnapshot, draft: PolicySnapshot, change: PolicyChange): PolicySnapshot {
  const base = withNewObjects(active, draft)
  if (change.is === 'ip_list') {
    const own = draft.listOf(change.list.href)
    return own === undefined ? base : withList(base, own)
  }
  if (change.is === 'service') {
    const own = draft.serviceOf(change.service.href)
    return own === undefined ? base : withService(base, own)
  }
  if (change.is === 'label_group') {
    const own = draft.groupOf(change.group.href)
    return own === undefined ? base : withGroup(base, own)
  }
  if (change.is === 'new_rule_set') return base
  const href = toDraftHref(change.is === 'rule' ? change.ruleSet : change.href)
  const isOwn = (one: { href: string }) => toDraftHref(one.href) === href
  return {
    ...base,
    ruleSets: [...active.ruleSets.filter((one) => !isOwn(one)), ...draft.ruleSets.filter(isOwn)],
    unread: new Map([
      ...[...active.unread].filter(([one]) => one !== href),
      ...[...draft.unread].filter(([one]) => one === href),
    ]),
  }
}

function withNewObjects(active: PolicySnapshot, draft: PolicySnapshot): PolicySnapshot {
  const homeOf = (object: { update_type?: string | null } | undefined) =>
    object?.update_type === 'create' ? draft : active
  const ofList = (href: string) => homeOf(draft.listOf(href))
  const ofGroup = (href: string) => homeOf(draft.groupOf(href))
  return {
    ...active,
    covers: (href, end) => ofList(href).covers(href, end),
    listOf: (href) => ofList(href).listOf(href),
    familiesOf: (href) => ofList(href).familiesOf(href),
    serviceOf: (href) => homeOf(draft.serviceOf(href)).serviceOf(href),
    groupOf: (href) => ofGroup(href).groupOf(href),
    membersOf: (href) => ofGroup(href).membersOf(href),
    keyOf: (href) => ofGroup(href).keyOf(href),
  }
}

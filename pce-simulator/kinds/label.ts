import { Type } from '@sinclair/typebox'
import { notAcceptable } from '../refusal.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, exact, partial } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Name, Shape } from '../validate/shape.js'
import type { Entry } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { assignedLabels } from '../inventory/container-workload-profile.js'
import { findPolicyUsage, labelsBorneBy, usedWithin, type PartOf } from './find-usage.js'
import { SETTINGS_SCOPES } from './firewall-scopes.js'
import type { PlainKind } from './plain-kind.js'

const CREATE = new Shape('labels_post', Type.Object({ key: Type.String(), value: Name, ...EXTERNAL_DATA }, CLOSED))
const UPDATE = new Shape('labels_put', Type.Object({ value: Type.Optional(Name), ...EXTERNAL_DATA }, CLOSED))

/** The label values that mean "no label" in the PCE's own web console (P31). */
const RESERVED_VALUES = new Set(['All Applications', 'All Environments', 'All Locations'])

/** The object kind for labels (P14). */
export const label: PlainKind = {
  segment: 'labels',
  noun: 'label',
  ids: 'int',
  store: (world) => world.labels,
  filters: { key: exact('key'), value: partial('value'), ...EXTERNAL_DATA_FILTERS },

  build(world, body) {
    const { key, value, external_data_set = null, external_data_reference = null } = CREATE.read(body)
    const dimension = world.labelDimensions.live().find((candidate) => candidate.key === key)
    if (!dimension) throw notAcceptable(UNCERTAIN.refusedLabelToken, `Label key ${key} is not a label dimension`)
    requireFreeValue(world, key, value, null)
    requireFreeExternalData(world.labels.live(), { external_data_set, external_data_reference })
    return { key, value, deleted: false, external_data_set, external_data_reference }
  },

  change(world, current, body) {
    const fields = UPDATE.read(body)
    const others = world.labels.live().filter((other) => other.href !== current.href)
    if (fields.value !== undefined) requireFreeValue(world, String(current.key), fields.value, current.href)
    requireFreeExternalData(others, { ...current, ...fields })
    return fields
  },

  remove(world, current) {
    if (current.deleted === true) {
      throw notAcceptable('label_already_deleted', 'Cannot delete a label that has already been deleted')
    }
    refuseUsed({ ...findUsage(world, current.href), ...heldByProfiles(world, current.href) })
    return { deleted: true }
  },

  render(world, object, query) {
    const { href, key, value, deleted, external_data_set, external_data_reference, ...rest } = object
    return {
      href,
      key,
      value,
      deleted: deleted ?? false,
      external_data_set: external_data_set ?? null,
      external_data_reference: external_data_reference ?? null,
      ...rest,
      ...(query.get('usage') === 'true' ? { usage: findUsage(world, href) } : {}),
      caps: ['write'],
    }
  },
}

function requireFreeValue(world: World, key: string, value: string, own: string | null): void {
  if (RESERVED_VALUES.has(value)) throw notAcceptable(UNCERTAIN.refusedLabelToken, `Label value ${value} is reserved`)
  const taken = world.labels.live().some((other) => other.key === key && other.value === value && other.href !== own)
  if (taken) throw notAcceptable('label_key_and_value_must_be_unique', 'Label key and value must be unique')
}

/**
 * Refuses to delete a label that is in use. Reasons whose error token has been observed at a PCE are checked first
 * (P31).
 */
function refuseUsed(usage: ReturnType<typeof findUsage>): void {
  if (usage.ruleset) {
    throw notAcceptable('label_still_has_associated_rule_set', 'Label still has an associated rule set')
  }
  const { labelInRule, labelInUse } = UNCERTAIN
  if (usage.rule) throw notAcceptable(labelInRule.token, labelInRule.message)
  if (usage.label_group) throw notAcceptable('label_referenced_by_label_group', 'Label is referenced by a label group')
  if (usage.workload) {
    throw notAcceptable('label_still_has_associated_agent_info', 'Label is still assigned to a workload')
  }
  if (Object.values(usage).includes(true)) throw notAcceptable(labelInUse.token, labelInUse.message)
}

/**
 * Says whether a container workload profile prevents the deletion of a label. A profile prevents it if it assigns the
 * label, but not if it only offers the label as a choice (P70).
 */
function heldByProfiles(world: World, href: string): { container_workload_profile?: boolean } {
  if (!UNCERTAIN.restrictionLeavesLabelDeletable) return {}
  const profiles = world.store('container_workload_profiles').live()
  return {
    container_workload_profile: profiles.some((profile) => assignedLabels(profile).some((one) => one.href === href)),
  }
}

/** Finds where a label is used: in the draft, in the active policy (P31), or by objects without versions. */
function findUsage(world: World, href: string) {
  const { ruleSets, labelGroups, boundaries, virtualServices, virtualServers, firewallSettings } = findPolicyUsage(
    world,
    href,
  )
  const within = (entries: readonly Entry[], part: PartOf) => usedWithin(entries, href, part)
  const borneBy = (segment: string) => labelsBorneBy(world.store(segment).live()).has(href)
  return {
    label_group: labelGroups.length > 0,
    ruleset: within(ruleSets, (body) => body.scopes),
    rule: within(ruleSets, (body) => [body.rules, body.deny_rules, body.ip_tables_rules]),
    enforcement_boundary: boundaries.length > 0,
    virtual_service: virtualServices.length > 0,
    virtual_server: virtualServers.length > 0,
    firewall_coexistence_scope: within(firewallSettings, (body) => body.firewall_coexistence),
    ...Object.fromEntries(SETTINGS_SCOPES.map((name) => [name, within(firewallSettings, (body) => body[name])])),
    workload: borneBy('workloads'),
    pairing_profile: borneBy('pairing_profiles'),
    container_workload_profile: borneBy('container_workload_profiles'),
  }
}

import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../../schemas/pce/reference.js'
import { invalidInput, notAcceptable } from '../refusal.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, exact, partial } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Name, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { bodiesOf, collectHrefs, findPolicyUsage } from './find-usage.js'
import type { PlainKind } from './plain-kind.js'

const CREATE = new Shape('labels_post', Type.Object({ key: Type.String(), value: Name, ...EXTERNAL_DATA }, CLOSED))
const UPDATE = new Shape('labels_put', Type.Object({ value: Type.Optional(Name), ...EXTERNAL_DATA }, CLOSED))

/** Mean "no label" in the PCE's own pages (pce-api f.3). */
const RESERVED_VALUES = new Set(['All Applications', 'All Environments', 'All Locations'])

/** pce-api e.1. */
export const label: PlainKind = {
  segment: 'labels',
  noun: 'label',
  ids: 'int',
  store: (world) => world.labels,
  filters: { key: exact('key'), value: partial('value'), ...EXTERNAL_DATA_FILTERS },

  build(world, body) {
    const { key, value, external_data_set = null, external_data_reference = null } = CREATE.read(body)
    const dimension = world.labelDimensions.live().find((candidate) => candidate.key === key)
    if (!dimension) throw invalidInput(`Label key ${key} is not a label dimension`)
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
    const usage = findUsage(world, current.href)
    if (usage.ruleset || usage.rule) {
      throw notAcceptable('label_still_has_associated_rule_set', 'Label still has an associated rule set')
    }
    if (usage.label_group)
      throw notAcceptable('label_referenced_by_label_group', 'Label is referenced by a label group')
    if (usage.workload) {
      throw notAcceptable('label_still_has_associated_agent_info', 'Label is still assigned to a workload')
    }
    if (usage.pairing_profile) {
      throw notAcceptable('label_still_has_associated_pairing_profile', 'Label is still used by a pairing profile')
    }
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
  if (RESERVED_VALUES.has(value)) throw invalidInput(`Label value ${value} is reserved`)
  const taken = world.labels.live().some((other) => other.key === key && other.value === value && other.href !== own)
  if (taken) throw notAcceptable('label_key_and_value_must_be_unique', 'Label key and value must be unique')
}

function findUsage(world: World, href: string) {
  const bears = (object: PceObject) => collectHrefs(object.labels).has(href)
  const { ruleSets, labelGroups, boundaries } = findPolicyUsage(world, href)
  const inScope = ruleSets.some((entry) => bodiesOf(entry).some((body) => collectHrefs(body.scopes).has(href)))
  const inRule = ruleSets.some((entry) => {
    return bodiesOf(entry).some((body) => collectHrefs([body.rules, body.deny_rules]).has(href))
  })
  return {
    label_group: labelGroups.length > 0,
    ruleset: inScope,
    rule: inRule,
    enforcement_boundary: boundaries.length > 0,
    workload: world.workloads.live().some(bears),
    pairing_profile: world.pairingProfiles.live().some(bears),
  }
}

import { Type } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import { invalidInput, notAcceptable } from '../refusal.js'
import { requireDraft, requireFreeExternalData, requireLabel } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, exact, partial } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Href, Name, Nullable, Shape, Text } from '../validate/shape.js'
import type { Entry } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { containedGroups } from './expand-group.js'
import { findPolicyUsage, isInUse, usedWithin, type PartOf } from './find-usage.js'
import { SETTINGS_SCOPES } from './firewall-scopes.js'
import { renderLabels } from './render-labels.js'
import { requireFreeName } from './policy-version.js'
import type { VersionedKind } from './versioned-kind.js'

const OPTIONAL = {
  description: Type.Optional(Nullable(Text)),
  labels: Type.Optional(Type.Array(Href)),
  sub_groups: Type.Optional(Type.Array(Href)),
  ...EXTERNAL_DATA,
}
const CREATE = new Shape(
  'sec_policy_label_groups_post',
  Type.Object({ name: Name, key: Type.String(), ...OPTIONAL }, CLOSED),
)
const UPDATE = new Shape('sec_policy_label_groups_put', Type.Object({ name: Type.Optional(Name), ...OPTIONAL }, CLOSED))

const TAKEN = ['name_must_be_unique', 'Name must be unique'] as const

interface Members {
  labels?: Reference[]
  sub_groups?: Reference[]
}

/** The object kind for label groups (P15). */
export const labelGroup: VersionedKind = {
  type: 'label_groups',
  noun: 'label_group',
  ids: 'uuid',
  filters: { name: partial('name'), key: exact('key'), description: partial('description'), ...EXTERNAL_DATA_FILTERS },

  build(world, body) {
    const fields = CREATE.read(body)
    if (!world.labelDimensions.live().some(({ key }) => key === fields.key)) {
      throw invalidInput(`Label key ${fields.key} is not a label dimension`)
    }
    requireFreeName(world, 'label_groups', fields.name, null, TAKEN)
    requireFreeExternalData(drafts(world), fields)
    return {
      name: fields.name,
      description: fields.description ?? null,
      key: fields.key,
      ...readMembers(world, { labels: [], sub_groups: [], ...fields }, fields.key, null),
      external_data_set: fields.external_data_set ?? null,
      external_data_reference: fields.external_data_reference ?? null,
    }
  },

  change(world, { draft }, body) {
    const fields = UPDATE.read(body)
    if (fields.name !== undefined) requireFreeName(world, 'label_groups', fields.name, draft.href, TAKEN)
    const others = drafts(world).filter((other) => other.href !== draft.href)
    requireFreeExternalData(others, { ...draft, ...fields })
    return { ...fields, ...readMembers(world, fields, String(draft.key), draft.href) }
  },

  refuseRemoval(world, { draft }) {
    const { token, message } = UNCERTAIN.labelGroupInUse
    if (isInUse(findPolicyUsage(world, draft.href))) throw notAcceptable(token, message)
  },

  render(world, body, query) {
    const groups = (body.sub_groups ?? []) as Reference[]
    const usage = query.get('usage') === 'true' ? { usage: describeUsage(world, body.href) } : {}
    return {
      ...body,
      labels: renderLabels(world, body.labels),
      sub_groups: groups.map(({ href }) => ({ href, name: world.policy.get('label_groups', href)?.draft.name })),
      ...usage,
    }
  },
}

function drafts(world: World): PceObject[] {
  return world.policy.entries('label_groups').map(({ draft }) => draft)
}

/**
 * Checks the members of a group: they must have the group's key, and the group must not contain itself, directly or
 * indirectly.
 */
function readMembers(world: World, { labels, sub_groups }: Members, key: string, own: string | null): Members {
  for (const { href } of labels ?? []) {
    if (requireLabel(world, href).key !== key) throw invalidInput(`The label ${href} does not have the key ${key}`)
  }
  for (const { href } of sub_groups ?? []) {
    if (requireDraft(world, 'label_groups', href).draft.key !== key) {
      throw invalidInput(`The label group ${href} does not have the key ${key}`)
    }
    const inner = new Set([href, ...containedGroups(href, (group) => world.policy.get('label_groups', group)?.draft)])
    if (own !== null && inner.has(own)) throw invalidInput('A label group cannot contain itself')
  }
  return {
    ...(labels ? { labels: labels.map(({ href }) => ({ href })) } : {}),
    ...(sub_groups ? { sub_groups: sub_groups.map(({ href }) => ({ href })) } : {}),
  }
}

function describeUsage(world: World, href: string): Record<string, boolean> {
  const { ruleSets, labelGroups, boundaries, firewallSettings } = findPolicyUsage(world, href)
  const within = (entries: readonly Entry[], part: PartOf) => usedWithin(entries, href, part)
  return {
    label_group: labelGroups.length > 0,
    ruleset: within(ruleSets, (body) => body.scopes),
    rule: within(ruleSets, (body) => [body.rules, body.deny_rules, body.ip_tables_rules]),
    enforcement_boundary: boundaries.length > 0,
    ...Object.fromEntries(SETTINGS_SCOPES.map((name) => [name, within(firewallSettings, (body) => body[name])])),
  }
}

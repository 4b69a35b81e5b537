import { ToolError } from '../../schemas/errors.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import { ACTOR_OBJECT, splitExclusion, type ActorReference } from './resolve-actors.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { isUnresolved, looksLikeLabel, resolveLabel, describeReference } from '../inventory/labels.js'
import { trimBlanks } from '../text/escape-text.js'

/**
 * The scopes of a rule set: inner lists ANDed, outer ORed. No scope is one empty scope, which is everything. Throws
 * invalid_scope_label {received} for what is no label or label group and for two entries of one key in a scope,
 * label_not_found for a label that does not exist, not_found for a label group.
 */
export async function resolveScopes(
  lookups: PolicyLookups,
  scopes: readonly (readonly ActorReference[])[],
): Promise<ScopeEntry[][]> {
  if (scopes.length === 0) return [[]]
  const resolved = []
  for (const scope of scopes) {
    const entries = []
    for (const reference of scope) entries.push(await resolveEntry(lookups, reference))
    requireOneConditionPerKey(scope, entries)
    resolved.push(entries)
  }
  return resolved
}

async function resolveEntry(lookups: PolicyLookups, reference: ActorReference): Promise<ScopeEntry> {
  const { named, exclusion: excluded } = splitExclusion(reference)
  if (named === null) throw invalid(reference, ACTOR_OBJECT)
  const exclusion = excluded ? { exclusion: true } : {}
  const text = typeof named === 'string' ? trimBlanks(named) : (named.href ?? '')
  if (text.startsWith('labelgroup:')) {
    return {
      label_group: toGroup(await lookups.byName('label_groups', trimBlanks(text.slice('labelgroup:'.length)))),
      ...exclusion,
    }
  }
  if (parseHref(text)?.kind === 'label_groups') {
    return { label_group: toGroup(await lookups.byHref('label_groups', text)), ...exclusion }
  }
  const isLabel = (typeof named === 'object' && named.href === undefined) || looksLikeLabel(text)
  if (!isLabel) throw invalid(reference, 'A scope takes labels and label groups only.')
  const label = resolveLabel(lookups.labels, named)
  if (!isUnresolved(label)) return { label, ...exclusion }
  throw new ToolError('label_not_found', `No label matches ${label.ref} exactly.`, {
    label: label.ref,
    valid_values: label.valid,
  })
}

function toGroup(group: { href: string; key?: string; name?: string | null }) {
  return { href: toDraftHref(group.href), key: group.key, name: group.name ?? undefined }
}

/** A workload has one label per key, so a scope of two values of one key would match nothing. The PCE refuses it (P19). */
function requireOneConditionPerKey(references: readonly ActorReference[], entries: readonly ScopeEntry[]): void {
  const keys = entries.map(({ label, label_group: group }) => label?.key ?? group?.key)
  const at = keys.findIndex((key, index) => key !== undefined && keys.indexOf(key) !== index)
  if (at !== -1) {
    throw invalid(
      references[at] as ActorReference,
      `This scope names the key ${keys[at]} twice; use one scope per value.`,
    )
  }
}

function invalid(received: ActorReference, why: string): ToolError {
  const shown = typeof received === 'string' ? received : describeReference(received)
  return new ToolError('invalid_scope_label', `"${shown}" cannot stand in a scope. ${why}`, { received })
}

/** Payload form: hrefs only. */
export function toWireScopes(scopes: readonly (readonly ScopeEntry[])[]): ScopeEntry[][] {
  return scopes.map((scope) =>
    scope.map(({ label, label_group: group, exclusion }) => ({
      ...(label !== undefined
        ? { label: { href: label.href } }
        : { label_group: { href: (group as { href: string }).href } }),
      ...(exclusion === true && { exclusion }),
    })),
  )
}

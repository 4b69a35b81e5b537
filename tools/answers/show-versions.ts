import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from '../../schemas/common.js'
import type { PolicyVersion } from '../../schemas/pce/policy.js'
import type { FieldChange, PolicyChange, VersionChange } from '../../schemas/policy-changes.js'
import { speakOf } from './explain-changes.js'

/** Output form of a policy version. */
export const VersionOut = Type.Object({
  version: Type.Integer({ description: 'Number' }),
  href: Type.String(),
  created_at: Type.String({ description: 'When it was provisioned, UTC' }),
  created_by: Nullable(Type.String({ description: 'Who: a name, otherwise an href' })),
  commit_message: Nullable(Type.String({ description: 'What was said of it' })),
  workloads_affected: Nullable(Type.Integer({ description: 'As the PCE counted; null: not counted' })),
  object_counts: Type.Record(Type.String(), Type.Integer(), {
    description: 'Active objects by type; types without any are left out',
  }),
  in_force: Type.Optional(Type.Boolean({ description: 'The newest: what VENs enforce' })),
})

/**
 * Converts a version to its output form. `newest` is the number of the active version. `nameOf` returns the name of the
 * author with the given href, if known.
 */
export function showVersion(
  {
    version,
    href,
    created_at: at,
    created_by: by,
    commit_message: message,
    workloads_affected: affected,
    object_counts: counts,
  }: PolicyVersion,
  newest: number | undefined,
  nameOf: (href: string) => string | undefined,
): Static<typeof VersionOut> {
  return {
    version,
    href,
    created_at: at ?? '',
    created_by: by == null ? null : (nameOf(by.href) ?? by.href),
    commit_message: message ?? null,
    workloads_affected: affected ?? null,
    object_counts: Object.fromEntries(Object.entries(counts ?? {}).filter(([, count]) => count > 0)),
    ...(version === newest && { in_force: true }),
  }
}

const CHANGES = { create: 'created', update: 'updated', delete: 'deleted' } as const

/**
 * Converts a change between two versions to its output form. `since` says with which policy it is compared, as in
 * `describeEffects`.
 */
export function showVersionChange(
  { fields, rules, effect_note: note, ...change }: PolicyChange,
  updateType: keyof typeof CHANGES | undefined,
  since: string,
): VersionChange {
  const said = (why: string | undefined) => (why === undefined ? {} : { effect_note: speakOf(why, since) })
  return {
    ...change,
    change: CHANGES[updateType ?? 'update'],
    ...said(note),
    ...(fields !== undefined && { fields: fields.map(showField) }),
    ...(rules !== undefined && {
      rules: rules.map(({ fields: own, effect_note: why, ...rule }) => ({
        ...rule,
        ...said(why),
        ...(own !== undefined && { fields: own.map(showField) }),
      })),
    }),
  }
}

const showField = ({ field, draft, active, same }: FieldChange) => ({
  field,
  ...(active !== undefined && { before: active }),
  ...(draft !== undefined && { after: draft }),
  ...(same !== undefined && { same }),
})

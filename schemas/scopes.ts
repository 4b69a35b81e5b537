import { Type, type Static } from '@sinclair/typebox'

/**
 * The types of objects without a scope that an entry may permit to be created, by the path segment of their hrefs.
 * Creating such an object changes no decision, because no rule names it yet.
 */
export const CREATABLE = ['ip_lists', 'label_groups', 'labels', 'pairing_profiles', 'services'] as const
export type Creatable = (typeof CREATABLE)[number]

const Name = Type.String({ minLength: 1 })

const Scope = Type.Record(Name, Type.Union([Name, Type.Array(Name, { minItems: 1 })]), {
  minProperties: 1,
  description:
    'Labels that all hold, by key: one value, or several of which one holds. labelgroup:NAME is a label group of that key.',
})

/**
 * What people may read: everything that their role permits, or only objects inside their scopes and flows with an end
 * inside.
 */
const reads = (description: string) =>
  Type.Optional(Type.Union([Type.Literal('all'), Type.Literal('scoped')], { description }))

const Entry = Type.Object(
  {
    scopes: Type.Union([Type.Literal('*'), Type.Array(Scope, { minItems: 1 })], {
      description: 'What members of the group may write to: one or more scopes, or "*" for everything.',
    }),
    extra: Type.Optional(
      Type.Boolean({
        description: 'Whether rules may have sources outside of the scope (extra-scope rules). Default: false.',
      }),
    ),
    create: Type.Optional(
      Type.Array(Type.Union(CREATABLE.map((kind) => Type.Literal(kind))), {
        description: 'Types of objects without a scope that members may create. Changing and deleting them takes "*".',
      }),
    ),
    reads: reads(
      'What members read: "scoped" is only what has an end inside their scopes. Whoever is also in a group that reads "all", or whose scope is "*", reads all. Default: `reads` of the file.',
    ),
  },
  { additionalProperties: false },
)

/** The content of MCP_SCOPES_FILE. */
export const ScopesFile = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    reads: reads('What people read whose group says nothing else, and people in no group of this file. Default: all.'),
    groups: Type.Record(Name, Entry, {
      description: 'The scopes of the members of each group, by the name of the group in access tokens.',
    }),
  },
  { additionalProperties: false },
)
export type ScopesFile = Static<typeof ScopesFile>

/**
 * One scope of a caller. For each label key, it has values (or `labelgroup:NAME`); an object inside has one of them.
 */
export interface ScopeGrant {
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** True if rules inside of the scope may have sources outside of it. */
  readonly extra: boolean
}

/**
 * What a caller may write to and, possibly, read. It combines the scopes of all the caller's groups. If `everything` is
 * false and there are no grants, the caller may write nothing.
 */
export interface CallerScopes {
  readonly everything: boolean
  readonly grants: readonly ScopeGrant[]
  readonly create: readonly Creatable[]
  /**
   * Present if answers are limited to objects inside of the grants and flows with an end inside. It describes each
   * grant in words. Never present together with `everything`.
   */
  readonly readsOnly?: readonly string[]
}

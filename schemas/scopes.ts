import { Type, type Static } from '@sinclair/typebox'

/**
 * The types of objects without a scope that an entry may allow creating, by the path segments of their hrefs. A new
 * object of these types changes no decision: nothing names it yet.
 */
export const CREATABLE = ['ip_lists', 'label_groups', 'labels', 'pairing_profiles', 'services'] as const
export type Creatable = (typeof CREATABLE)[number]

const Name = Type.String({ minLength: 1 })

const Scope = Type.Record(Name, Type.Union([Name, Type.Array(Name, { minItems: 1 })]), {
  minProperties: 1,
  description:
    'Labels that all hold, by key: one value, or several of which one holds. labelgroup:NAME is a label group of that key.',
})

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
  },
  { additionalProperties: false },
)

/** The content of MCP_SCOPES_FILE. */
export const ScopesFile = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    groups: Type.Record(Name, Entry, {
      description: 'The scopes of the members of each group, by the name of the group in access tokens.',
    }),
  },
  { additionalProperties: false },
)
export type ScopesFile = Static<typeof ScopesFile>

/** One scope of a caller: for each label key, the values (or `labelgroup:NAME`) of which an object must have one. */
export interface ScopeGrant {
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** True if rules inside of the scope may have sources outside of it. */
  readonly extra: boolean
}

/**
 * What a caller may write to: the union over the caller's groups. If neither `everything` is true nor a grant exists,
 * the caller may write nothing.
 */
export interface CallerScopes {
  readonly everything: boolean
  readonly grants: readonly ScopeGrant[]
  readonly create: readonly Creatable[]
}

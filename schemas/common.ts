import { Type, type TSchema } from '@sinclair/typebox'

/** A PCE reference: a path without `/api/v2` that already includes its organisation (`/orgs/1/labels/14`). */
export const Href = (description: string) => Type.String({ description, maxLength: 1024 })

/**
 * Creates the schema `T | null`, because the PCE sends null where other APIs would leave a field out (P43). The
 * description of `schema` is moved to the union.
 */
export const Nullable = <T extends TSchema>(schema: T) => {
  const { description, ...bare } = schema
  return Type.Union([bare as unknown as T, Type.Null()], description === undefined ? {} : { description })
}

/** Creates a string enumeration as JSON Schema `enum`, which is shorter than `anyOf` with a constant for each value. */
export const StringEnum = <const T extends readonly string[]>(
  values: T,
  options: { description?: string; listed?: string; default?: T[number] } = {},
) => Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })

/** Creates the argument that chooses how much detail an answer has. `description` says what `full` adds. */
export const DetailLevel = (description: string) =>
  Type.Optional(StringEnum(['standard', 'full'] as const, { default: 'standard', description }))

/** Functions that create the schema of an output property, each with a description. */
export const Text = (description: string) => Type.String({ description })
export const Count = (description: string) => Type.Integer({ description })
/** A count that may be enormous. Above a trillion, it is a string that says so. */
export const Many = (description: string) => Type.Union([Type.Integer(), Type.String()], { description })
export const Flag = (description: string) => Type.Boolean({ description })
export const Counts = (description: string) => Type.Record(Type.String(), Type.Integer(), { description })
/** The length of a complete list, for answers that may show only a part of it. */
export const Total = Count('All there are, shown or not')

export type PolicyVersionSelector = 'draft' | 'active' | number

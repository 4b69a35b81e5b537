import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { TypeCompiler, type TypeCheck } from '@sinclair/typebox/compiler'
import { invalidInput } from '../refusal.js'
import { describeErrors } from './describe-error.js'

/**
 * A request schema, with the name that the PCE uses for it in its messages. Further properties are not allowed, unless
 * the definition says otherwise.
 */
export class Shape<T extends TSchema = TSchema> {
  #check: TypeCheck<T> | null = null

  constructor(
    readonly name: string,
    readonly schema: T,
  ) {}

  /** Returns the body unchanged if it is valid. Throws 406 input_validation_error that names every violation. */
  read(body: unknown): Static<T> {
    this.#check ??= TypeCompiler.Compile(this.schema)
    if (this.#check.Check(body)) return body
    const details = describeErrors([...this.#check.Errors(body)], this.name)
    throw invalidInput(`Input validation failed. Details: {${details}}`)
  }
}

export const CLOSED = { additionalProperties: false }

export const Href = Type.Object({ href: Type.String() })
export const Name = Type.String({ minLength: 1, maxLength: 255 })
export const Text = Type.String({ maxLength: 65_535 })
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const OneOf = <const T extends string>(...values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
export const Port = Type.Integer({ minimum: 0, maximum: 65_535 })

/** The two fields that together identify an object of a kind in an external system (P49). */
export const EXTERNAL_DATA = {
  external_data_set: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
  external_data_reference: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
}

import { TypeRegistry, type TSchema } from '@sinclair/typebox'
import { TypeCompiler, type TypeCheck } from '@sinclair/typebox/compiler'

/** TypeBox leaves Unsafe schemas to their author; ours are string enumerations (`StringEnum`). */
TypeRegistry.Set('Unsafe', (schema: { enum?: unknown[] }, value) => {
  if (!Array.isArray(schema.enum)) throw new TypeError('an Unsafe schema without an enum cannot be checked')
  return schema.enum.includes(value)
})

export const compileSchema = (schema: TSchema): TypeCheck<TSchema> => TypeCompiler.Compile(schema)

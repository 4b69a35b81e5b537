import { TypeRegistry, type TSchema } from '@sinclair/typebox'
import { TypeCompiler, type TypeCheck } from '@sinclair/typebox/compiler'

/** TypeBox leaves Unsafe schemas to their author; ours are string enumerations (`StringEnum`) and objects that a resolver reads. */
TypeRegistry.Set('Unsafe', (schema: { enum?: unknown[]; type?: string }, value) => {
  if (Array.isArray(schema.enum)) return schema.enum.includes(value)
  if (schema.type !== 'object')
    throw new TypeError('an Unsafe schema is an enum or an open object, nothing else is checked')
  return typeof value === 'object' && value !== null && !Array.isArray(value)
})

export const compileSchema = (schema: TSchema): TypeCheck<TSchema> => TypeCompiler.Compile(schema)

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import type { jsonSchemaValidator, JsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js'

const ajv = new AjvJsonSchemaValidator()
const compiled = new Map<string, JsonSchemaValidator<unknown>>()

/**
 * Validators for all clients of a process. A client compiles the output schema of every tool that it lists, which takes
 * it half a second, and the schemas are the same for all of them.
 */
export const sharedValidators: jsonSchemaValidator = {
  getValidator<T>(schema: Parameters<typeof ajv.getValidator>[0]) {
    const key = JSON.stringify(schema)
    const validator = compiled.get(key) ?? ajv.getValidator<T>(schema)
    compiled.set(key, validator)
    return validator as JsonSchemaValidator<T>
  },
}

import { Type } from '@sinclair/typebox'

/** The field in which the dry run of a policy change shows which observed traffic the change would cut (D227). */
export const ObservedOut = {
  observed: Type.Optional(Type.Unsafe<object>({ type: 'object', description: 'Dry run: traffic cut' })),
}

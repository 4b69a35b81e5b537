import { Type } from '@sinclair/typebox'

/**
 * The output property in which the dry run of a policy change shows which of the observed traffic the change would cut
 * off (D227).
 */
export const ObservedOut = {
  observed: Type.Optional(Type.Unsafe<object>({ type: 'object', description: 'Dry run: traffic cut' })),
}

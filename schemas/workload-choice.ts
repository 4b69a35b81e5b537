import { Type } from '@sinclair/typebox'

/** Maximum number of workloads that can be named individually, since each of them is looked up in the PCE. */
export const MOST_NAMED_WORKLOADS = 100

/** Arguments that select either all workloads of an application or the workloads in a list. */
export const WorkloadChoiceInput = {
  app_name: Type.Optional(
    Type.String({ minLength: 1, description: 'app label; with env_name, all its workloads', listed: '' }),
  ),
  env_name: Type.Optional(Type.String({ minLength: 1, description: 'env label' })),
  workloads: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      maxItems: MOST_NAMED_WORKLOADS,
      description: 'Or these: hrefs, or names or host names, if unique',
      listed: 'Or these',
    }),
  ),
}

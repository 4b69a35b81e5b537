import { Type } from '@sinclair/typebox'

/** Workloads named one by one, at most: each is looked up. */
export const MOST_NAMED_WORKLOADS = 100

/** Which workloads: an application, or a list of them. */
export const WorkloadChoiceInput = {
  app_name: Type.Optional(Type.String({ minLength: 1, description: 'app label; with env_name, all its workloads' })),
  env_name: Type.Optional(Type.String({ minLength: 1, description: 'env label' })),
  workloads: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      maxItems: MOST_NAMED_WORKLOADS,
      description: 'Or these: names, host names or hrefs',
    }),
  ),
}

import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ValidSubject } from './admit-call.js'

/** The plans of calls that are passing the gates. The key is the object with the arguments of a call. */
const plans = new WeakMap<object, Promise<PlannedRequest[]>>()

/**
 * Returns all requests with which the call would change something, or undefined if the tool cannot list them. The plan
 * is made only once, although several gates need it. Rejects with the errors of the tool.
 */
export function planCall({ tool, args, context }: ValidSubject): Promise<PlannedRequest[]> | undefined {
  if (tool.plan === undefined) return undefined
  const plan = plans.get(args) ?? tool.plan(args as never, context as never)
  plans.set(args, plan)
  return plan
}

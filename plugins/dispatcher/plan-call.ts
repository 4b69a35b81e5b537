import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ValidSubject } from './admit-call.js'

/** The plans of calls that are being admitted, by their arguments. */
const plans = new WeakMap<object, Promise<PlannedRequest[]>>()

/**
 * Returns every request that the call would send to change something, or undefined if its tool cannot say. Several gates
 * ask for it, and it is planned once. Rejects with the errors of the tool.
 */
export function planCall({ tool, args, context }: ValidSubject): Promise<PlannedRequest[]> | undefined {
  if (tool.plan === undefined) return undefined
  const plan = plans.get(args) ?? tool.plan(args as never, context as never)
  plans.set(args, plan)
  return plan
}

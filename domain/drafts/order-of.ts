import type { ToolContext } from '../call.js'
import type { NamedKind } from '../inventory/find-object.js'

/**
 * Returns the name of the `inOrder` queue for writes to an object. It contains the object's name instead of its href,
 * because two concurrent calls may both want to create the object, which then has no href yet.
 */
export const orderOf = (kind: NamedKind, name: string): string => `${kind} ${name}`

/**
 * Number of `inOrder` queues for changes of workload labels. All workloads share them, so that even a call that labels
 * ten thousand workloads has only these queues to wait for.
 */
const LABEL_ORDERS = 64

/** Returns the name of the `inOrder` queue for changes of a workload's labels. Several workloads share one queue. */
export function orderOfLabels(href: string): string {
  let sum = 0
  for (const character of href) sum = (sum * 31 + character.charCodeAt(0)) % LABEL_ORDERS
  return `labels of workloads ${sum}`
}

/** Runs work while no other call of this process changes the labels of the given workloads. */
export function inOrderOfLabels<T>(
  inOrder: ToolContext['inOrder'],
  hrefs: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  return inTurns(inOrder, hrefs.map(orderOfLabels), work)
}

/**
 * Runs work when all the given `inOrder` queues have admitted it. The queues are entered in sorted order, so two calls
 * never wait for each other.
 */
export function inTurns<T>(
  inOrder: ToolContext['inOrder'],
  turns: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  const orders = [...new Set(turns)].sort()
  const enter = (at: number): Promise<T> => {
    const order = orders[at]
    return order === undefined ? work() : inOrder(order, () => enter(at + 1))
  }
  return enter(0)
}

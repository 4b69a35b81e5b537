import type { ToolContext } from '../call.js'
import type { NamedKind } from '../inventory/find-object.js'

/**
 * Names an object for `inOrder`. Objects are named by what callers take for unique, because two calls may add to one
 * that neither has created yet.
 */
export const orderOf = (kind: NamedKind, name: string): string => `${kind} ${name}`

/** Number of orders that all workloads share. A call that labels ten thousand of them has to wait for these alone. */
const LABEL_ORDERS = 64

/** Names the labels of a workload for `inOrder`. Several workloads share a name. */
export function orderOfLabels(href: string): string {
  let sum = 0
  for (const character of href) sum = (sum * 31 + character.charCodeAt(0)) % LABEL_ORDERS
  return `labels of workloads ${sum}`
}

/**
 * Runs work while no other call of this process changes the labels of these workloads.
 */
export function inOrderOfLabels<T>(
  inOrder: ToolContext['inOrder'],
  hrefs: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  return inTurns(inOrder, hrefs.map(orderOfLabels), work)
}

/** Runs work in several turns at once. They are asked for in one order, so that two calls never wait for each other. */
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

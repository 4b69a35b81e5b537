import type { AssessedScope, Facts } from './facts.js'

/**
 * Why nothing can be said of labels that were named: no workload that could be read has them, and no traffic either. What the PCE
 * does as a whole, as keeping events, then says nothing of them. Null when there is something to judge.
 */
export function findNothing({ app, env }: AssessedScope, { workloads, traffic }: Facts['sources']): string | null {
  const named = [app, env].flatMap((label) => (label === null ? [] : `${label.key}=${label.value}`))
  const rows = traffic !== undefined && 'value' in traffic ? traffic.value.rows : 0
  const known = workloads !== undefined && 'value' in workloads ? workloads.value.length : null
  if (named.length === 0 || rows > 0 || (known !== null && known > 0)) return null
  const machines = known === null ? 'its workloads could not be read' : 'no workload has the label'
  return `Nothing is known of ${named.join(' ')}: ${machines}${named.length > 1 && known !== null ? 's' : ''}, and no traffic in the window.`
}

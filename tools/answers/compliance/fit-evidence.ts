import type { Limits } from '../../../schemas/config.js'
import { answerBudget, jsonBytes } from '../split-format.js'
import { MOST_EVIDENCE, type Evidence, type Verdict } from '../../../domain/compliance/verdict.js'

/** Entries that a list of evidence may have, most first. */
const LADDER = [2 * MOST_EVIDENCE, MOST_EVIDENCE, 5, 2, 1, 0] as const

type Shown<F extends Verdict> = Omit<F, 'evidence'> & { evidence?: Record<string, unknown> }

/**
 * The answer with as much evidence by name as its budget holds; counts are of everything whatever is shown, and `evidence_limit`
 * says how long a list can be.
 */
export function fitEvidence<E extends object, F extends Verdict>(
  envelope: E,
  findings: readonly F[],
  limits: Limits,
): E & { findings: Shown<F>[]; evidence_limit: number } {
  const at = (limit: number) => ({
    ...envelope,
    findings: findings.map(({ evidence, ...finding }) => ({
      ...finding,
      ...(evidence !== undefined && { evidence: cutLists(evidence, limit) }),
    })),
    evidence_limit: limit,
  })
  const budget = answerBudget(limits)
  const [widest, ...narrower] = LADDER
  let answer = at(widest)
  for (const limit of narrower) {
    if (jsonBytes(answer) <= budget) break
    answer = at(limit)
  }
  return answer
}

const cutLists = (evidence: Evidence, limit: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(evidence).map(([name, entries]) => [
      name,
      Array.isArray(entries) ? entries.slice(0, limit) : entries,
    ]),
  )

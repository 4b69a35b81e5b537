/** An answer that may not be known. */
export type Answer = 'yes' | 'no' | 'maybe'

const RANK = { no: 0, maybe: 1, yes: 2 } as const

/** Whether both are so. */
export const both = (a: Answer, b: Answer): Answer => (RANK[a] < RANK[b] ? a : b)

export const not = (answer: Answer): Answer => (answer === 'yes' ? 'no' : answer === 'no' ? 'yes' : 'maybe')

/** Whether any is so; none of none. */
export const anyOf = (answers: readonly Answer[]): Answer =>
  answers.includes('yes') ? 'yes' : answers.includes('maybe') ? 'maybe' : 'no'

/** Two answers to one question from different sources as one: what either knows, and "maybe" where they contradict. */
export const settle = (a: Answer, b: Answer): Answer => (a === 'maybe' ? b : b === 'maybe' || a === b ? a : 'maybe')

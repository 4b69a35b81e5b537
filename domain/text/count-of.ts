/** `1 object`, `2 objects`: a count in a sentence. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

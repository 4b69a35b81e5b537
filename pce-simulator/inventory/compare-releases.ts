/**
 * Compares two releases number by number, so that `24.5.0-72` is older than `25.2.10-101`. The result is negative if
 * `one` is older than the other release.
 */
export function compareReleases(one: string, other: string): number {
  const [left, right] = [numbersOf(one), numbersOf(other)]
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function numbersOf(release: string): number[] {
  return release.split(/[.-]/).map(Number)
}

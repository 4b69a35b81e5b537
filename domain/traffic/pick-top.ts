/**
 * Of the numbers 0 … size-1 those with the highest value, at most `limit`, ties by `compareTies`; and how many reach `least`.
 * A summary may have 200,000 groups of which some hundred are shown: sorting all of them would hold every other call up.
 */
export function pickTop(
  size: number,
  limit: number,
  least: number,
  valueOf: (item: number) => number,
  compareTies: (a: number, b: number) => number,
): { total: number; top: number[] } {
  const values = new Float64Array(size)
  let total = 0
  for (let item = 0; item < size; item++) {
    const value = valueOf(item)
    if (value >= least) values[total++] = value
  }
  const wanted = Math.min(limit, total)
  if (wanted === 0) return { total, top: [] }
  const cut = values.subarray(0, total).sort()[total - wanted] as number
  const compare = (a: number, b: number) => valueOf(b) - valueOf(a) || compareTies(a, b)
  const all = () => Array.from({ length: size }, (_, item) => item)
  if (wanted === total)
    return {
      total,
      top: all()
        .filter((item) => valueOf(item) >= least)
        .sort(compare),
    }

  const above: number[] = []
  // Those that just reach the cut compete for the places that are left: a sorted list of the best so far.
  const tied: number[] = []
  let places = wanted
  for (let item = 0; item < size; item++) if (valueOf(item) > cut) places -= 1
  for (let item = 0; item < size; item++) {
    const value = valueOf(item)
    if (value > cut) above.push(item)
    else if (value === cut) insertSorted(tied, item, places, compareTies)
  }
  return { total, top: [...above.sort(compare), ...tied] }
}

function insertSorted(list: number[], item: number, places: number, compare: (a: number, b: number) => number): void {
  const last = list[list.length - 1]
  if (list.length === places && last !== undefined && compare(item, last) >= 0) return
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(item, list[middle] as number) < 0) high = middle
    else low = middle + 1
  }
  list.splice(low, 0, item)
  if (list.length > places) list.pop()
}

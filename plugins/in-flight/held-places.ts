/** Adds one to the requests in flight, or takes it away again. */
export type Count = (by: 1 | -1) => void

/** The places that one request takes. All are given back together, once its answer is over and so is everything that it has begun. */
export interface HeldPlaces {
  /** One more, which has been counted already. */
  add(count: Count): void
  /** Whatever becomes of the answer, the places stay taken until this has ended, too. */
  keepUntil(work: Promise<unknown>): void
}

/** @param answer resolves when the answer is over, also because the client left in the middle of it. */
export function holdPlaces(answer: Promise<unknown>): HeldPlaces {
  const places: Count[] = []
  let open = 0
  const end = () => {
    open -= 1
    if (open === 0) for (const count of places) count(-1)
  }
  const keepUntil = (work: Promise<unknown>) => {
    // Work that begins just after its client has left takes its places back, however many there are by now.
    if (open === 0) for (const count of places) count(1)
    open += 1
    work.then(end, end)
  }
  keepUntil(answer)
  const add = (count: Count) => {
    places.push(count)
    if (open === 0) count(-1)
  }
  return { add, keepUntil }
}

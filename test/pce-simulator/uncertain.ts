/**
 * What no source settles about the PCE, and what this simulator does there: always the mildest documented way. Every entry names
 * the fact and its place in pce-api, and is the only place that decides it.
 */
export const UNCERTAIN = {
  /** a.4: a second DELETE of an object that waits for its deletion. */
  secondDeletionStatus: 204,
} as const

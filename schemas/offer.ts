/**
 * The tools that are offered to the caller of one request (D121). Even if a tool is listed, a gate may refuse a call of
 * it.
 */
export interface Offer {
  /** The tools that are listed in the answer to tools/list. */
  readonly listed: ReadonlySet<string>
  /**
   * The tools that a call may name; any other name is treated as unknown. They are the listed tools, plus those that
   * are hidden only because of the caller's role, so that the role gate can refuse these with its own message (D124).
   */
  readonly callable: ReadonlySet<string>
}

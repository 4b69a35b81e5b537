/**
 * The tools that are offered to the caller of one request (D121). A listed tool can be called, but a gate may still
 * refuse the call.
 */
export interface Offer {
  /** The tools that are listed in the answer to tools/list. */
  readonly listed: ReadonlySet<string>
  /**
   * The tools that a call may name; any other name counts as unknown. These are the listed tools, and the tools that are
   * hidden only because of the caller's role, so that the role gate can refuse them with its own message (D124).
   */
  readonly callable: ReadonlySet<string>
}

/** The tools that one request is offered (D121). Listed tools may be called, subject to the gates of a call. */
export interface Offer {
  /** The tools that tools/list returns. */
  readonly listed: ReadonlySet<string>
  /**
   * The tools that a call may name; any other name counts as unknown. In addition to the listed tools, it has those
   * that are hidden only because of the caller's role, so that the role gate can refuse them in its own words (D124).
   */
  readonly callable: ReadonlySet<string>
}

/** Names of the tools that one request is offered (D121). What is listed may be called, as far as the gates of a call permit it. */
export interface Offer {
  /** What tools/list has. */
  readonly listed: ReadonlySet<string>
  /**
   * What a call may name; any other name is that of an unknown tool. Beside what is listed it has what is hidden because of the caller's
   * role alone, so that the role gate refuses it in its own words (D124).
   */
  readonly callable: ReadonlySet<string>
}

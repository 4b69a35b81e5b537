/** The part of longest-prefix-match that is used here; the package ships no types of its own. */
declare module 'longest-prefix-match' {
  export default class LongestPrefixMatch<T> {
    addPrefix(prefix: string, data: T): void
    /** The data of the longest prefix that holds all of `prefix`, once per time that prefix was added; empty when none does. */
    getMatch(prefix: string): T[]
  }
}

/** Types for the part of longest-prefix-match that is used here; the package ships none. */
declare module 'longest-prefix-match' {
  export default class LongestPrefixMatch<T> {
    addPrefix(prefix: string, data: T): void
    /**
     * Returns the data of the longest prefix that contains `prefix`: one entry for each time that prefix was added, or
     * none.
     */
    getMatch(prefix: string): T[]
  }
}

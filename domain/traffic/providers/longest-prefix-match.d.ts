/** Types for the part of longest-prefix-match that is used here; the package ships none. */
declare module 'longest-prefix-match' {
  export default class LongestPrefixMatch<T> {
    addPrefix(prefix: string, data: T): void
    /**
     * Returns the data of the longest added prefix that contains `prefix`, with one entry for each time it was added;
     * an empty list if there is no such prefix.
     */
    getMatch(prefix: string): T[]
  }
}

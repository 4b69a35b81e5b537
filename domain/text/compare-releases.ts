/** Compares releases such as `22.3.0-166` number by number. */
export const compareReleases = new Intl.Collator('en', { numeric: true }).compare

/** Returns true if the text begins as a release does: with three numbers, which can be compared. */
export const isRelease = (text: string): boolean => /^\d+\.\d+\.\d+/u.test(text)

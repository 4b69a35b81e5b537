/** Compares releases such as `22.3.0-166`, number by number. */
export const compareReleases = new Intl.Collator('en', { numeric: true }).compare

/** Returns true if the string begins like a release, with three numbers, so that it can be compared with releases. */
export const isRelease = (text: string): boolean => /^\d+\.\d+\.\d+/u.test(text)

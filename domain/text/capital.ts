/**
 * Returns a string with its first letter in upper case, so that a phrase such as `the workload "web-1"` can begin a
 * sentence.
 */
export const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

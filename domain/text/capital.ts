/** Returns a text with a capital first letter, to begin a sentence with a phrase such as `the workload "web-1"`. */
export const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

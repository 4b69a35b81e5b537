/** Begins a sentence with a text of ours, such as `the workload "web-1"`. */
export const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

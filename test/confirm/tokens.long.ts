/** The properties of tokens.test.ts with all their cases. */
process.env.PROPERTY_CASES = 'all'
await import('./tokens.test.js')

export {}

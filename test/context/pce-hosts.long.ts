/** The properties of pce-hosts.test.ts with all their cases. */
process.env.PROPERTY_CASES = 'all'
await import('./pce-hosts.test.js')

export {}

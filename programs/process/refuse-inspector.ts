/**
 * On SIGUSR1, Node.js would open its inspector on a loopback port, which gives access to everything in memory. A
 * listener for the signal prevents this; Node.js 20 has no option for it. This module is imported first, for this side
 * effect.
 */
process.on('SIGUSR1', () => {})

/**
 * Node.js opens its inspector, a door to everything in memory, on a loopback port for whoever sends SIGUSR1; a listener of our own is what
 * keeps it from that (Node.js 20 has no option for it). Imported before all else, for its effect.
 */
process.on('SIGUSR1', () => {})

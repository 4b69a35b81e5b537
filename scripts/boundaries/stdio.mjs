/**
 * The rule about what the stdio program may load at run time, for which imports of types do not count: nothing that
 * only HTTP needs, because a person waits for every start of their client. `npm run check -- stdio` checks it.
 */
import walls from './walls.mjs'

const HTTP_ONLY = ['fastify', 'fastify-plugin', '@fastify', 'libsql', 'fast-jwt', 'openid-client', 'prom-client']

export default {
  forbidden: [
    {
      name: 'stdio loads',
      comment: 'stdio.ts must start fast, and none of its callers comes over HTTP.',
      severity: 'error',
      from: { path: '^programs/stdio\\.ts$' },
      to: { path: `(^|/)node_modules/(${HTTP_ONLY.join('|')})(/|$)`, reachable: true },
    },
  ],
  options: { ...walls.options, tsPreCompilationDeps: false },
}

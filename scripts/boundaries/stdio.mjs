/**
 * The rule about what the stdio program may load at run time: nothing that only HTTP needs, because people wait for
 * every start of a client. Imports of types do not count. `npm run check -- stdio` checks the rule.
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

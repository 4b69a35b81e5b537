/**
 * What the stdio program loads when it runs, so without types: nothing that only HTTP needs, because a person waits for it at every
 * start of their client. `npm run check -- stdio` checks it beside the walls.
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

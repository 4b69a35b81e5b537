/**
 * The suites of `npm test NAME`, which are run instead of the quick files. A suite consists of the files that match
 * `matching`, and of the test files and folders in `paths`, which are repeated in another environment. `paths` contains
 * only tests whose result may be different in that environment.
 */
export const SUITES = {
  // Tests with large estates, with faults at every step, and with processes that are killed.
  long: { matching: /\.long\.ts$/, jobs: 3 },
  // Tests with third-party programs around the server: a proxy, a browser, log rotation, service managers.
  edge: { matching: /\.browser\.ts$|^test\/edge\/.*\.edge\.ts$/, jobs: 3 },
  // Tests with the state in PostgreSQL instead of a file: those that write the state or observe its condition. Tests
  // that only look up a user are not repeated.
  postgres: {
    matching: /^test\/postgres\/.*\.edge\.ts$/,
    paths: [
      'test/approval/approval.test.ts',
      'test/approve/whole.test.ts',
      'test/auth/whole-app.test.ts',
      'test/contract/authenticated.test.ts',
      'test/contract/readiness.test.ts',
      'test/setup',
      'test/state/promises.test.ts',
    ],
    env: { SERVICE_STATE: 'postgres' },
    // Fewer files run at the same time, because the database servers need a processor too.
    jobs: 2,
  },
  // Tests on another version of Node.js, the one that starts the runner. Rules, tools and texts are plain JavaScript,
  // so their results cannot differ; the tests listed here use modules of Node.js.
  lts: {
    paths: [
      // These run the whole service as processes, over HTTP and stdio.
      'test/acceptance',
      // These are about HTTP: bodies, headers, sockets that stay open or are interrupted, cookies and forms.
      'test/contract/authenticated.test.ts',
      'test/contract/client-address.test.ts',
      'test/contract/http-protocol.test.ts',
      'test/contract/in-flight.test.ts',
      'test/contract/rate-limits.test.ts',
      'test/contract/readiness.test.ts',
      'test/mcp/modern.test.ts',
      'test/setup/cross-site.test.ts',
      'test/setup/login.test.ts',
      'test/setup/sessions.test.ts',
      'test/pce-simulator/foreign-clients.test.ts',
      // These are about requests to the PCE: TLS, proxies, streams, compression, timers, URLs, numbers in JSON.
      'test/pce-client',
      'test/context/pce-hosts.test.ts',
      // These are about cryptography, and `fetch` in the OpenID client.
      'test/auth',
      'test/approval/request-states.test.ts',
      'test/confirm/forged-challenges.test.ts',
      'test/confirm/tokens.test.ts',
      // These are about native modules, locks and processes that die.
      'test/state',
      // These are about files, pipes and standard streams.
      'test/audit',
      'test/config/unanswering-files.test.ts',
      'test/process',
      'test/stdio',
      // These are about worker threads, and Node.js's own measurements.
      'test/approve/drawing.test.ts',
      'test/metrics/metrics.test.ts',
    ],
  },
}

/**
 * Files that take much longer than their size suggests. They start before all other files; otherwise, one of them could
 * start last and then run alone. `npm test` prints how long each file takes.
 */
export const FIRST = [
  // This is a quick file, but it waits for traffic queries of two servers, which take real time.
  'test/acceptance/both-transports.test.ts',
  'test/contract/full-size.long.ts',
  'test/config/wrong-configurations.long.ts',
  'test/contract/never-frozen.long.ts',
  'test/docs/first-hour.long.ts',
  'test/hygiene/import-workloads.long.ts',
  'test/pce-client/injected-faults.long.ts',
  'test/scopes/matrix.long.ts',
  'test/scopes/reach.long.ts',
  'test/scripts/tooling.long.ts',
  'test/tools/complete-traffic.long.ts',
  'test/tools/large-estates.long.ts',
  'test/tools/large-lists.long.ts',
  'test/tools/null-fields.long.ts',
  'test/tools/ringfence-closed-loop.long.ts',
  'test/postgres/approvals.edge.ts',
  'test/postgres/kills.edge.ts',
  'test/postgres/rolling.edge.ts',
  'test/postgres/upgrade.edge.ts',
]

/**
 * The suites of `npm test NAME`, which run instead of the quick files: files that match `matching`, and `paths`, test
 * files and folders that are repeated in another environment. Only tests whose result may differ there are listed.
 */
export const SUITES = {
  // Large estates, faults at every step, and processes that are killed.
  long: { matching: /\.long\.ts$/ },
  // Third-party programs around the server: a proxy, a browser, log rotation, service managers.
  edge: { matching: /\.browser\.ts$|^test\/edge\/.*\.edge\.ts$/ },
  // State in PostgreSQL instead of a file: tests that write it or observe its condition. Tests that only look up a user
  // are not repeated.
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
    // The database servers need a processor too.
    jobs: 2,
  },
  // Another version of Node.js, the one that starts the runner. Rules, tools and texts are plain JavaScript and cannot
  // differ; these tests use its own modules.
  lts: {
    paths: [
      // The whole service as processes, over HTTP and stdio.
      'test/acceptance',
      // HTTP: bodies, headers, sockets that stay open or are interrupted, cookies and forms.
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
      // Requests to the PCE: TLS, proxies, streams, compression, timers, URLs, numbers in JSON.
      'test/pce-client',
      'test/context/pce-hosts.test.ts',
      // Cryptography, and `fetch` in the OpenID client.
      'test/auth',
      'test/approval/request-states.test.ts',
      'test/confirm/forged-challenges.test.ts',
      'test/confirm/tokens.test.ts',
      // Native modules, locks and processes that die.
      'test/state',
      // Files, pipes and standard streams.
      'test/audit',
      'test/config/unanswering-files.test.ts',
      'test/process',
      'test/stdio',
      // Worker threads, and Node.js's own measurements.
      'test/approve/drawing.test.ts',
      'test/metrics/metrics.test.ts',
    ],
  },
}

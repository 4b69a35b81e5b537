import { readRoute, type Route } from '../http/route.js'
import { PCE_FQDN } from '../world.js'
import { jobRoutes } from './jobs.js'

export const PRODUCT_VERSION = {
  version: '25.2.10',
  build: 1234,
  release_info: '',
  engineering_info: '',
  long_display: '25.2.10-1234',
  short_display: '25.2.10',
  product_name: 'PCE',
}

/** Without an organisation (pce-api a.1), and the jobs of the one there is. */
export const statusRoutes: Route[] = [
  readRoute('/product_version', () => ({ status: 200, json: PRODUCT_VERSION })),
  readRoute('/node_available', () => ({ status: 200 })),
  readRoute('/noop', () => ({ status: 204 })),
  readRoute('/supercluster/leader', () => ({ status: 200 })),
  readRoute('/health', ({ world }) => ({
    status: 200,
    json: [
      {
        status: 'normal',
        type: 'standalone',
        fqdn: PCE_FQDN,
        available_seconds: 864_000,
        notifications: [],
        nodes: [
          {
            hostname: PCE_FQDN,
            ip_address: '192.0.2.10',
            runlevel: 5,
            uptime_seconds: 864_000,
            cpu: { status: 'normal', percent: 12 },
            disk: [{ location: 'disk', value: { status: 'normal', percent: 31 } }],
            memory: { status: 'normal', percent: 44 },
            services: {
              status: 'normal',
              running: ['agent_service', 'collector_service', 'database_service', 'event_service', 'web_server'],
              not_running: [],
              partial: [],
              optional: [],
              unknown: [],
            },
            generated_at: world.now(),
          },
        ],
        network: { replication: [] },
        generated_at: world.now(),
      },
    ],
  })),
  ...jobRoutes,
]

import { PCE_FQDN, type World } from '../world.js'

const UPTIME_SECONDS = 864_000
const SERVICES = ['agent_service', 'collector_service', 'database_service', 'event_service', 'web_server']

/** Describes the PCE for GET /health (P49). An unavailable node runs none of its services. */
export function describeHealth(world: World): Record<string, unknown> {
  const { nodeAvailable, supercluster = 'standalone' } = world.options
  const status = nodeAvailable ? 'normal' : 'critical'
  return {
    status,
    type: supercluster,
    fqdn: PCE_FQDN,
    available_seconds: nodeAvailable ? UPTIME_SECONDS : 0,
    notifications: nodeAvailable ? [] : [{ status, token: 'node_unavailable', message: 'The node is not available' }],
    nodes: [
      {
        hostname: PCE_FQDN,
        ip_address: '192.0.2.10',
        runlevel: nodeAvailable ? 5 : 1,
        uptime_seconds: UPTIME_SECONDS,
        cpu: { status: 'normal', percent: 12 },
        disk: [{ location: 'disk', value: { status: 'normal', percent: 31 } }],
        memory: { status: 'normal', percent: 44 },
        services: {
          status,
          running: nodeAvailable ? SERVICES : [],
          not_running: nodeAvailable ? [] : SERVICES,
          partial: [],
          optional: [],
          unknown: [],
        },
        generated_at: world.now(),
      },
    ],
    network: { replication: [] },
    generated_at: world.now(),
  }
}

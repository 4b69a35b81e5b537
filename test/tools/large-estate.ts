import type { Estate } from '../../pce-simulator/index.js'
import { smallEstate } from '../../pce-simulator/small-estate.js'

/** The numbers of objects. All must be divisible by 20, and events by 100. */
export interface LargeSize {
  /** Workloads, of 3 KB each. */
  workloads: number
  events: number
  ipLists: number
  services: number
}

const START = Date.parse('2026-05-01T00:00:00Z')
/** What a VEN reports about its machine. It is the same for all, and makes a workload 3 KB. */
const MACHINE = {
  uptime_seconds: 100_000,
  created_at: '2026-01-10T09:00:00.000Z',
  open_service_ports: Array.from({ length: 20 }, (_, at) => ({
    protocol: 6,
    address: '0.0.0.0',
    port: 1000 + at,
    process_name: '/usr/sbin/some-daemon',
    user: 'daemon',
    package: null,
    win_service_name: null,
  })),
}
export const MODES = ['visibility_only', 'selective', 'full', 'idle'] as const
const id = (n: number) => String(n).padStart(12, '0')

/**
 * Creates an estate of any size. Every tenth workload is unmanaged, every fourth belongs to ordering, and the
 * enforcement modes alternate.
 */
export function largeEstate({ workloads, events, ipLists, services }: LargeSize): Estate {
  const small = smallEstate()
  const [template] = small.workloads
  const [service] = small.services
  const labels = [3, 4].map((app) => [1, app, 5].map((n) => ({ href: `/orgs/1/labels/${n}` })))
  const stamp = { created_at: '2026-01-10T09:00:00.000Z', updated_at: '2026-01-10T09:00:00.000Z' }
  return {
    ...small,
    workloads: Array.from({ length: workloads }, (_, at) => ({
      ...template!,
      href: `/orgs/1/workloads/00000000-0000-4000-8000-${id(at)}`,
      name: `host-${at}`,
      hostname: `host-${at}.example.com`,
      managed: at % 10 !== 0,
      enforcement_mode: MODES[at % 4]!,
      labels: labels[at % 4 === 0 ? 1 : 0]!,
      interfaces: [{ name: 'eth0', address: `2001:db8::${(at >> 16).toString(16)}:${(at & 0xffff).toString(16)}` }],
      services: MACHINE,
    })),
    ipLists: Array.from({ length: ipLists }, (_, at) => ({
      href: `/orgs/1/sec_policy/draft/ip_lists/${at + 10}`,
      name: `list-${at}`,
      description: 'x'.repeat(2800),
      ip_ranges: [{ from_ip: '10.0.0.1' }],
      fqdns: [],
      ...stamp,
    })),
    services: [
      ...small.services,
      ...Array.from({ length: services }, (_, at) => ({
        ...service!,
        href: `/orgs/1/sec_policy/draft/services/${at + 10}`,
        name: `service-${at}`,
        description: 'x'.repeat(2800),
        service_ports: [{ port: 5000, proto: 6 }],
      })),
    ] as Estate['services'],
    events: Array.from({ length: events }, (_, at) => ({
      href: `/orgs/1/events/00000000-0000-4000-8000-${id(at)}`,
      timestamp: new Date(START + at * 1000).toISOString(),
      pce_fqdn: 'pce.example.com',
      event_type: at % 2 === 0 ? 'workload.update' : 'user.login',
      status: 'success',
      severity: 'info',
      created_by: { user: { href: '/users/1', username: at % 100 === 0 ? 'rare@example.com' : 'admin@example.com' } },
      action: null,
      resource_changes: [],
      notifications: [{ uuid: id(at), notification_type: 'x', info: { text: 'x'.repeat(2600) } }],
    })),
  }
}

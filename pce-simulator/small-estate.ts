import type { Label } from '../schemas/pce/label.js'
import type { RuleSet } from '../schemas/pce/rule-set.js'
import type { Service } from '../schemas/pce/service.js'
import type { Workload } from '../schemas/pce/workload.js'
import type { Conversation, Estate } from './model.js'

const STAMP = {
  created_at: '2026-01-10T09:00:00.000Z',
  updated_at: '2026-01-10T09:00:00.000Z',
  created_by: { href: '/users/1' },
  updated_by: { href: '/users/1' },
}

/** The hrefs of the small estate's objects, by name. */
export const SMALL = {
  web: '/orgs/1/labels/1',
  db: '/orgs/1/labels/2',
  payments: '/orgs/1/labels/3',
  ordering: '/orgs/1/labels/4',
  prod: '/orgs/1/labels/5',
  dev: '/orgs/1/labels/6',
  paymentsDb: '/orgs/1/workloads/00000000-0000-4000-8000-000000000001',
  orderingWeb: '/orgs/1/workloads/00000000-0000-4000-8000-000000000002',
  scanner: '/orgs/1/workloads/00000000-0000-4000-8000-000000000003',
  anyIpList: '/orgs/1/sec_policy/draft/ip_lists/1',
  allServices: '/orgs/1/sec_policy/draft/services/1',
  postgres: '/orgs/1/sec_policy/draft/services/2',
  browser: '/orgs/1/sec_policy/draft/services/3',
  updater: '/orgs/1/sec_policy/draft/services/4',
  paymentsRules: '/orgs/1/sec_policy/draft/rule_sets/1',
  paymentsRule: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1',
}

const ANY_SIDE = { include: [[]], exclude: [] }
/**
 * A traffic query for seven whole days of February 2026. In the small estate, it returns one row with 70 connections.
 */
export const SMALL_QUERY = {
  query_name: 'q',
  start_date: '2026-02-20T00:00:00Z',
  end_date: '2026-02-27T00:00:00Z',
  sources: ANY_SIDE,
  destinations: ANY_SIDE,
  services: { include: [], exclude: [] },
  policy_decisions: [],
  max_results: 1000,
}

/**
 * Creates a minimal organisation. The database of payments (prod) may only be reached by its own web tier, but the web
 * tier of ordering (prod) connects to it every day on port 5432, which would be blocked. There is also one unmanaged
 * scanner.
 */
export function smallEstate(): Estate {
  return {
    labels: [
      label(1, 'role', 'web'),
      label(2, 'role', 'db'),
      label(3, 'app', 'payments'),
      label(4, 'app', 'ordering'),
      label(5, 'env', 'prod'),
      label(6, 'env', 'dev'),
    ],
    workloads: [
      workload(SMALL.paymentsDb, 'payments-db-1', '10.1.0.1', [SMALL.db, SMALL.payments, SMALL.prod]),
      workload(SMALL.orderingWeb, 'ordering-web-1', '10.2.0.1', [SMALL.web, SMALL.ordering, SMALL.prod]),
      { ...workload(SMALL.scanner, 'scanner-1', '10.3.0.1', []), managed: false, ven: null },
    ],
    ipLists: [],
    services: [
      service(2, 'PostgreSQL', { service_ports: [{ port: 5432, proto: 6 }] }),
      service(3, 'Browser', { windows_egress_services: [{ process_name: 'C:\\browser.exe' }] }),
      service(4, 'Updater', { windows_services: [{ process_name: 'C:\\updater.exe', port: 8443, proto: 6 }] }),
    ],
    ruleSets: [paymentsRules()],
    conversations: [conversation()],
    users: [{ href: '/users/1', username: 'admin@example.com', full_name: 'Ada Admin' }],
  }
}

function label(id: number, key: string, value: string): Label {
  return { href: `/orgs/1/labels/${id}`, key, value, deleted: false, ...STAMP }
}

function workload(href: string, name: string, address: string, labels: string[]): Workload {
  return {
    href,
    name,
    hostname: `${name}.example.com`,
    description: null,
    managed: true,
    public_ip: null,
    interfaces: [{ name: 'eth0', link_state: 'up', address, cidr_block: 24 }],
    labels: labels.map((one) => ({ href: one })),
    os_id: 'ubuntu-x86_64-jammy',
    online: true,
    enforcement_mode: 'visibility_only',
    visibility_level: 'flow_summary',
    ven: { href: href.replace('/workloads/', '/vens/'), hostname: `${name}.example.com`, name: null, status: 'active' },
    ...STAMP,
  }
}

function service(id: number, name: string, list: Partial<Service>): Service {
  return { href: `/orgs/1/sec_policy/draft/services/${id}`, name, description: null, ...list, ...STAMP }
}

function paymentsRules(): RuleSet {
  return {
    href: SMALL.paymentsRules,
    name: 'Payments prod',
    description: null,
    enabled: true,
    scopes: [[{ label: { href: SMALL.payments } }, { label: { href: SMALL.prod } }]],
    rules: [
      {
        href: SMALL.paymentsRule,
        enabled: true,
        providers: [{ label: { href: SMALL.db } }],
        consumers: [{ label: { href: SMALL.web } }],
        ingress_services: [{ href: SMALL.postgres }],
        resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
        ...STAMP,
      },
    ],
    deny_rules: [],
    ...STAMP,
  }
}

/**
 * Creates the only conversation of the small estate, which has occurred daily since 1 January 2026 and still goes on.
 */
function conversation(): Conversation {
  return {
    src: { workload: SMALL.orderingWeb, ip: '10.2.0.1' },
    dst: { workload: SMALL.paymentsDb, ip: '10.1.0.1' },
    service: { port: 5432, proto: 6, process_name: '/usr/lib/postgresql/bin/postgres', user_name: 'postgres' },
    flowDirection: 'inbound',
    firstDay: Date.UTC(2026, 0, 1) / 86_400_000,
    lastDay: null,
    everyDays: 1,
    secondOfDay: 3600,
    connectionsPerDay: 10,
    bytesIn: 1000,
    bytesOut: 2000,
    state: 'closed',
  }
}

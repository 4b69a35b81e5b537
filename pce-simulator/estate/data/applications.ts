import type { EnforcementMode } from '../../../schemas/pce/workload.js'
import type { StackName } from './stacks.js'

export const ENVIRONMENTS = ['prod', 'staging', 'test', 'dev'] as const
export type Environment = (typeof ENVIRONMENTS)[number]

export interface Application {
  name: string
  stack: StackName
  /** The size of the application: how many hosts it has, relative to the other applications. */
  size: number
  envs: readonly Environment[]
}

const ALL = ENVIRONMENTS
const USUAL = ['prod', 'staging', 'dev'] as const
const LEAN = ['prod', 'test'] as const
const PROD = ['prod'] as const

const application = (
  name: string,
  stack: StackName,
  size: number,
  envs: readonly Environment[] = USUAL,
): Application => ({
  name,
  stack,
  size,
  envs,
})

/**
 * The business applications, with the most prominent ones first, since small estates get hosts in this order. Some
 * names contain others (pay and payments, crm and crm-analytics, warehouse and data-warehouse) so that inexact lookups
 * are noticed.
 */
export const APPLICATIONS: readonly Application[] = [
  application('payments', 'commerce', 6, ALL),
  application('ordering', 'commerce', 6, ALL),
  application('web-shop', 'commerce', 8, ALL),
  application('identity', 'tool', 4, ALL),
  application('billing', 'dotnet', 4),
  application('ledger', 'batch', 3),
  application('crm', 'dotnet', 5),
  application('erp', 'batch', 6, LEAN),
  application('inventory', 'commerce', 4),
  application('data-warehouse', 'batch', 6),
  application('hr-portal', 'dotnet', 3),
  application('pay', 'batch', 2, LEAN),
  application('fraud-detection', 'events', 3),
  application('notifications', 'events', 3),
  application('pricing', 'node', 3),
  application('shipping', 'events', 3),
  application('catalog', 'node', 3),
  application('search', 'events', 3),
  application('recommendations', 'node', 2),
  application('loyalty', 'node', 2),
  application('mobile-backend', 'node', 4, ALL),
  application('customer-portal', 'lamp', 3),
  application('partner-gateway', 'tool', 2),
  application('treasury', 'dotnet', 2, LEAN),
  application('tax-engine', 'tool', 2),
  application('warehouse', 'dotnet', 3),
  application('crm-analytics', 'batch', 2),
  application('marketing', 'lamp', 2),
  application('media', 'lamp', 2),
  application('document-archive', 'tool', 3),
  application('contract-management', 'dotnet', 2),
  application('reporting', 'tool', 3),
  application('ticketing', 'lamp', 2),
  application('intranet', 'lamp', 2, LEAN),
  application('wiki', 'tool', 1, PROD),
  application('source-control', 'tool', 2, PROD),
  application('ci-build', 'events', 4, PROD),
  application('artifact-registry', 'tool', 2, PROD),
  application('mail-relay', 'tool', 2, PROD),
  application('call-center', 'dotnet', 2),
]

/**
 * The enforcement mode of each listed application and environment. Applications that are not listed are in
 * visibility_only, in which workloads report but enforce nothing. Individual hosts may deviate.
 */
export const ENFORCEMENT: Readonly<Record<string, EnforcementMode>> = {
  'web-shop|prod': 'selective',
  'ledger|prod': 'selective',
  'crm|prod': 'selective',
  'erp|prod': 'selective',
  'mobile-backend|prod': 'selective',
  'identity|prod': 'full',
  'billing|prod': 'full',
  'catalog|prod': 'full',
  'partner-gateway|prod': 'full',
  'treasury|prod': 'full',
  'dns|prod': 'full',
  'ntp|prod': 'full',
  'log-collection|prod': 'full',
  'ordering|dev': 'idle',
  'mail-relay|prod': 'idle',
}

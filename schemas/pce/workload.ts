import type { LabelRef } from './label.js'
import type { PceObject } from './reference.js'

export const ENFORCEMENT_MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
export type EnforcementMode = (typeof ENFORCEMENT_MODES)[number]

export interface WorkloadInterface {
  name: string
  address?: string
  cidr_block?: number | null
  default_gateway_address?: string | null
  link_state?: string | null
  friendly_name?: string | null
  network?: { href: string; name?: string | null } | null
  network_detection_mode?: string | null
  loopback?: boolean
}

export interface Workload extends PceObject {
  name: string | null
  hostname: string | null
  description?: string | null
  managed?: boolean
  public_ip?: string | null
  interfaces?: WorkloadInterface[] | null
  labels?: LabelRef[] | null
  os_id?: string | null
  os_detail?: string | null
  online?: boolean
  enforcement_mode?: EnforcementMode
  visibility_level?: string
  ven?: { href: string; hostname?: string | null; name?: string | null; status?: string; ven_type?: string } | null
  agent?: { href?: string; config?: Record<string, unknown>; status?: Record<string, unknown> } | null
  deleted?: boolean
}

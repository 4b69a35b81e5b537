import type { PceObject } from './reference.js'

export interface PceEvent extends PceObject {
  event_type: string
  timestamp: string
  severity: string
  status: string | null
  pce_fqdn?: string
}

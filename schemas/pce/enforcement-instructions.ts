import type { Reference } from './reference.js'

/** The devices that instructions are made for: some, or all of the organisation. */
export interface EnforcementTargets {
  network_devices?: readonly Reference[]
  all_devices?: boolean
}

/** Which instructions have been applied to a device (P55). */
export interface AppliedInstructions {
  /** What the device names as `enforcement_instructions_data_href`. */
  enforcement_instructions_data_href?: string
  [field: string]: unknown
}

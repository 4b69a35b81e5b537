import type { PceObject } from './reference.js'

export interface LabelRef {
  href: string
  key?: string
  value?: string
}

/** A label: a key (dimension) and a value. Not versioned: changes act at once. */
export interface Label extends PceObject {
  key: string
  value: string
  deleted?: boolean
  external_data_set?: string | null
  external_data_reference?: string | null
  usage?: Record<string, boolean>
}

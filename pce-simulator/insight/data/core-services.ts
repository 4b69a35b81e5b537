export interface PortRange {
  port: number
  to_port?: number
}

export interface CoreServiceSpec {
  name: string
  required: readonly PortRange[]
  optional?: readonly PortRange[]
  /** Of the optional ones, at least. */
  optionalRequired?: number
}

/** What an organisation's hosts cannot do without, in the order of their priorities. No source lists the PCE's own types. */
export const CORE_SERVICES: readonly CoreServiceSpec[] = [
  { name: 'DNS', required: [{ port: 53 }] },
  {
    name: 'Active Directory',
    required: [{ port: 88 }, { port: 389 }],
    optional: [{ port: 135 }, { port: 445 }, { port: 464 }, { port: 636 }, { port: 3268, to_port: 3269 }],
    optionalRequired: 1,
  },
  { name: 'NTP', required: [{ port: 123 }] },
  { name: 'Syslog', required: [{ port: 6514 }] },
  { name: 'Windows Server Update Services', required: [{ port: 8531 }], optional: [{ port: 8530 }] },
]

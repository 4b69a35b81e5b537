const NOUNS: Record<string, readonly [one: string, many: string]> = {
  label_groups: ['label group', 'label groups'],
  services: ['service', 'services'],
  rule_sets: ['rule set', 'rule sets'],
  ip_lists: ['IP list', 'IP lists'],
  virtual_services: ['virtual service', 'virtual services'],
  firewall_settings: ['firewall settings', 'firewall settings'],
  secure_connect_gateways: ['secure connect gateway', 'secure connect gateways'],
  virtual_servers: ['virtual server', 'virtual servers'],
  enforcement_boundaries: ['enforcement boundary', 'enforcement boundaries'],
}

/** What people call objects of a type of pending change: `rule set`, `3 rule sets` without the number. */
export const kindOf = (type: string, count = 1): string => NOUNS[type]?.[count === 1 ? 0 : 1] ?? type

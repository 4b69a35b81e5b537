/**
 * Synonyms of argument names, taken from answers, other tools and the PCE. The synonym is on the left of an entry, and
 * the names of the arguments that it may mean are on the right. A tool accepts the synonym if the tool has exactly one
 * of these arguments and no argument with the synonym's own name, and if the call does not contain that argument as
 * well.
 */
export const FIELD_SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  app: ['app_name'],
  env: ['env_name'],
  start: ['start_date', 'timestamp_gte'],
  start_date: ['timestamp_gte'],
  since: ['start_date', 'timestamp_gte'],
  end: ['end_date', 'timestamp_lte'],
  end_date: ['timestamp_lte'],
  until: ['end_date', 'timestamp_lte'],
  days: ['lookback_days'],
  next_cursor: ['cursor'],
  top_n: ['limit'],
  limit: ['top_n'],
  min_connections_filter: ['min_connections'],
  direction_filter: ['direction'],
  flow_direction: ['direction'],
  decision: ['policy_decisions'],
  policy_decision: ['policy_decisions'],
  policy: ['policy_decisions'],
  columns: ['group_by', 'fields'],
  dimensions: ['group_by'],
  sources: ['include_sources', 'consumers'],
  destinations: ['include_destinations', 'providers'],
  services: ['include_services', 'ingress_services'],
  process: ['process_name'],
  process_name: ['process'],
  user: ['user_name'],
  service_name: ['windows_service_name', 'service'],
  windows_service_name: ['service_name'],
  resolved_name: ['service'],
  name: ['service'],
  protocol: ['proto'],
  override: ['override_deny'],
  filter: ['resource_type'],
  mode: ['enforcement_mode'],
  labels: ['assign_labels'],
  commit_message: ['change_description'],
  href: ['profile_href', 'ruleset_href'],
  sections: ['kinds'],
  kinds: ['sections'],
}

/**
 * Synonyms of enumeration values, which come from other tools, the PCE's interface or people. Each is on the left, and
 * the value that it means is on the right. Differences in case, and between spaces, hyphens and underscores, are
 * ignored.
 */
export const VALUE_SYNONYMS: Readonly<Record<string, string>> = {
  rulesets: 'rule_sets',
  iplists: 'ip_lists',
  labelgroups: 'label_groups',
  ruleset: 'rule_set',
  iplist: 'ip_list',
  labelgroup: 'label_group',
  // Some tools name types of objects in the singular, others in the plural, so each form is accepted for the other.
  rule_set: 'rule_sets',
  rule_sets: 'rule_set',
  ip_list: 'ip_lists',
  ip_lists: 'ip_list',
  label_group: 'label_groups',
  label_groups: 'label_group',
  service: 'services',
  services: 'service',
  label: 'labels',
  labels: 'label',
  workloads: 'workload',
  visibility: 'visibility_only',
  full_enforcement: 'full',
  selective_enforcement: 'selective',
  emergency: 'emerg',
  critical: 'crit',
  error: 'err',
  warn: 'warning',
  informational: 'info',
  succeeded: 'success',
  failed: 'failure',
}

/**
 * The key under which the schema of an open object lists the names of the object's fields, because its properties are
 * not part of the schema.
 */
export const OPEN_FIELDS = Symbol('fields of an open object')

/** The fields of firewall settings that contain scopes, in the same form as those of rule sets (P27). */
export const SETTINGS_SCOPES = [
  'static_policy_scopes',
  'containers_inherit_host_policy_scopes',
  'blocked_connection_reject_scopes',
  'loopback_interfaces_in_policy_scopes',
  'ip_forwarding_enabled_scopes',
  'rule_hit_count_enabled_scopes',
] as const

/**
 * The names and types of the fields in recorded answers of PCEs, by kind of object. They ensure that the simulator's
 * profile `core-25.2` cannot drift from real answers. Flows, workloads and events were recorded on release 25.2.40, the
 * others on 21.5 and 22.2 (docs/pce-facts.md).
 *
 * A type ends in `?` if some records lack the field, and is `null` if the field never had a value in a record; any
 * field may be null (P43). `[]` stands for an element of a list, and `*` for any name.
 */
export const RECORDED_FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  flow: {
    flag: 'dst.workload.endpoint dst.workload.managed src.workload.endpoint src.workload.managed',
    list: 'caps dst.workload.labels src.workload.labels',
    'list?': 'dst.ip_lists src.ip_lists',
    'null?': 'boundary_decision',
    number: 'dst.ip_lists[].size dst_bi dst_bo num_connections src.ip_lists[].size',
    'number?': 'icmp_code icmp_type service.port service.proto',
    object: 'dst network src timestamp_range',
    'object?': 'dst.workload service src.workload',
    text: `
      client_type dst.ip dst.ip_lists[].href dst.ip_lists[].name dst.workload.enforcement_mode dst.workload.hostname
      dst.workload.href dst.workload.labels[].href dst.workload.labels[].key dst.workload.labels[].value
      dst.workload.name dst.workload.os_type flow_direction network.href network.name policy_decision src.ip
      src.ip_lists[].href src.ip_lists[].name src.workload.enforcement_mode src.workload.hostname src.workload.href
      src.workload.labels[].href src.workload.labels[].key src.workload.labels[].value src.workload.name
      src.workload.os_type state timestamp_range.first_detected timestamp_range.last_detected`,
    'text?': 'dst.fqdn service.user_name',
  },
  workload: {
    flag: `
      agent.config.log_traffic agent.status.fw_config_current containers_inherit_host_policy datacenter_nat_1to1
      deleted firewall_coexistence.illumio_primary interfaces[].loopback managed online`,
    'flag?': 'agent.unpair_allowed',
    list: `
      agent.status.agent_health agent.status.agent_health_errors.errors agent.status.agent_health_errors.warnings caps
      ignored_interface_names interfaces labels`,
    'list?': 'selectively_enforced_services services.open_service_ports',
    null: `
      agent.status.instance_id agent_to_pce_certificate_authentication_id data_center_zone external_data_reference
      external_data_set interfaces[].friendly_name interfaces[].link_state service_principal_name service_provider
      ven.name`,
    'null?': `
      agent.active_pce_fqdn agent.target_pce_fqdn container_cluster ike_authentication_certificate
      services.open_service_ports[].package services.open_service_ports[].win_service_name`,
    number: `
      agent.status.firewall_rule_count agent.status.uptime_seconds interfaces[].cidr_block
      risk_summary.ransomware.ransomware_protection_percent`,
    'number?': `
      num_enforcement_boundaries selectively_enforced_services[].port selectively_enforced_services[].proto
      services.open_service_ports[].port services.open_service_ports[].protocol services.uptime_seconds`,
    object: `
      agent agent.config agent.status.agent_health_errors created_by interfaces[].network risk_summary
      risk_summary.ransomware services updated_by ven`,
    'object?': 'agent.secure_connect agent.status firewall_coexistence',
    text: `
      agent.config.mode agent.config.visibility_level agent.status.agent_health[].severity
      agent.status.agent_health[].type agent.status.agent_version agent.status.last_heartbeat_on
      agent.status.managed_since agent.status.security_policy_applied_at agent.status.security_policy_received_at
      agent.status.security_policy_refresh_at agent.status.security_policy_sync_state agent.status.status
      agent.status.uid blocked_connection_action created_at created_by.href data_center description distinguished_name
      enforcement_mode hostname href interfaces[].address interfaces[].default_gateway_address interfaces[].name
      interfaces[].network.href interfaces[].network.name interfaces[].network_detection_mode interfaces[].public_ip
      labels[].href labels[].key labels[].value name os_detail os_id public_ip risk_summary.ransomware.last_updated_at
      risk_summary.ransomware.workload_exposure_severity updated_at updated_by.href ven.hostname ven.href ven.status
      ven.ven_type ven.version visibility_level`,
    'text?': `
      agent.config.security_policy_update_mode agent.href agent.secure_connect.matching_issuer_name agent.type
      selectively_enforced_services[].href services.created_at services.open_service_ports[].address
      services.open_service_ports[].process_name services.open_service_ports[].user`,
  },
  ven: {
    flag: 'interfaces[].loopback unpair_allowed',
    list: 'caps conditions interfaces labels workloads',
    null: `
      active_pce_fqdn conditions[].latest_event.info.agent.name container_cluster description
      interfaces[].friendly_name interfaces[].link_state last_goodbye_at name secure_connect target_pce_fqdn uid`,
    number: 'interfaces[].cidr_block',
    object: 'conditions[].latest_event conditions[].latest_event.info created_by interfaces[].network updated_by',
    'object?': 'conditions[].latest_event.info.agent',
    text: `
      activation_type conditions[].first_reported_timestamp conditions[].latest_event.href
      conditions[].latest_event.info.agent.hostname conditions[].latest_event.info.agent.href
      conditions[].latest_event.notification_type conditions[].latest_event.severity
      conditions[].latest_event.timestamp created_at created_by.href hostname href interfaces[].address
      interfaces[].default_gateway_address interfaces[].href interfaces[].name interfaces[].network.href
      interfaces[].network_detection_mode labels[].href last_heartbeat_at os_detail os_id os_platform status
      updated_at updated_by.href version workloads[].href`,
    'text?': `
      conditions[].latest_event.info.current_version conditions[].latest_event.info.desired_version
      conditions[].latest_event.info.href`,
  },
  event: {
    list: 'notifications resource_changes',
    number: 'action.http_status_code',
    object: 'action created_by notifications[].info resource_changes[].changes resource_changes[].resource',
    'object?': `
      action.info created_by.agent created_by.container_cluster created_by.system created_by.user created_by.ven
      resource_changes[].changes.* resource_changes[].resource.*`,
    text: `
      action.api_endpoint action.api_method action.src_ip action.uuid created_by.agent.hostname created_by.agent.href
      created_by.container_cluster.href created_by.container_cluster.name created_by.ven.hostname created_by.ven.href
      event_type href notifications[].notification_type notifications[].uuid pce_fqdn resource_changes[].change_type
      resource_changes[].uuid severity status timestamp`,
    'text?': 'created_by.user.href created_by.user.username',
  },
  container_cluster: {
    flag: 'online',
    list: 'caps errors nodes',
    null: 'pce_fqdn',
    text: `
      container_runtime description href kubelink_version last_connected manager_type name nodes[].name
      nodes[].pod_subnet`,
  },
  container_workload_profile: {
    flag: 'linked managed',
    list: 'assign_labels labels',
    object: 'created_by updated_by',
    text: `
      created_at created_by.href enforcement_mode href namespace updated_at updated_by.href visibility_level`,
    'text?': 'description name',
  },
  ip_list: {
    flag: 'ip_ranges[].exclusion',
    list: 'fqdns ip_ranges',
    null: 'deleted_at deleted_by',
    'null?': 'update_type',
    object: 'created_by updated_by',
    text: `
      created_at created_by.href fqdns[].description fqdns[].fqdn href ip_ranges[].from_ip name updated_at
      updated_by.href`,
    'text?': 'description ip_ranges[].description',
  },
  service: {
    'list?': 'service_ports',
    null: 'deleted_at deleted_by description description_url process_name',
    'null?': 'service_ports[].icmp_code service_ports[].icmp_type update_type',
    number: 'service_ports[].proto',
    'number?': 'service_ports[].port service_ports[].to_port',
    object: 'created_by updated_by',
    text: 'created_at created_by.href href name updated_at updated_by.href',
  },
  label_group: {
    list: 'labels sub_groups',
    null: 'deleted_at deleted_by update_type',
    object: 'created_by updated_by',
    text: `
      created_at created_by.href description href key labels[].href labels[].key labels[].value name sub_groups[].href
      sub_groups[].name updated_at updated_by.href`,
  },
  pairing_profile: {
    flag: `
      app_label_lock enabled enforcement_mode_lock env_label_lock is_default loc_label_lock log_traffic
      log_traffic_lock mode_lock role_label_lock visibility_level_lock`,
    list: 'caps labels',
    number: 'total_use_count',
    object: 'created_by updated_by',
    text: `
      agent_software_release allowed_uses_per_key created_at created_by.href description enforcement_mode href
      key_lifespan labels[].href last_pairing_at mode name updated_at updated_by.href visibility_level`,
  },
  rule_set: {
    flag: 'enabled',
    list: 'caps ip_tables_rules rules scopes',
    null: 'deleted_at deleted_by update_type',
    object: 'created_by scopes[][].label updated_by',
    text: 'created_at created_by.href description href name scopes[][].label.href updated_at updated_by.href',
  },
  rule: {
    flag: 'enabled machine_auth sec_connect stateless unscoped_consumers',
    list: `
      consumers consuming_security_principals ingress_services providers resolve_labels_as.consumers
      resolve_labels_as.providers`,
    null: 'deleted_at deleted_by',
    'number?': 'ingress_services[].port ingress_services[].proto',
    object: 'created_by resolve_labels_as updated_by',
    'object?': 'consumers[].label providers[].label',
    text: 'created_at created_by.href description href network_type updated_at updated_by.href update_type',
    'text?': 'consumers[].actors consumers[].label.href providers[].actors providers[].label.href',
  },
  virtual_service: {
    list: 'caps ip_overrides labels service_addresses service_ports',
    null: 'deleted_at deleted_by description pce_fqdn',
    number: 'service_ports[].port service_ports[].proto',
    'number?': 'service_addresses[].port service_ports[].to_port',
    object: 'created_by updated_by',
    text: `
      apply_to created_at created_by.href href labels[].href labels[].key labels[].value name update_type updated_at
      updated_by.href`,
    'text?': 'service_addresses[].description service_addresses[].fqdn service_addresses[].ip',
  },
}

/**
 * The fields that the vendor's schemas contain, but no recorded answer does. Their nested fields come from the schemas
 * too.
 */
export const GUIDE_FIELDS: Readonly<Record<string, string>> = {
  flow: 'src.workload.managed_by dst.workload.managed_by service.process_name service.windows_service_name transmission',
  workload: 'deleted_at deleted_by delete_type vulnerabilities_summary detected_vulnerabilities',
  ven: `
    ven_type golden_image authentication_recovery interfaces[].network.name upgrade_target_version upgrade_expires_at`,
  event: 'action.errors',
  container_cluster: 'cluster_mode nodes[].machine_id datacenter_nat_1to1',
  container_workload_profile: 'caps labels[].key labels[].assignment assign_labels[].href',
  ip_list: 'caps external_data_set external_data_reference ip_ranges[].to_ip',
  service: 'caps external_data_set external_data_reference risk_details windows_services windows_egress_services',
  label_group: 'caps external_data_set external_data_reference',
  pairing_profile: `
    external_data_set external_data_reference last_pairing_key_generated_at last_pairing_key_generated_by status ven_type`,
  rule: `
    egress_services external_data_set external_data_reference log_flow use_workload_subnets consumers[].exclusion
    consumers[].ip_list ingress_services[].href providers[].exclusion providers[].ip_list`,
  rule_set: `
    deny_rules rules external_data_set external_data_reference scopes[][].exclusion scopes[][].label.key
    scopes[][].label.value`,
  virtual_service: 'external_data_set external_data_reference',
}

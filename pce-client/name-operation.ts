import { KINDS, type Kind } from './kinds.js'

/** The paths of named operations that cannot be derived from KINDS, in the form that `templatesOf` returns. */
const MORE = [
  'agents/{id}/compatibility_report',
  'api_keys',
  'api_keys/{id}',
  'app_groups/risk_summary',
  'app_groups/{id}/risk_details',
  'container_clusters/{id}/service_backends',
  'datafiles/{id}',
  'detected_core_services_summary',
  'health',
  'label_mapping_rules/delete',
  'label_mapping_rules/run',
  'label_mapping_rules/run/{id}',
  'label_mapping_rules/run/{id}/assign_labels',
  'label_mapping_rules/run/{id}/download',
  'label_mapping_rules/update',
  'label_mapping_rules/{id}/reorder',
  'authentication_settings/ldap_configs/{id}/verify_connection',
  'login_users/authenticate',
  'network_devices/multi_enforcement_instructions_applied',
  'network_devices/multi_enforcement_instructions_request',
  'network_devices/{id}/enforcement_instructions_applied',
  'network_devices/{id}/enforcement_instructions_request',
  'node_available',
  'pairing_profiles/{id}/pairing_key',
  'product_version',
  'reports/risk_summary',
  'reports/{id}/download',
  'sec_policy',
  'sec_policy/delete',
  'sec_policy/impact',
  'sec_policy/pending',
  'sec_policy/{version}/allow',
  'sec_policy/{version}/dependencies',
  'sec_policy/{version}/label_groups/{id}/all_labels',
  'sec_policy/{version}/label_groups/{id}/member_of',
  'sec_policy/{version}/modified_objects',
  'sec_policy/{version}/policy_check',
  'sec_policy/{version}/restore',
  'sec_policy/{version}/rule_search',
  'service_accounts/{id}/api_keys',
  'service_accounts/{id}/api_keys/{id}',
  'software/ven/releases',
  'software/ven/releases/default',
  'software/ven/releases/{id}',
  'software/ven/releases/{id}/images',
  'supercluster/leader',
  'traffic_flows/async_queries',
  'traffic_flows/async_queries/{id}',
  'traffic_flows/async_queries/{id}/download',
  'traffic_flows/async_queries/{id}/update_rules',
  'traffic_flows/database_metrics',
  'traffic_flows/traffic_analysis_queries',
  'users/login',
  'users/{id}/api_keys',
  'users/{id}/api_keys/{id}',
  'vens/{id}/compatibility_report',
  'vens/authentication_recovery',
  'vens/remote_action',
  'vens/statistics',
  'vens/unpair',
  'vens/upgrade',
  'workloads/bulk_import',
  'workloads/unpair',
  'workloads/{id}/interfaces',
  'workloads/{id}/interfaces/{id}',
  'workloads/{id}/risk_details',
]

const METHODS = new Set(['GET', 'POST', 'PUT', 'DELETE'])

/**
 * Returns the paths of a kind, without their `/orgs/<id>/` prefix: the path of its list (or single object), of one
 * object in the list, and of its bulk endpoints.
 */
function templatesOf({ path, itemVerbs, bulk = [] }: Kind): string[] {
  const list = path
    .replace('/orgs/{org_id}', '')
    .replace('{pversion}', '{version}')
    .replace('{parent}', '{id}')
    .slice(1)
  return [list, ...(itemVerbs.length > 0 ? [`${list}/{id}`] : []), ...bulk.map((verb) => `${list}/bulk_${verb}`)]
}

/**
 * A node in the tree of known paths. `next` maps the fixed segments that may follow to their nodes, `variable` is the
 * node for any other segment, and `template` is the complete path if a known path ends at this node.
 */
interface Step {
  next: Map<string, Step>
  variable?: Step
  template?: string
}

let root: Step | undefined

function buildSteps(): Step {
  const top: Step = { next: new Map() }
  for (const template of [...Object.values(KINDS as Record<string, Kind>).flatMap(templatesOf), ...MORE]) {
    let step = top
    for (const segment of template.split('/')) {
      let following = segment.startsWith('{') ? step.variable : step.next.get(segment)
      if (following === undefined) {
        following = { next: new Map() }
        if (segment.startsWith('{')) step.variable = following
        else step.next.set(segment, following)
      }
      step = following
    }
    step.template = template
  }
  return top
}

/**
 * Returns the name of a request for metrics and traces, such as `GET workloads/{id}`. The set of names is fixed, and no
 * name contains an organisation, an id or an object's name. Paths can also come from a PCE's answers, so a path that no
 * operation of this client uses gets the name `other`.
 *
 * @param path below `/api/<version>`, without the query.
 */
export function nameOperation(method: string, path: string): string {
  const segments = path.split('/').filter((segment) => segment !== '')
  if (segments[0] === 'orgs') segments.splice(0, 2)
  let step: Step | undefined = (root ??= buildSteps())
  for (const segment of segments) {
    step = step.next.get(segment) ?? step.variable
    if (step === undefined) return 'other'
  }
  return step.template === undefined || !METHODS.has(method) ? 'other' : `${method} ${step.template}`
}

import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { answerCollection } from '../kinds/answer-collection.js'
import { describeChanges } from '../kinds/describe-changes.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'
import type { World } from '../world.js'

const FEATURES = [
  'ip_forwarding_firewall_setting',
  'ui_analytics',
  'illumination_classic',
  'ransomware_readiness_dashboard',
  'per_rule_flow_log_setting',
  'lightning_default',
  'collector_scanner_filters',
  'corporate_ips_groups',
  'labels_editing_warning_for_enforcement_mode',
  'label_based_network_detection',
  'cloudsecure_enabled',
  'windows_outbound_process_enforcement',
  'rule_based_label_mapping',
  'core_insights',
  'rule_info_exposure_to_syslog',
  'workload_usages_enabled',
  'hybrid_policy',
  'container_cluster_label_set_based_kubernetes_workload_instructions',
  'quarantine_policy',
  'ugm_support',
  'policy_perspective_externalization',
  'ven_ingestion',
  'agent_policy_delivery_metrics',
] as const

/** Kept under keys as well. */
const KEYED_FEATURES = ['editable_dns_client_rule', 'editable_dhcp_client_rule'] as const
const ON_FROM_THE_START = new Set<string>([
  'lightning_default',
  'ransomware_readiness_dashboard',
  'rule_based_label_mapping',
  'core_insights',
  ...KEYED_FEATURES,
])

const enabled = Type.Boolean()
const UPDATE = new Shape(
  'optional_features_put',
  Type.Array(
    Type.Union([
      Type.Object({ name: OneOf(...FEATURES), enabled }, CLOSED),
      Type.Object({ name: OneOf(...KEYED_FEATURES), enabled, key: Type.Optional(Type.String()) }, CLOSED),
    ]),
  ),
)

const NOUN = 'optional_features'

/** A list of switches without paths of their own; a PUT names those to change (P12). No switch changes the simulator. */
export const optionalFeatureRoutes: Route[] = [
  {
    path: '/orgs/:org/optional_features',
    verbs: {
      GET: {
        handle: (call) => {
          const objects = Object.entries(switchesOf(call.world)).map(([name, enabled]) => ({ name, enabled }))
          // They have no hrefs; pages do not care.
          return answerCollection(call, {
            objects: objects as object[] as PceObject[],
            filters: {},
            render: (one) => one,
          })
        },
      },
      PUT: { event: 'optional_features.update', handle: update },
    },
  },
]

function switchesOf(world: World): Json {
  return world.singles.get(NOUN) ?? INITIAL
}

const INITIAL: Json = Object.fromEntries(
  [...FEATURES, ...KEYED_FEATURES].map((name) => [name, ON_FROM_THE_START.has(name)]),
)

function update({ world, path, body }: Call) {
  const fields = Object.fromEntries(UPDATE.read(body).map(({ name, enabled }) => [name, enabled]))
  const current = switchesOf(world)
  world.singles.set(NOUN, { ...current, ...fields })
  const resource = { [NOUN]: { href: path } }
  return { status: 204, changes: [{ resource, type: 'update' as const, changes: describeChanges(current, fields) }] }
}

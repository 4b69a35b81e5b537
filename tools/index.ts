import type { AnyTool } from './define.js'
import createLabel from './labels/create-label.js'
import getLabels from './labels/get-labels.js'
import checkPceConnection from './pce/check-pce-connection.js'
import provisionPolicy from './policy/provision-policy.js'
import createRuleset from './rulesets/create-ruleset.js'
import getRulesets from './rulesets/get-rulesets.js'
import getServerChangelog from './server/get-server-changelog.js'
import getTrafficFlowsSummary from './traffic/get-traffic-flows-summary.js'
import createWorkload from './workloads/create-workload.js'
import getWorkloads from './workloads/get-workloads.js'

/** Every tool of the server, sorted by name. */
export const tools: readonly AnyTool[] = [
  checkPceConnection,
  createLabel,
  createRuleset,
  createWorkload,
  getLabels,
  getRulesets,
  getServerChangelog,
  getTrafficFlowsSummary,
  getWorkloads,
  provisionPolicy,
]

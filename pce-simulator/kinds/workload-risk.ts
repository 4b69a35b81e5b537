import { readRoute } from '../http/route.js'
import { assessRisk, detailRisk } from '../insight/assess-risk.js'
import { notFound } from '../refusal.js'

/** The same view of risk as that of whole app groups; without a VEN there is nothing to tell (P13). */
export const workloadRiskRoute = readRoute('/orgs/:org/workloads/:workload/risk_details', ({ world, path }) => {
  const href = path.replace(/\/risk_details$/, '')
  const workload = world.workloads.get(href)
  if (!workload || workload.deleted === true) throw notFound()
  const risks = assessRisk(world, href)
  return {
    status: 200,
    json: { risk_details: risks.length > 0 ? detailRisk(risks, world.now()) : { ransomware: null } },
  }
})

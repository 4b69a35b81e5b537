import { readRoute, type Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { assessAppGroups } from './assess-app-groups.js'
import { detailRisk, summariseRisk } from './assess-risk.js'
import { describeAppGroups } from './describe-app-groups.js'
import { summariseEstateRisk } from './summarise-estate-risk.js'

/** Risk of the whole organisation and of its app groups (P13, P49). */
export const riskRoutes: Route[] = [
  readRoute('/orgs/:org/reports/risk_summary', ({ world }) => ({ status: 200, json: summariseEstateRisk(world) })),
  readRoute('/orgs/:org/app_group_summary', ({ world }) => ({ status: 200, json: describeAppGroups(world) })),
  readRoute('/orgs/:org/app_groups/risk_summary', ({ world }) => ({
    status: 200,
    json: assessAppGroups(world).map(({ group, risks }) => ({
      app_group: { href: group.href },
      labels: group.labels.map(({ href }) => ({ href })),
      risk_summary:
        risks.length === 0
          ? { ransomware: null }
          : summariseRisk(
              risks.flatMap(({ ports }) => ports),
              world.now(),
            ),
    })),
  })),
  readRoute('/orgs/:org/app_groups/:id/risk_details', ({ world, path }) => {
    const found = assessAppGroups(world).find(({ group }) => `${group.href}/risk_details` === path)
    if (!found) throw notFound()
    return { status: 200, json: { risk_details: detailRisk(found.risks, world.now()) } }
  }),
]

import type { Route } from '../http/route.js'
import { plainRoutes } from '../kinds/plain-kind.js'
import type { World } from '../world.js'
import { coreServiceType, seedCoreServiceTypes } from './core-service-type.js'
import { detectedCoreService, detectedCoreServiceRoutes } from './detected-core-service.js'
import { seedDetectedCoreServices } from './detect-core-services.js'
import { labelMappingListRoutes } from './label-mapping-lists.js'
import { labelMappingRule } from './label-mapping-rule.js'
import { labelMappingRunRoutes } from './label-mapping-runs.js'
import { reportRoutes } from './report.js'
import { reportSchedule } from './report-schedule.js'
import { reportTemplate, seedReportTemplates } from './report-template.js'
import { riskRoutes } from './risk-routes.js'
import { vulnerabilityRoutes } from './vulnerability.js'
import { vulnerabilityReportRoutes } from './vulnerability-report.js'

const PLAIN_KINDS = [reportTemplate, reportSchedule, coreServiceType, detectedCoreService, labelMappingRule]

/** Reports, risk, vulnerabilities, core services and label mapping (P28). */
export const insightRoutes: Route[] = [
  ...riskRoutes,
  ...PLAIN_KINDS.flatMap(plainRoutes),
  ...reportRoutes,
  ...vulnerabilityRoutes,
  ...vulnerabilityReportRoutes,
  ...detectedCoreServiceRoutes,
  ...labelMappingListRoutes,
  ...labelMappingRunRoutes,
]

/** What every PCE has of these, and what follows from the estate. */
export function seedInsight(world: World): void {
  seedReportTemplates(world)
  seedCoreServiceTypes(world)
  seedDetectedCoreServices(world)
}

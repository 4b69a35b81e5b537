import type { Route } from '../http/route.js'
import { plainRoutes } from '../kinds/plain-kind.js'
import { singleRoutes } from '../kinds/single-kind.js'
import type { World } from '../world.js'
import { eventSettings } from './event-settings.js'
import { optionalFeatureRoutes } from './optional-features.js'
import { orgSettings } from './org-settings.js'
import { reportSettings } from './report-settings.js'
import { supportBundleRoutes } from './support-bundle-request.js'
import { seedSyslog, syslogDestination } from './syslog-destination.js'
import { seedSystemEvents, systemEventRoutes } from './system-event.js'
import { trafficCollectorSetting } from './traffic-collector-setting.js'
import { trustedProxyIps } from './trusted-proxy-ips.js'

/** The settings of an organisation and of the whole PCE (P28). */
export const settingsRoutes: Route[] = [
  ...[orgSettings, eventSettings, reportSettings, trustedProxyIps].flatMap(singleRoutes),
  ...[syslogDestination, trafficCollectorSetting].flatMap(plainRoutes),
  ...optionalFeatureRoutes,
  ...supportBundleRoutes,
  ...systemEventRoutes,
]

/** The PCE's own syslog, and what the PCE did by itself. */
export function seedSettings(world: World): void {
  seedSyslog(world)
  seedSystemEvents(world)
}

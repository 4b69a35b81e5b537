import type { Label } from '../../schemas/pce/label.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { PolicyDecision } from '../../schemas/pce/words.js'
import { endColumns, type Column, type Side } from './columns.js'
import type { FlowEncoder } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'

/** An application: the value of an app label together with that of an env label (T11). */
export interface Application {
  app: string
  env: string
}

/** What the analysis tools ask for: all decisions but `unknown`. */
export const KNOWN_DECISIONS: readonly PolicyDecision[] = ['allowed', 'potentially_blocked', 'blocked']

/** The message of an analysis that found no such flows. */
export const NO_DECIDED_FLOWS =
  'No flows with a policy decision in the window; flows with decision unknown are not queried.'

/** The application of an end; null unless it has both labels. */
export function applicationOf({ labels }: FlowEnd): Application | null {
  const { app, env } = labels
  return app === undefined || env === undefined ? null : { app, env }
}

/** The application of an app and an env label, in this order. */
export function applicationOfLabels([app, env]: readonly Label[]): Application {
  return { app: app?.value ?? '', env: env?.value ?? '' }
}

/** How answers write an application: `app|env`. For display and order only, because a value may contain `|` itself. */
export const applicationKey = ({ app, env }: Application): string => `${app}|${env}`

/** No label value contains this. */
const SEPARATOR = '\u0000'

/** An application as a string that no other application shares. */
export const applicationId = ({ app, env }: Application): string => `${app}${SEPARATOR}${env}`

/** The ids of the applications of both ends of a row. Code 0 (null): no application. Both sides share their codes. */
export function applicationIds(encoder: FlowEncoder): Record<Side, Column<string | null>> {
  return endColumns(encoder, (end) => {
    const application = applicationOf(end)
    return application === null ? null : applicationId(application)
  })
}

/** The applications of both ends of a row, as `applicationIds` has them. */
export function applicationColumns(encoder: FlowEncoder): Record<Side, Column<Application | null>> {
  const ids = applicationIds(encoder)
  const split = ({ code, value }: Column<string | null>): Column<Application | null> => ({
    code,
    value(number) {
      const [app, env] = value(number)?.split(SEPARATOR) ?? []
      return app === undefined || env === undefined ? null : { app, env }
    },
  })
  return { src: split(ids.src), dst: split(ids.dst) }
}

/** One side of a query: whatever has all of these labels. */
export const withLabels = (labels: readonly Label[]): TrafficQuery['sources'] => ({
  include: [labels.map(({ href }) => ({ label: { href } }))],
  exclude: [],
})

/** One side of a query: anything. */
export const anything = (): TrafficQuery['sources'] => ({ include: [[]], exclude: [] })
